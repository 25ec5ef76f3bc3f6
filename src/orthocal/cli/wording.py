"""Sentences of the library, which name its arguments, in words of the command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

OTHER_NAMES: dict[str, str] = {
    "n_jobs": "jobs",
    "random_state": "seed",
    "sample_weight": "weight",
    "predictions": "prediction",
    "learners": "learner",
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
    (r"`nuisances` does not know '(\w+)'", lambda found: f"`--{found[1].replace('_', '-')}` does not apply here"),
)
"""What the library says to who writes Python, and how that is said here."""


def in_options(text: str, words: Sequence[str], options: Collection[str]) -> str:
    """Return a sentence that names arguments of the library as one that names options of a command.

    Parameters
    ----------
    text : str
    words : sequence of str
        What was written on the command line: a column of that name is no option.
    options : collection of str
        Of the command.
    """
    for pattern, said in PHRASES:
        text = re.sub(pattern, said, text)
    values = {name for word in words for name in word.split(",")}

    def option(found: Any) -> str:
        name = found[1]
        known = [f"--{one}".replace("_", "-") for one in (name, OTHER_NAMES.get(name, name))]
        written = next((one for one in known if one in options), None)
        return str(found[0]) if written is None or name in values else f"`{written}`"

    return re.sub(r"`(\w+)`", option, text)
