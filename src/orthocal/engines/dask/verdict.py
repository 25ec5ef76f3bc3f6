"""The verdict on rows of a cluster: the stages of the one in memory, asked of ranges of the prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from orthocal.assessment import Assessment
from orthocal.assessment.assess import judge
from orthocal.assessment.settings import Settings
from orthocal.assessment.subgroups import MOST_LEVELS
from orthocal.assessment.sweeps import Rows
from orthocal.effects.arms import warn_if_clipped
from orthocal.effects.derivative import warn_if_unbalanced
from orthocal.engines.dask.arm_overlap import SummedOverlap, overlap_in
from orthocal.engines.dask.passes import reduced
from orthocal.engines.dask.ranges import DaskRows, ranges
from orthocal.engines.dask.source import Source
from orthocal.errors import OrthocalError


def judged(source: Source, settings: Settings) -> Assessment:
    """Return the verdict on a source's predictions."""
    overlap = None
    if source.has_overlap:
        overlap = reduced(source.parts, overlap_in, SummedOverlap.merge, source.job)
        warn_if_clipped(overlap.clipped, overlap.clip)
        warn_if_unbalanced(overlap.balance)
    rows = DaskRows(ranges(source), source.like)
    rows.like = with_rows(source.like, rows.rows)
    return judge(rows, settings, _subgroups(rows, source.job.roles.by), overlap)


def with_rows(like: Any, rows: int) -> Any:
    """Return the loss with the number of rows it stands for in its origin."""
    origin = getattr(like, "origin", None)
    return like if origin is None else replace(like, origin=replace(origin, rows=rows))


def _subgroups(rows: DaskRows, by: tuple[str, ...]) -> Iterator[tuple[str, str, Rows]]:
    for name in by:
        levels = rows.levels(name, MOST_LEVELS)
        if len(levels) > MOST_LEVELS:
            raise OrthocalError(
                f"`by` must name columns of at most {MOST_LEVELS} levels; {name!r} has more. Group them."
            )
        for level in levels:
            yield name, str(level), rows.among(name, level)
