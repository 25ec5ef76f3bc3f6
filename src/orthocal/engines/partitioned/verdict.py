"""The verdict on rows in partitions: the stages of the one in memory, asked of ranges of the prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.assess import judge
from orthocal.assessment.compare import Clusters, Moments, change_moments, concluded
from orthocal.assessment.records import Settings
from orthocal.assessment.subgroups import MOST_LEVELS
from orthocal.assessment.sweeps import Rows
from orthocal.engines.partitioned.grid_verdict import judged_on_grid, replace_rows
from orthocal.engines.partitioned.partition_loss import Job, loss_of
from orthocal.engines.partitioned.passes import each, reduced, reduced_notes
from orthocal.engines.partitioned.ranges import RangedRows, ranges
from orthocal.engines.partitioned.source import Source
from orthocal.engines.partitioned.summed_overlap import SummedOverlap, summed_overlap_of, warned
from orthocal.errors import OrthocalError, require_inside
from orthocal.maps import Map


def judged(source: Source, settings: Settings, *, exact: bool) -> Assessment:
    """Return the verdict on a source's predictions: exactly, by moving rows once, or from sums by cells.

    Losses that sums are not enough for, and clusters, which may lie anywhere, always have the exact one.
    """
    if not exact and source.is_quadratic and source.job.roles.groups is None:
        return judged_on_grid(source, settings)
    try:
        pieces = ranges(source, summed_overlap_of)
        overlap = warned(reduced_notes(pieces.notes, SummedOverlap.merge)) if source.has_overlap else None
    except OrthocalError:
        each(
            source.table, _nothing, source.job
        )  # values of two kinds are the better reason, which no partition sees alone
        raise
    rows = RangedRows(pieces, source.like)
    rows.like = replace_rows(source.like, rows.rows)
    return judge(rows, settings, _subgroups(rows, source.job.roles.by), overlap)


def _nothing(part: Any, job: Job) -> None:
    del part, job


def _subgroups(rows: RangedRows, by: tuple[str, ...]) -> Iterator[tuple[str, str, Rows]]:
    for name in by:
        levels = rows.levels(name, MOST_LEVELS)
        if len(levels) > MOST_LEVELS:
            raise OrthocalError(
                f"`by` must name columns of at most {MOST_LEVELS} values; {name!r} has more. Group them."
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
