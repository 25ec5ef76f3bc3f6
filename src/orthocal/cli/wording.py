"""Sentences of the library, which name its arguments, in words of the command line."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields
from typing import Any

from orthocal.cli.options import CalibrateOptions

OTHER_NAMES: dict[str, str] = {
    "n_jobs": "jobs",
    "random_state": "seed",
    "sample_weight": "weight",
    "predictions": "prediction",
    "learners": "learner",
    "propensity_control": "propensity-control",
}
"""Arguments that are called otherwise here."""
PHRASES: tuple[tuple[str, Any], ...] = (
    (
        r"covariates=\[([^\]]*)\]",
        lambda found: f"--covariates {found[1].replace(chr(39), '').replace(', ', ',') or 'none'}",
    ),
    (r"predictions=\[\.\.\.\]", "--prediction"),
    (r"as in CATE\(arm=\.\.\., control=\.\.\.\)", "with --arm and --control"),
    (r"Pass (\w+)=\.\.\.", lambda found: f"Pass --{OTHER_NAMES.get(found[1], found[1])}."),
    (r"`nuisances` has no use for '(\w+)'", lambda found: f"`--{found[1].replace('_', '-')}` has no use here"),
)
"""What the library says to who writes Python, and how that is said here."""


def in_options(text: str, given: Collection[str] = ()) -> str:
    """Return a sentence that names arguments of the library as one that names options of the command line.

    What was `given` as a value, such as a column, stays as it is.
    """
    for pattern, said in PHRASES:
        text = re.sub(pattern, said, text)
    known = {one.name for one in fields(CalibrateOptions)} | set(OTHER_NAMES) | {"format"}
    known -= {name for word in given for name in word.split(",")}

    def option(found: Any) -> str:
        name = found[1]
        return f"`--{OTHER_NAMES.get(name, name)}`" if name in known else str(found[0])

    return re.sub(r"`(\w+)`", option, text)
