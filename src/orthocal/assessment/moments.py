"""Moments of what is summed over rows or clusters: enough for a mean with its error, and merged without loss of digits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.assessment.sweeps import cluster_sums, merged
from orthocal.assessment.value import Squares, error_of_mean, jackknifed

WEIGHT = 0
"""Column that holds the weights."""


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
        """Return a column's sum over that of the weights, with standard error, interval and effective number of units."""
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
        return Clusters(*merged([self, other]))

    @property
    def total(self) -> Floats:
        """Sums of all."""
        return np.asarray(self.sums.sum(axis=1))

    def mean(self, column: int, level: float) -> tuple[float, float, tuple[float, float], float]:
        """Return a column's sum over that of the weights, with standard error, interval and effective number of units."""
        weight, mean = self.sums[WEIGHT], float(self.total[column]) / float(self.total[WEIGHT])
        return mean, *error_of_mean(mean, jackknifed(self.sums[column] - mean * weight, weight), level)


def moments_of(columns: list[Floats], groups: Integers | None) -> Moments | Clusters:
    """Return the moments of rows, or the sums of their clusters; weights come first."""
    return Moments.of(np.array(columns)) if groups is None else Clusters(*cluster_sums(groups, columns))
