"""An effect in words, for reports: what is estimated, by which formula, and what must hold."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

IGNORABILITY = (
    "Treatment is as good as random among people alike in the covariates, and each of them could have had either level."
)


@dataclass(frozen=True)
class Words:
    """What an effect says of itself.

    Parameters
    ----------
    estimand : str
    formula : str
        Of the pseudo-outcome or loss, in plain characters.
    assumption : str
    """

    estimand: str
    formula: str
    assumption: str = IGNORABILITY


def words_of(effect: Any) -> Words:
    """Return an effect's own words; one that has none is described by the beginning of its docstring."""
    own = getattr(effect, "words", None)
    if isinstance(own, Words):
        return own
    start = re.split(r"[:.]", inspect.getdoc(effect) or "")[0].strip()
    return Words(start or type(effect).__name__, "as the effect defines it", "those of the effect")
