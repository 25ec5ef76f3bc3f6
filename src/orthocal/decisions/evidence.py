"""What is known of rules together: estimates and errors of any mixture of their mean gains and costs, so that all are paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.stats import norm
from scipy.stats import t as t_distribution

from orthocal.arrays import ROUNDING, Floats
from orthocal.assessment.compare import Clusters, Moments
from orthocal.assessment.parts import Coefficient
from orthocal.assessment.ratios import Shown
from orthocal.decisions.records import Ratio

Measure: TypeAlias = "tuple[str, str]"
"""A rule and what is measured of it: gain, cost, promised, spend."""
Parts: TypeAlias = Mapping[Measure, float]
"""A mixture: how often each mean is counted. Means that are not known, as those of treating no one, are 0."""
NEAR = 1.5
"""Blanket rules within so many paired standard errors of the best may be the best."""
NORMALS = 40_000
"""Draws from which the critical value of the largest of several normal variables is taken."""


class Estimate(NamedTuple):
    """A number with standard error, interval and the effective number of units behind it."""

    value: float
    standard_error: float
    interval: tuple[float, float]
    effective: float

    @property
    def coefficient(self) -> Coefficient:
        """Without the number of units."""
        return Coefficient(*self[:3])


class RuleEvidence(Protocol):
    """Whatever estimates mixtures of means."""

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        ...

    def mixture(self, parts: Parts) -> Estimate:
        """Return a mixture of means with its error."""
        ...


@dataclass(frozen=True, eq=False)
class Averages:
    """Rules that do not depend on the rows: means, by moments of rows or of clusters.

    Parameters
    ----------
    found : Moments or Clusters
        Weights first, then one column for each of `keys`, times the weights.
    keys : list of Measure
    level : float
    """

    found: Moments | Clusters
    keys: Sequence[Measure]
    level: float

    def mixture(self, parts: Parts) -> Estimate:
        """Return a mixture of means with its error."""
        rows = np.zeros((2, len(self.keys) + 1))
        rows[0, 0] = 1.0
        rows[1, 1:] = counts(parts, self.keys)
        return Estimate(*self.found.combined(rows).mean(1, self.level))


@dataclass(frozen=True, eq=False)
class Draws:
    """Rules that a budget cuts off: estimates, and the same under multiplier weights.

    Parameters
    ----------
    keys : list of Measure
    value : array of shape (keys,)
    draws : array of shape (draws, keys)
    effective : float
        Number of rows, or clusters, by their weights.
    level : float
    """

    keys: Sequence[Measure]
    value: Floats
    draws: Floats
    effective: float
    level: float

    def mixture(self, parts: Parts) -> Estimate:
        """Return a mixture of means with its error."""
        mix = counts(parts, self.keys)
        value, error = float(self.value @ mix), float(np.std(self.draws @ mix, ddof=1))
        error *= float(np.sqrt(self.effective / (self.effective - 1)))
        reach = float(t_distribution.ppf((1 + self.level) / 2, self.effective - 1)) * error
        return Estimate(value, error, (value - reach, value + reach), self.effective)


def counts(parts: Parts, keys: Sequence[Measure]) -> Floats:
    """Return how often each mean is counted."""
    return np.array([parts.get(key, 0.0) for key in keys], dtype=np.float64)


def minus(one: Parts, other: Parts) -> dict[Measure, float]:
    """Return one mixture less another."""
    return {key: one.get(key, 0.0) - other.get(key, 0.0) for key in {**one, **other}}


def over_best(
    found: RuleEvidence, rule: Parts, blankets: Mapping[str, Parts], rivals: Sequence[Parts] = ()
) -> tuple[Coefficient, tuple[str, ...]]:
    r"""Return the gain of a rule over the best blanket rule, :math:`\min_k (V - V_k)`, and the rules that may be the best.

    Both are chosen from the same rows (mathematics 10.8): the best blanket rule, and the rule among all by prediction (`rivals`,
    itself one of them). The lower end, :math:`\min_k (d_k - c s_k)`, needs no allowance for the first choice: it is above the
    truth only if the end of the truly best is; c is the critical value of the largest gain of the rivals together (sup-t). The
    upper end, :math:`\min_k (d_k + c' s_k)`, is for the minimum over all blanket rules that are near the best: c' is the critical
    value of the largest of these paired differences together.
    """
    value = {name: found.mixture(parts).value for name, parts in blankets.items()}
    best = max(value, key=lambda name: value[name])
    gaps = {name: difference(found, blankets[best], parts) for name, parts in blankets.items()}
    near = [best, *(name for name, gap in gaps.items() if name != best and gap.value <= NEAR * gap.standard_error)]
    paired = {name: difference(found, rule, blankets[name]) for name in near}
    noisy = [minus(rule, blankets[name]) for name, one in paired.items() if one.standard_error > 0]
    tail, (first, *_) = (1 - found.level) / 2, paired.values()
    of_blankets = largest_of(correlations_of(found, noisy), tail, first.effective)
    gains = [minus(one, blankets[best]) for one in rivals if difference(found, one, blankets[best]).standard_error > 0]
    of_rivals = largest_of(correlations_of(found, gains), tail, first.effective)
    low = min(one.value - of_rivals * one.standard_error for one in paired.values())
    high = min(one.value + of_blankets * one.standard_error for one in paired.values())
    return Coefficient(first.value, first.standard_error, (low, max(low, high))), tuple(near)


def difference(found: RuleEvidence, one: Parts, other: Parts) -> Estimate:
    """Return one mixture less another: exactly 0 where they differ by rounding alone, as rules do that treat the same people."""
    apart = found.mixture(minus(one, other))
    size = max(abs(number) for parts in (one, other) for number in found.mixture(parts)[:2])
    if max(abs(apart.value), apart.standard_error) <= ROUNDING * size:
        return Estimate(0.0, 0.0, (0.0, 0.0), apart.effective)
    return apart


def correlations_of(found: RuleEvidence, mixtures: Sequence[Parts]) -> Floats:
    """Return the correlations of estimated mixtures, from the errors of their differences in units of their own errors."""
    standard = [multiplied(parts, 1 / found.mixture(parts).standard_error) for parts in mixtures]
    correlations = np.eye(len(standard))
    for i, j in combinations(range(len(standard)), 2):
        apart = found.mixture(minus(standard[i], standard[j])).standard_error
        correlations[i, j] = correlations[j, i] = 1 - apart**2 / 2
    return correlations


def multiplied(parts: Parts, by: float) -> dict[Measure, float]:
    """Return a mixture times a number."""
    return {key: count * by for key, count in parts.items()}


def largest_of(correlations: Floats, tail: float, effective: float) -> float:
    """Return what the largest of some normal variables exceeds with probability `tail`, widened as the t distribution is."""
    if len(correlations) <= 1:
        return float(t_distribution.isf(tail, effective - 1))
    size, direction = np.linalg.eigh(correlations)
    root = direction * np.sqrt(np.maximum(size, 0.0))
    critical = float(np.quantile((root @ _normals(len(size))).max(axis=0), 1 - tail))
    return as_t_quantile(critical, effective)


@cache
def _normals(count: int) -> Floats:
    """Return the same independent normal variables each time."""
    return np.random.default_rng(0).standard_normal((count, NORMALS))


def as_t_quantile(critical: float, effective: float) -> float:
    """Return the quantile of the t distribution at the probability that a quantile of the normal one has."""
    return float(t_distribution.isf(norm.sf(critical), effective - 1))


def ratio_of(found: RuleEvidence, top: Parts, bottom: Parts) -> Ratio:
    """Return a ratio of two mean gains, costs or spends, with Fieller's interval, which says so where it has no end."""
    over, under = found.mixture(top), found.mixture(bottom)
    if under.value == 0:
        return Ratio(None, None, "the divisor is 0")
    sign = float(np.sign(under.value))  # (-r) / (-m) is r / m
    squares = np.array([over.standard_error**2, _covariance(found, top, bottom), under.standard_error**2])
    noisy = [one.effective for one in (over, under) if one.standard_error > ROUNDING * abs(one.value)]
    effective = min(noisy, default=over.effective)  # a cost that is the same for all has no error but rounding
    critical = float(t_distribution.ppf((1 + found.level) / 2, effective - 1))
    shown = Shown(np.array([sign * over.value]), np.array([sign * under.value]), squares[:, None])
    low, high = (float(end[0]) for end in shown.interval(critical))
    value = over.value / under.value
    if np.isnan(low):
        return Ratio(value, None, "the interval has no end: the divisor is not distinguishable from 0")
    return Ratio(value, (low, high))


def _covariance(found: RuleEvidence, one: Parts, other: Parts) -> float:
    errors = [found.mixture(parts).standard_error for parts in (one, other)]
    if min(errors) == 0:
        return 0.0
    return float(correlations_of(found, [one, other])[0, 1]) * errors[0] * errors[1]
