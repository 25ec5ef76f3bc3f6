"""A map applied to some rows of a table, and what is to be counted of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.group_maps import GroupMap
from orthocal.joint_maps import JointMap


class Added(NamedTuple):
    """How many rows a table has, how many of them without a prediction, and how many with one beyond the fitted range."""

    rows: int = 0
    missing: int = 0
    outside: int = 0

    def merge(self, other: Added) -> Added:
        """Of both."""
        return Added(*(one + two for one, two in zip(self, other, strict=True)))


Ends = tuple[float, float]
ANYWHERE: Ends = (-np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class Applied:
    """A map, and the range of predictions it was fitted on, one for each column of predictions."""

    fitted: Any
    ends: Sequence[Ends]

    def to(self, predictions: Floats) -> tuple[Floats, Added]:
        """Return the calibrated predictions, missing where a prediction is, and what is to be counted."""
        known = ~np.isnan(predictions).any(axis=1)
        values = np.full(predictions.shape, np.nan)
        values[known] = calibrated_columns(self.fitted, predictions[known])
        low, high = np.array(self.ends).T
        outside = int(((predictions < low) | (predictions > high)).any(axis=1).sum())
        return values, Added(len(predictions), int((~known).sum()), outside)


@singledispatch
def calibrated_columns(fitted: Any, predictions: Floats) -> Floats:
    """Return columns of calibrated predictions; a map of one prediction has one."""
    return np.asarray(fitted.predict(predictions[:, 0]))[:, None]


@calibrated_columns.register
def _(fitted: JointMap, predictions: Floats) -> Floats:
    return fitted.predict(predictions)


@calibrated_columns.register
def _(fitted: GroupMap, predictions: Floats) -> Floats:
    if fitted.columns:
        raise OrthocalError(
            f"A map of groups needs its columns of groups, {', '.join(fitted.columns)}; only predictions are read here. "
            "Export it as SQL or Python, or load it and call `predict(prediction, groups)`."
        )
    return np.asarray(fitted.predict(predictions[:, 0]))[:, None]
