"""What can be asked of the commands about decisions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from orthocal.cli.options import Holdout, Method, Options, Out, option

RULES = "Rules"


@dataclass(frozen=True, kw_only=True)
class ChooseOptions(Options):
    """Choose among columns of predicted effects, as they are and calibrated, the average effect and no effect."""

    method: Method = "auto"
    holdout: Holdout = "0.3"
    out: Out = Path("orthocal-choice")


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(Options):
    """Say what deciding by predicted effects is worth, beside treating no one and treating everyone."""

    cost: Annotated[
        list[str] | None,
        option("--cost", "Cost of treating a person: a number or a column; of several arms call=0.5, repeated.", RULES),
    ] = None  # type: ignore[assignment]
    budget: Annotated[float | None, option("--budget", "Mean cost per person that may be spent.", RULES)] = None
    spend: Annotated[
        str | None,
        option("--spend", "Column of what was actually spent on each person, for the return on spend.", RULES),
    ] = None
    method: Method = "auto"
    holdout: Holdout = "0.3"
    out: Out = Path("orthocal-policy")
