"""Did calibration do good or harm on rows of a cluster: the comparison in memory, from moments of the partitions."""

from __future__ import annotations

from typing import Any

from orthocal.assessment import Comparison
from orthocal.assessment.compare import change_moments, concluded
from orthocal.assessment.moments import Clusters, Moments
from orthocal.engines.dask.partition_loss import Job, loss_of
from orthocal.engines.dask.passes import reduced
from orthocal.engines.dask.source import Source
from orthocal.errors import require_inside
from orthocal.maps import Map


def compared(source: Source, map_: Map, *, level: float = 0.95, cost: float | None = None) -> Comparison:
    """Compare predictions with what a map makes of them, in one pass: the numbers of `orthocal.compare`.

    The source is one of rows the map has not seen; its own map is not looked at.
    """
    require_inside(level, 0, 1, "level")
    found: Any = reduced(source.parts, _moments, lambda one, other: one.merge(other), source.job, map_, cost)
    return concluded(found, level, cost)


def _moments(part: Any, job: Job, map_: Map, cost: float | None) -> Moments | Clusters | None:
    """Summary of a partition."""
    before, loss = loss_of(part, job)
    return change_moments(before, map_.predict(before), loss, cost) if len(before) else None
