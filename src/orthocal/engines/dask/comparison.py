"""Did calibration do good or harm on rows of a cluster: the comparison in memory, from moments of the partitions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.assessment import Comparison
from orthocal.assessment.compare import concluded, loss_change
from orthocal.assessment.parts import Decision
from orthocal.assessment.sweeps import cluster_sums
from orthocal.assessment.sweeps import merged as merged_clusters
from orthocal.assessment.value import Squares, error_of_mean, jackknifed, net_gain
from orthocal.engines.dask.partition_loss import Job, loss_of
from orthocal.engines.dask.passes import merged
from orthocal.engines.dask.source import Source
from orthocal.errors import require_inside
from orthocal.maps import Map

WEIGHT, DIFFERENCE, GAIN, CHANGED = range(4)
"""Columns of what is summed: weight, loss after minus before, gain of changed decisions, weight of them."""


class Moments(NamedTuple):
    """Moments of columns about their own means, so that merging loses no digits.

    Parameters
    ----------
    units : int
        Rows, or clusters.
    total : array of shape (columns,)
        Sums.
    scatter : array of shape (columns, columns)
        Summed products of what is left when each column's mean is taken off.
    """

    units: int
    total: Floats
    scatter: Floats

    @classmethod
    def of(cls, columns: Floats) -> Moments:
        """Of some units."""
        total, units = columns.sum(axis=1), columns.shape[1]
        centred = columns - (total / units)[:, None]
        return cls(units, total, centred @ centred.T)

    def merge(self, other: Moments) -> Moments:
        """Of the units of both (Chan, Golub and LeVeque 1979)."""
        units = self.units + other.units
        gap = other.total / other.units - self.total / self.units
        between = np.outer(gap, gap) * (self.units * other.units / units)
        return Moments(units, self.total + other.total, self.scatter + other.scatter + between)

    def mean(self, column: int, level: float) -> tuple[float, float, tuple[float, float], float]:
        """Return what `weighted_mean` does of a column."""
        total = float(self.total[WEIGHT])
        mean = float(self.total[column]) / total
        off = np.zeros(len(self.total))
        off[column], off[WEIGHT] = 1.0, -mean  # such rests add to 0, so their squares are scatter alone
        squares = max(float(off @ self.scatter @ off), 0.0)
        weights = float(self.scatter[WEIGHT, WEIGHT]) + total**2 / self.units
        return mean, *error_of_mean(mean, Squares(self.units, total, squares, weights), level)


class Clusters(NamedTuple):
    """Sums of columns by cluster; a cluster may lie in several partitions."""

    codes: Integers
    sums: Floats

    def merge(self, other: Clusters) -> Clusters:
        """Of both."""
        return Clusters(*merged_clusters([self, other]))

    @property
    def total(self) -> Floats:
        """Sums of all."""
        return np.asarray(self.sums.sum(axis=1))

    def mean(self, column: int, level: float) -> tuple[float, float, tuple[float, float], float]:
        """Return what `weighted_mean` does of a column."""
        weight, mean = self.sums[WEIGHT], float(self.total[column]) / float(self.total[WEIGHT])
        return mean, *error_of_mean(mean, jackknifed(self.sums[column] - mean * weight, weight), level)


def compared(source: Source, map_: Map, *, level: float = 0.95, cost: float | None = None) -> Comparison:
    """Compare predictions with what a map makes of them, in one pass: the numbers of `orthocal.compare`.

    Parameters
    ----------
    source : Source
        Of rows the map has not seen; its own map is not looked at.
    map_ : Map
    level : float, default 0.95
        Confidence level of the interval.
    cost : float, optional
        What treating one person costs.
    """
    require_inside(level, 0, 1, "level")
    found: Any = merged(source.parts, _columns, _merge, source.job, map_, cost)
    decision = None
    if cost is not None:
        share = float(found.total[CHANGED]) / float(found.total[WEIGHT])
        decision = Decision(float(cost), share, *found.mean(GAIN, level)[:3])
    mean, error, interval, effective = found.mean(DIFFERENCE, level)
    return concluded(mean, error, interval, effective, level, decision)


def _merge(one: Any, other: Any) -> Any:
    return one.merge(other)


def _columns(part: Any, job: Job, map_: Map, cost: float | None) -> Moments | Clusters | None:
    """Question: moments of a partition, or sums of its clusters."""
    before, loss = loss_of(part, job)
    if not len(before):
        return None
    after = map_.predict(before)
    columns = [loss.weight, loss_change(loss, before, after)]
    if cost is not None:
        flips = (after > cost).astype(float) - (before > cost)
        columns += [flips * net_gain(loss, cost), loss.weight * np.abs(flips)]
    if loss.groups is None:
        return Moments.of(np.array(columns))
    return Clusters(*cluster_sums(loss.groups, columns))
