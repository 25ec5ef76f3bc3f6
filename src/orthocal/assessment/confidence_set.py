"""Which of several rivals may be the best: the model confidence set (Hansen, Lunde and Nason 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as t_distribution

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.assessment.compare import WEIGHT, Clusters, Moments
from orthocal.assessment.error import POWER
from orthocal.assessment.parts import Coefficient
from orthocal.errors import require_inside, require_whole
from orthocal.folds import generator

DRAWS = 10_000
"""Draws that p-values of more than two rivals rest on: the error of a p-value of 0.05 is 0.002."""
TIED = 1e-12
"""Share of the variances of two losses below which the variance of their difference is rounding."""


class Paired(NamedTuple):
    """A difference of two means of the same rows, and the effective number of units that its t distribution rests on."""

    difference: Coefficient
    effective: float


def paired(found: Moments | Clusters, one: int, other: int | None, level: float) -> Paired:
    """Return the mean of one column minus that of another; of none, where it is None."""
    factors = np.zeros((2, len(found.total)))
    factors[0, WEIGHT] = factors[1, one] = 1.0
    if other is not None:
        factors[1, other] -= 1.0
    mean, error, interval, effective = found.combined(factors).mean(1, level)
    return Paired(Coefficient(mean, error, interval), effective)


@dataclass(frozen=True, eq=False)
class PairedLosses:
    """Paired differences of the mean losses of rivals, each an array of shape (rivals, rivals).

    Losses are relative to that of the first rival, whose own is 0 in every row, so that no difference of large numbers is taken.

    Parameters
    ----------
    difference : array
        Entry (i, j) is the mean loss of i minus that of j.
    variance : array
        Of the difference: its standard error squared.
    effective : array
        Number of units, rows or clusters, that its t distribution rests on.
    """

    difference: Floats
    variance: Floats
    effective: Floats

    @classmethod
    def of(cls, found: Moments | Clusters, rivals: int) -> PairedLosses:
        """Of moments, or sums of clusters, whose first columns beside the weights are the rivals' relative losses."""
        difference, variance = np.zeros((2, rivals, rivals))
        effective = np.full((rivals, rivals), 2.0)
        for i, j in zip(*np.triu_indices(rivals, 1), strict=True):
            one = paired(found, WEIGHT + 1 + int(i), WEIGHT + 1 + int(j), 0.5)
            difference[i, j], difference[j, i] = one.difference.value, -one.difference.value
            variance[i, j] = variance[j, i] = one.difference.standard_error**2
            effective[i, j] = effective[j, i] = one.effective
        return cls(difference, variance, effective)

    @cached_property
    def rounding(self) -> Floats:
        """Variances below which two rivals have the same loss, but for rounding."""
        return np.asarray(TIED * (self.variance[:, :1] + self.variance[:1]))

    @cached_property
    def precision(self) -> Floats:
        """One over the standard error of each difference; 0 where two rivals have the same loss in every row."""
        known = self.variance > self.rounding
        return np.where(known, 1 / np.sqrt(np.where(known, self.variance, 1.0)), 0.0)

    @cached_property
    def statistic(self) -> Floats:
        """The paired t statistics: 0 for rivals with the same losses, infinite for a difference that is the same in every row."""
        always = np.where(np.abs(self.difference) > np.sqrt(self.rounding), np.copysign(np.inf, self.difference), 0.0)
        return np.where(self.precision > 0, self.difference * self.precision, always)

    @cached_property
    def normal(self) -> Floats:
        """Normal statistics with the p-values of the t statistics, so that pairs with few units can stand beside others."""
        return np.asarray(norm.isf(t_distribution.sf(np.abs(self.statistic), self.effective - 1)))

    @property
    def first_alike(self) -> Integers:
        """For each rival the first one that has the same losses in every row: itself, if there is no other."""
        alike = (self.precision == 0) & (self.statistic == 0)
        first: Integers = np.argmax(alike, axis=1).astype(np.int64)
        for place, one in enumerate(first):
            first[place] = first[one]
        return first

    def p_value(self, one: int, other: int) -> float:
        """Return the p-value of the paired t test of two rivals."""
        return float(2 * norm.sf(self.normal[one, other]))

    @property
    def covariance(self) -> Floats:
        """Of the mean losses relative to the first rival: 2 cov(a, b) = var(a) + var(b) - var(a - b)."""
        return (self.variance[:, :1] + self.variance[:1] - self.variance) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfidenceSet:
    """Rivals among which the best is at the confidence level.

    Parameters
    ----------
    p_values : array of shape (rivals,)
        The set at any level is made of the rivals whose p-values are above one minus it; that of the lowest mean loss is 1.
    members : array of bool of shape (rivals,)
    critical : float
        Normal statistic beyond which members would be distinguished.
    level : float
    draws : int
    """

    p_values: Floats
    members: Booleans
    critical: float
    level: float
    draws: int


