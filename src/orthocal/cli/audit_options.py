"""What can be asked of the command that tests subgroups."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from orthocal.cli.options import Options, Out, Within, option


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Options):
    """Test whether predicted effects are calibrated in every subgroup, by one test over all of them."""

    within: Within = None
    discover: Annotated[
        bool,
        option(
            "--discover",
            "Search for subgroups on half of the rows, by --within or all covariates; test on the other half.",
        ),
    ] = False
    out: Out = Path("orthocal-audit")
