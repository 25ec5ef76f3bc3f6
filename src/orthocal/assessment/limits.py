"""What settings of a verdict can be."""

from __future__ import annotations

from typing import Any

from orthocal.errors import OrthocalError, is_number, require_number
from orthocal.formats import shown

MOST_DRAWS = 1_000_000
"""More would not fit into memory."""


def require_cost(cost: Any) -> None:
    """What treating one person costs is a number, where it is given."""
    if cost is not None:
        require_number(cost, "cost", ", in units of the effect")


def require_tolerance(tolerance: Any) -> None:
    """The error that would matter is a positive number, where it is given."""
    if tolerance is not None and not (is_number(tolerance) and tolerance > 0):
        raise OrthocalError(
            f"`tolerance` must be a positive number, in units of the effect; it is {shown(tolerance)}. Leave it out for half "
            "the spread of the predictions."
        )