def confidence_set(
    pairs: PairedLosses, level: float = 0.95, *, draws: int = DRAWS, random_state: Any = 0
) -> ConfidenceSet:
    r"""Return the model confidence set: rivals that cannot be distinguished from the best (Hansen et al. 2011, section 3.1).

    The equality of all mean losses is tested by the range statistic :math:`T_R = \max_{i,j} |t_{ij}|` of paired t statistics.
    Where it is rejected, the rival with the largest :math:`\max_j t_{ij}` is left out, and so on; a rival's p-value is the
    largest of the tests up to the one that leaves it out. Rivals with the same losses stand and fall together. The statistics
    are jointly normal, with the covariance of the losses, of which draws are made; two rivals need none, for theirs is the paired
    t test. If the rows, or clusters, are independent and many, the set contains every rival with the least mean loss with
    probability `level`.

    Parameters
    ----------
    pairs : PairedLosses
    level : float, default 0.95
    draws : int, default 10,000
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.assessment.compare import moments_of
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((2, 500))
    >>> losses = [np.zeros(500), 0.01 + noise[0], 0.5 + noise[1]]  # relative to those of the first rival
    >>> found = confidence_set(PairedLosses.of(moments_of([np.ones(500), *losses], None), 3))
    >>> found.members
    array([ True,  True, False])
    """
    require_inside(level, 0, 1, "level")
    require_whole(draws, 1, "draws")
    first = pairs.first_alike
    one, other = np.triu_indices(len(first), 1)
    observed, drawn = pairs.normal[one, other], _drawn(pairs, one, other, draws, random_state)
    distinct = first == np.arange(len(first))
    p_values, left, largest = np.ones(len(first)), distinct.copy(), 0.0
    while left.sum() > 1:
        kept = left[one] & left[other]
        largest = max(largest, _p_value(float(observed[kept].max()), drawn[kept]))
        worst = int(np.argmax(np.where(left[:, None] & left, pairs.statistic, -np.inf).max(axis=1)))
        p_values[worst], left[worst] = largest, False
    p_values = p_values[first]
    members = p_values > 1 - level
    critical = _critical(drawn[(members & distinct)[one] & (members & distinct)[other]], level)
    return ConfidenceSet(p_values=p_values, members=members, critical=critical, level=level, draws=draws)


def _drawn(pairs: PairedLosses, one: Integers, other: Integers, draws: int, random_state: Any) -> Floats:
    """Draw the absolute statistics of the pairs as they would be, were all mean losses the same.

    Rivals come in the order of their losses, and the root of the covariance is the symmetric one, which is continuous in it: so
    neither the order of the rivals nor that of the rows has a say in what is drawn.
    """
    order = np.argsort(pairs.difference[:, 0], kind="stable")
    values, vectors = np.linalg.eigh(pairs.covariance[np.ix_(order, order)])
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    losses = np.empty((len(order), draws))
    losses[order] = root @ generator(random_state).standard_normal((len(order), draws))
    return np.asarray(np.abs(losses[one] - losses[other]) * pairs.precision[one, other][:, None])


def _p_value(observed: float, drawn: Floats) -> float:
    if len(drawn) == 1:
        return float(2 * norm.sf(observed))
    return (1 + int(np.count_nonzero(drawn.max(axis=0) >= observed))) / (1 + int(drawn.shape[1]))


def _critical(drawn: Floats, level: float) -> float:
    if len(drawn) <= 1:
        return float(norm.ppf((1 + level) / 2))
    return float(np.quantile(drawn.max(axis=0), level))


def rows_to_separate(statistic: float, rows: float, critical: float) -> int | None:
    """Return at how many rows a difference of this normal statistic would be detected with probability 0.8; None for one of 0.

    Examples
    --------
    >>> rows_to_separate(1.0, 1000, 1.96)  # (1.96 + 0.8416)^2 = 7.849
    7850
    """
    if not statistic > 0:
        return None
    return int(np.ceil(rows * ((critical + float(norm.ppf(POWER))) / statistic) ** 2))
