"""A map applied to some rows of a table, and what is to be counted of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.group_maps import GroupMap, predict_within
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
    """A map, the range of predictions it was fitted on, one for each column of predictions, and perhaps its band."""

    fitted: Any
    ends: Sequence[Ends]
    band: Any = None

    @property
    def group_kinds(self) -> dict[str, type]:
        """The columns that a map of groups needs besides predictions, and their kinds."""
        return self.fitted.kinds if isinstance(self.fitted, GroupMap) else {}

    def new_columns(self, predictions: Sequence[str]) -> list[str]:
        """Return the names of the columns that are added."""
        ends = [] if self.band is None else [f"{name}_{end}" for name in predictions for end in ("lower", "upper")]
        return [*(f"{name}_calibrated" for name in predictions), *ends]

    def to(self, predictions: Floats, groups: Mapping[str, Labels] | None = None) -> tuple[Floats, Added]:
        """Return the new columns, missing where a prediction is or an end is open, and what is to be counted."""
        known = ~np.isnan(predictions).any(axis=1)
        own = {name: labels[known] for name, labels in (groups or {}).items()}
        found = [calibrated_columns(self.fitted, predictions[known], own)]
        if self.band is not None:  # of one column: a joint map has none
            found.append(np.column_stack(self.band.interval(predictions[known, 0])))
        values = np.full((len(predictions), sum(columns.shape[1] for columns in found)), np.nan)
        values[known] = np.column_stack(found)
        low, high = np.array(self.ends).T
        outside = int(((predictions < low) | (predictions > high)).any(axis=1).sum())
        return values, Added(len(predictions), int((~known).sum()), outside)


@singledispatch
def calibrated_columns(fitted: Any, predictions: Floats, groups: Mapping[str, Labels]) -> Floats:
    """Return columns of calibrated predictions; a map of one prediction has one, and may need columns of groups."""
    return predict_within(fitted, predictions[:, 0], groups)[:, None]


@calibrated_columns.register
def _(fitted: JointMap, predictions: Floats, groups: Mapping[str, Labels]) -> Floats:
    del groups
    return fitted.predict(predictions)
