"""compare: did a change of predictions do good or harm?"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Integers
from orthocal.assessment.limits import require_cost
from orthocal.assessment.parts import Decision
from orthocal.assessment.records import Comparison
from orthocal.assessment.sweeps import cluster_sums, merged
from orthocal.assessment.value import Squares, error_of_mean, jackknifed, net_gain
from orthocal.errors import require_inside
from orthocal.losses import ArmScores, Loss, QuadraticLoss, require_loss, rows_that_count
from orthocal.observations import as_numbers

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

    def combined(self, factors: Floats) -> Moments:
        """Of sums of the columns, each times a factor; one row of factors for each."""
        return Moments(self.units, factors @ self.total, factors @ self.scatter @ factors.T)

    def squares(self, factors: Floats) -> float:
        """Return the sum of squares of a mixture of the columns that adds up to 0, so that its squares are scatter alone."""
        return max(float(factors @ self.scatter @ factors), 0.0)

    def mean(self, column: int, level: float) -> tuple[float, float, tuple[float, float], float]:
        """Return a column's sum over that of the weights, with standard error, interval and effective number of units."""
        total = float(self.total[WEIGHT])
        mean = float(self.total[column]) / total
        off = np.zeros(len(self.total))
        off[column], off[WEIGHT] = 1.0, -mean
        squares = self.squares(off)
        weights = float(self.scatter[WEIGHT, WEIGHT]) + total**2 / self.units
        return mean, *error_of_mean(mean, Squares(self.units, total, squares, weights), level)


class Clusters(NamedTuple):
    """Sums of columns by cluster; a cluster may lie in several partitions."""

    codes: Integers
    sums: Floats

    def merge(self, other: Clusters) -> Clusters:
        """Of both."""
        return Clusters(*merged([self, other]))

    def combined(self, factors: Floats) -> Clusters:
        """Of sums of the columns, each times a factor; one row of factors for each."""
        return Clusters(self.codes, factors @ self.sums)

    def squares(self, factors: Floats) -> float:
        """Return the sum over clusters of squares of a mixture of the columns."""
        own = factors @ self.sums
        return float(own @ own)

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


DIFFERENCE, GAIN, CHANGED = range(WEIGHT + 1, WEIGHT + 4)
"""Columns of what is summed beside the weights: loss after minus before, gain of changed decisions, weight of them."""


def compare(
    before: Any,
    after: Any,
    loss: Loss,
    *,
    level: float = 0.95,
    cost: float | None = None,
    rivals: tuple[str, str] | None = None,
) -> Comparison:
    """Compare two predictions of the same rows by their mean loss, row by row (mathematics 10.4).

    Valid on rows that were not used to fit `after`. A difference of mean losses is half a difference of mean squared errors, for
    a squared loss, up to the nuisances' second-order bias (mathematics 10.4, 12.10).

    Parameters
    ----------
    before, after : array of shape (rows,)
        Two predictions of the same rows, unseen by the model and by the map.
    loss : Loss
        Of those rows.
    level : float, default 0.95
        Confidence level of the interval.
    cost : float, optional
        What treating one person costs: adds the share of rows whose decision changes, and what that gains.
    rivals : (str, str), optional
        Names of two models, where these are not one prediction before and after a change: the verdict is worded for rivals.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from orthocal import compare, orthogonal_loss
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, random_state=0)
    >>> loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    >>> compare(1 + 2 * data.effect, data.effect, loss).verdict
    'improved'
    >>> compare(1 + 2 * data.effect, data.effect, loss, rivals=("forest", "lasso")).verdict
    'lasso has the lower loss'
    """
    require_inside(level, 0, 1, "level")
    require_cost(cost)
    require_loss(loss)
    before = as_numbers(before, "before", len(loss))
    after = as_numbers(after, "after", len(loss))
    before, _ = rows_that_count(before, loss)
    after, loss = rows_that_count(after, loss)
    return concluded(change_moments(before, after, loss, cost), level, cost, rivals)


def change_moments(before: Floats, after: Floats, loss: Loss, cost: float | None) -> Moments | Clusters:
    """Return what a comparison needs to know of some rows: moments, or sums of clusters, of the columns named above."""
    columns = [loss.weight, loss_change(loss, before, after)]
    if cost is not None:
        flips = (after > cost).astype(float) - (before > cost)
        columns += [flips * net_gain(loss, cost), loss.weight * np.abs(flips)]
    return moments_of(columns, loss.groups)


@singledispatch
def loss_change(loss: Any, before: Floats, after: Floats) -> Floats:
    """Return each row's loss after minus its loss before."""
    return np.asarray(loss.at(after).value(after) - loss.at(before).value(before))


@loss_change.register(QuadraticLoss)
def _(loss: QuadraticLoss, before: Floats, after: Floats) -> Floats:
    """In one product: far from 0 both losses are large, and their difference would be lost in rounding."""
    return (after - before) * (0.5 * loss.denominator * (before + after) - loss.numerator)


@loss_change.register(ArmScores)
def _(scores: ArmScores, before: Floats, after: Floats) -> Floats:
    """Of several arms, whose contrasts are the columns of a prediction: the sum of the changes of their losses."""
    return np.asarray(scores.weight * ((after - before) * (0.5 * (before + after) - scores.gains)).sum(axis=1))


def concluded(
    found: Moments | Clusters, level: float, cost: float | None, rivals: tuple[str, str] | None = None
) -> Comparison:
    """Return the verdict on the difference of mean losses, after minus before."""
    decision = None
    if cost is not None:
        share = float(found.total[CHANGED]) / float(found.total[WEIGHT])
        decision = Decision(float(cost), share, *found.mean(GAIN, level)[:3])
    mean, error, (low, high), effective = found.mean(DIFFERENCE, level)
    harm = float(t_distribution.sf(mean / error, effective - 1)) if error > 0 else float(mean <= 0)
    better, same, worse = "improved", "no detectable change", "harmed"
    if rivals is not None:
        worse, better = (f"{name} has the lower loss" for name in rivals)
        same = "no detectable difference"
    word = better if high < 0 else worse if low > 0 else same
    return Comparison(
        risk_difference=mean,
        standard_error=error,
        interval=(low, high),
        p_value_harm=harm,
        verdict=word,
        level=level,
        decision=decision,
        rivals=rivals,
    )
