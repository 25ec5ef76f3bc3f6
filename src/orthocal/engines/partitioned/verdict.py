"""The verdict on rows in partitions: the stages of the one in memory, asked of ranges of the prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.assess import judge
from orthocal.assessment.compare import Clusters, Moments, change_moments, concluded
from orthocal.assessment.records import Settings
from orthocal.assessment.subgroups import MOST_LEVELS
from orthocal.assessment.sweeps import Rows
from orthocal.effects.arms import warn_if_clipped
from orthocal.effects.derivative import warn_if_unbalanced
from orthocal.engines.partitioned.partition_loss import Job, loss_of
from orthocal.engines.partitioned.passes import reduced
from orthocal.engines.partitioned.ranges import RangedRows, ranges
from orthocal.engines.partitioned.source import Source
from orthocal.errors import OrthocalError, require_inside
from orthocal.losses import Overlap
from orthocal.maps import Map

SHOWN = 200
"""Rows of each partition that pictures show."""


@dataclass(frozen=True, eq=False)
class SummedOverlap(Overlap):
    """Overlap of all rows; `levels` and `weight` are those of a few of them, for pictures.

    Parameters
    ----------
    sums : dict of str to array
        Per level: rows that got it, least and largest propensity, sum of inverse propensity weights and of their squares.
    count : float
        Rows in all.
    """

    sums: dict[str, Floats] = field(default_factory=dict)
    count: float = 0.0

    @property
    def rows(self) -> dict[str, int]:
        """How many rows got each level."""
        return {name: int(one[0]) for name, one in self.sums.items()}

    @property
    def propensity(self) -> dict[str, tuple[float, float]]:
        """Least and largest propensity of each level."""
        return {name: (float(one[1]), float(one[2])) for name, one in self.sums.items()}

    @property
    def effective_rows(self) -> dict[str, float]:
        """(Sum of inverse propensity weights)^2 / sum of their squares, over the rows that got the level."""
        return {name: float(one[3] ** 2 / one[4]) if one[4] > 0 else 0.0 for name, one in self.sums.items()}

    def merge(self, other: SummedOverlap) -> SummedOverlap:
        """Of both."""
        count = self.count + other.count
        both = {name: (self.sums[name], other.sums[name]) for name in self.sums}
        return SummedOverlap(
            self.clip,
            {
                name: (share * self.count + other.clipped[name] * other.count) / count
                for name, share in self.clipped.items()
            },
            {
                name: tuple(np.concatenate(pair) for pair in zip(self.levels[name], other.levels[name], strict=True))  # type: ignore[misc]
                for name in self.levels
            },
            np.concatenate([self.weight, other.weight]),
            (),
            None if self.balance is None or other.balance is None else self.balance.merge(other.balance),
            {
                name: np.array([a[0] + b[0], min(a[1], b[1]), max(a[2], b[2]), a[3] + b[3], a[4] + b[4]])
                for name, (a, b) in both.items()
            },
            count,
        )


def overlap_in(part: Any, job: Job) -> SummedOverlap | None:
    """Question: the overlap of a partition."""
    _, loss = loss_of(part, job)
    overlap = loss.overlap
    if overlap is None or not len(loss):
        return None
    sums = {}
    for name, (got, propensity) in overlap.levels.items():
        inverse = (overlap.weight / propensity)[got]
        sums[name] = np.array([len(inverse), propensity.min(), propensity.max(), inverse.sum(), inverse @ inverse])
    few = overlap[np.arange(min(len(loss), SHOWN))]
    return SummedOverlap(
        overlap.clip, overlap.clipped, few.levels, few.weight, (), overlap.balance, sums, float(len(loss))
    )


def judged(source: Source, settings: Settings) -> Assessment:
    """Return the verdict on a source's predictions."""
    overlap = None
    if source.has_overlap:
        overlap = reduced(source.table, overlap_in, SummedOverlap.merge, source.job)
        warn_if_clipped(overlap.clipped, overlap.clip)
        warn_if_unbalanced(overlap.balance)
    rows = RangedRows(ranges(source), source.like)
    rows.like = with_rows(source.like, rows.rows)
    return judge(rows, settings, _subgroups(rows, source.job.roles.by), overlap)


def with_rows(like: Any, rows: int) -> Any:
    """Return the loss with the number of rows it stands for in its origin."""
    origin = getattr(like, "origin", None)
    return like if origin is None or origin.rows else replace(like, origin=replace(origin, rows=rows))


def _subgroups(rows: RangedRows, by: tuple[str, ...]) -> Iterator[tuple[str, str, Rows]]:
    for name in by:
        levels = rows.levels(name, MOST_LEVELS)
        if len(levels) > MOST_LEVELS:
            raise OrthocalError(
                f"`by` must name columns of at most {MOST_LEVELS} levels; {name!r} has more. Group them."
            )
        for level in levels:
            yield name, str(level), rows.among(name, level)


def compared(source: Source, before: Map, after: Map, *, level: float = 0.95, cost: float | None = None) -> Comparison:
    """Compare what two maps make of the predictions, in one pass: the numbers of `orthocal.compare`.

    The source is one of rows the maps have not seen; its own map is not looked at.
    """
    require_inside(level, 0, 1, "level")
    found: Any = reduced(source.table, _moments, _both, source.job, before, after, cost)
    return concluded(found, level, cost)


def rivals_compared(
    source: Source, other: str, level: float, cost: float | None, rivals: tuple[str, str]
) -> Comparison:
    """Compare the predictions of a source with those of another column, in one pass."""
    found: Any = reduced(source.table, _rival_moments, _both, source.job, other, cost)
    return concluded(found, level, cost, rivals)


def _both(one: Any, other: Any) -> Any:
    return one.merge(other)


def _moments(part: Any, job: Job, before: Map, after: Map, cost: float | None) -> Moments | Clusters | None:
    """Summary of a partition."""
    prediction, loss = loss_of(part, job)
    if not len(prediction):
        return None
    return change_moments(before.predict(prediction), after.predict(prediction), loss, cost)


def _rival_moments(part: Any, job: Job, other: str, cost: float | None) -> Moments | Clusters | None:
    prediction, loss = loss_of(part, job)
    second, _ = loss_of(part, replace(job, roles=replace(job.roles, prediction=other)))
    return change_moments(prediction, second, loss, cost) if len(prediction) else None


def calibrated_values(column: Any, map_: Map) -> Any:
    """Return the calibrated predictions of a column of a partition."""
    import pandas as pd

    values = column.to_numpy(dtype=float, na_value=np.nan)
    known = ~np.isnan(values)
    values = values.copy()
    values[known] = map_.predict(values[known])  # where there is no prediction, there is no calibrated one
    return pd.Series(values, column.index, name=column.name, dtype=float)
