"""What the losses with a tilt (hinge, expectile) have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from orthocal.arrays import Floats, Rows
from orthocal.errors import require_finite, require_length

T = TypeVar("T")
PER_ROW = ("outcome", "slope", "tilt", "offset", "weight", "groups", "law", "overlap")


def complete(loss: Any) -> None:
    """Fill in offsets of 0, weights of 1 and the range of outcomes that carry weight, where these were left out."""
    for name, default in (("offset", 0.0), ("weight", 1.0)):
        if getattr(loss, name) is None:
            object.__setattr__(loss, name, np.full(len(loss.outcome), default))
    for name in ("outcome", "slope", "tilt", "offset", "weight"):
        require_length(getattr(loss, name), len(loss.outcome), name)
        require_finite(getattr(loss, name), name)
    if loss.bounds is None:
        object.__setattr__(loss, "bounds", _range(loss.outcome, loss.slope))


def of_rows(loss: T, rows: Rows) -> T:
    """Return the loss of some rows, with the parent's bounds."""
    columns = {name: getattr(loss, name) for name in PER_ROW}
    selected: Any = {name: None if c is None else c[rows] for name, c in columns.items()}
    return replace(loss, **selected)  # type: ignore[type-var]


def _range(outcome: Floats, slope: Floats) -> tuple[float, float]:
    carrying = outcome[slope > 0]
    carrying = carrying if len(carrying) else outcome
    return (float(carrying.min()), float(carrying.max())) if len(carrying) else (0.0, 0.0)
