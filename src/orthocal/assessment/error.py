"""Size of the calibration error: debiased, with intervals (mathematics 7.2 to 7.5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, chndtr, ndtr
from scipy.stats import f as f_distribution
from scipy.stats import norm

from orthocal.arrays import Floats
from orthocal.assessment.bins import Binned
from orthocal.assessment.parts import Distance

LARGE = 1e8
AT_ONCE = 128
"""Draws that are held at the same time."""
POWER = 0.8
"""Chance of detection that the minimum detectable error refers to."""
MOST_BEND = 0.25
"""Cap on the variance that the bin shares add, so that the upper end of the interval does not run away with few clusters."""


def squared_error(binned: Binned) -> tuple[float, float]:
    r"""Return the debiased squared error :math:`\sum_b w_b U_b` and its standard error.

    Variance = degenerate part :math:`2\,\mathrm{tr}((WV)^2)`, linear part :math:`4 (w\bar r)'V(w\bar r)` with products of means
    debiased, and the sampling of the bin shares.
    """
    estimate = float(binned.share @ binned.pairs)
    linear = 4 * _linear_part(binned) + _share_part(binned, estimate)
    return estimate, float(np.sqrt(2 * float((_noise(binned) ** 2).sum()) + max(linear, 0.0)))


def _noise(binned: Binned) -> Floats:
    """Return the eigenvalues of WV, smallest first: noise alone adds their sum to S, with a variance of twice their squares."""
    root = np.sqrt(binned.share)
    return np.asarray(np.linalg.eigvalsh(root[:, None] * binned.covariance * root))


def _linear_part(binned: Binned) -> float:
    """Return (w m)' V (w m) for the bins' true errors m, with unbiased estimates in place of their products."""
    products = np.outer(binned.residual, binned.residual) - binned.covariance
    np.fill_diagonal(products, binned.pairs)
    return float(binned.share @ (products * binned.covariance) @ binned.share)


def _share_part(binned: Binned, estimate: float) -> float:
    """Return what the sampling of the bin shares adds to the variance."""
    centred = binned.pairs - estimate
    return float(centred @ binned.share_variance @ centred)


class Spread(NamedTuple):
    r"""How :math:`S = \sum_b w_b \bar r_b^2` varies about a squared error c: as a multiple of a noncentral chi-square.

    S has mean :math:`\mathrm{tr}(WV) + c`. Its variance :math:`V(c)` is that of noise alone, :math:`2\,\mathrm{tr}((WV)^2)`; of
    noise times error in the same bins, :math:`4\rho \min(c, \hat c) + 4\rho_+ (c - \hat c)_+`; and of the bin shares,
    :math:`q c^2`. A multiple g of a noncentral chi-square with k degrees of freedom and noncentrality c/g has this mean and
    variance where :math:`g = V(c) / (2\,\mathrm{tr}(WV) + 4c)` and :math:`k = \mathrm{tr}(WV)/g`.

    Parameters
    ----------
    trace, square : float
        :math:`\mathrm{tr}(WV)` and :math:`\mathrm{tr}((WV)^2)`.
    slope : float
        :math:`\rho`, the noise where the estimated error lies.
    estimate, beyond : float
        :math:`\hat c`, and :math:`\rho_+`, the noise where error that was missed would lie.
    bend : float
        :math:`q`.
    """

    trace: float
    square: float
    slope: float
    estimate: float
    beyond: float
    bend: float

    def cdf(self, statistic: float, error: float) -> float:
        """Probability that S is at most `statistic` at a squared error."""
        seen = min(error, self.estimate)
        linear = self.slope * seen + self.beyond * (error - seen)
        variance = 2 * self.square + 4 * linear + self.bend * error**2
        scale = variance / (2 * self.trace + 4 * error)
        if statistic > LARGE * scale:  # the series gives up; the normal distribution it tends to is exact enough
            return float(ndtr((statistic - self.trace - error) / np.sqrt(variance)))
        return float(chndtr(statistic / scale, self.trace / scale, error / scale))

    def error_at(self, statistic: float, probability: float) -> float:
        """Return the squared error at which the cdf is as low as `probability`: 0 where it is at no error."""

        def gap(error: float) -> float:
            return self.cdf(statistic, error) - probability

        if gap(0.0) <= 0:
            return 0.0
        above = statistic
        while gap(above) > 0:
            above *= 2
        return float(brentq(gap, 0.0, above, xtol=1e-12 * statistic, rtol=1e-12))


def spread(binned: Binned, tail: float) -> Spread:
    r"""Return how the statistic varies, from estimates of where the error lies.

    The estimate of :math:`\rho = (wm)'V(wm) / m'Wm` is as noisy as that of the error: it is kept among the values that the noise
    has, and where the error is hardly distinguishable from 0 it gives way to :math:`\mathrm{tr}((WV)^2)/\mathrm{tr}(WV)`. Error
    that was missed was covered by noise, so it is placed where noise varies most:
    :math:`\rho_+ = \mathrm{tr}((WV)^3)/\mathrm{tr}((WV)^2)`.
    """
    noise = _noise(binned)
    trace, square, cube = (float((noise**power).sum()) for power in (1, 2, 3))
    estimate = max(float(binned.share @ binned.pairs), 0.0)
    slope, bend = square / trace, 0.0
    if estimate > 0:
        known = estimate**2 / (estimate**2 + 2 * square)
        slope += known * (float(np.clip(_linear_part(binned) / estimate, noise[0], noise[-1])) - slope)
        bend = known * _share_part(binned, estimate) / estimate**2
    return Spread(
        trace, square, slope, estimate, max(slope, cube / square), min(bend, MOST_BEND, -1 / float(np.log(tail)))
    )


def error_interval(binned: Binned, level: float) -> tuple[float, float]:
    r"""Return the interval of the error: those at which :math:`S = \sum_b w_b \bar r_b^2` is in neither tail of its distribution.

    Lower end 0 where no error at all would show as much, and where the debiased error is not above 0.
    """
    statistic = float(binned.share @ binned.residual**2)
    if not (binned.variance > 0).any():
        return float(np.sqrt(statistic)), float(np.sqrt(statistic))
    tail = (1 - level) / 2
    about = spread(binned, tail)
    low, high = (np.sqrt(about.error_at(statistic, share)) for share in (1 - tail, tail))
    return float(low) if _is_clear(binned, statistic, about, tail) else 0.0, float(high)


def size_interval(interval: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of a number's size from that of the number, whose sign is known.

    For the error of a constant prediction, the size of its one gap: so it says what the interval of the gap says.
    """
    low, high = interval
    return max(low, -high, 0.0), max(-low, high)


def excludes_zero(binned: Binned, level: float) -> bool:
    """Return whether the lower end of `error_interval` is above 0, without looking for the ends."""
    statistic = float(binned.share @ binned.residual**2)
    if not (binned.variance > 0).any():
        return statistic > 0
    tail = (1 - level) / 2
    about = spread(binned, tail)
    return _is_clear(binned, statistic, about, tail) and about.cdf(statistic, 0.0) > 1 - tail


def _is_clear(binned: Binned, statistic: float, about: Spread, tail: float) -> bool:
    """Whether the debiased error is above 0, and no error at all would seldom show as much."""
    return about.estimate > 0 and statistic > critical_value(binned, about.trace, about.square, tail)


def critical_value(binned: Binned, trace: float, square: float, tail: float) -> float:
    """Return what S exceeds with probability `tail` at no error: F in place of chi-square where few clusters tell the noise."""
    freedom = trace**2 / square
    if np.isinf(binned.effective):
        return square / trace * float(chdtri(freedom, tail))
    return trace * float(f_distribution.isf(tail, freedom, max(binned.effective - 1, 1.0)))


def mean_absolute_error(binned: Binned) -> Distance:
    """Return the L1 error with a one-step correction for the folding of noise, and its value at no error."""
    error = np.sqrt(binned.variance)
    plain = np.abs(binned.residual)
    null = float(binned.share @ error) * float(np.sqrt(2 / np.pi))
    safe = np.where(error > 0, error, 1.0)
    score = plain / safe
    folded = error * np.sqrt(2 / np.pi) * np.exp(-(score**2) / 2) + plain * (1 - 2 * norm.cdf(-score))
    corrected = 2 * plain - np.where(error > 0, folded, plain)
    return Distance(float(binned.share @ corrected), null=null)


def largest_error(binned: Binned, level: float, draws: int, rng: np.random.Generator) -> Distance:
    """Return the Linf error and the critical value of the simultaneous band, in standard errors.

    With normal multipliers the bootstrap of the bin means is exactly normal with their estimated covariance, so the draws
    are made bin by bin and never touch the rows. Each bin's draws are widened as in a t distribution, for its variance is
    estimated too, from as many rows (or clusters) as it has.
    """
    error = np.sqrt(binned.variance)
    value = float(np.abs(binned.residual).max())
    if not (error > 0).any():
        return Distance(value, band=0.0)
    correlation = binned.covariance / np.outer(np.where(error > 0, error, 1), np.where(error > 0, error, 1))
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T  # the symmetric root: rounding does not turn it
    largest = [_largest_of(binned.freedom, root, min(AT_ONCE, draws - done), rng) for done in range(0, draws, AT_ONCE)]
    return Distance(value, band=float(np.quantile(np.concatenate(largest), level)))


def _largest_of(freedom: Floats, root: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw the largest of the bins' statistics."""
    widened = np.sqrt(rng.chisquare(freedom, (draws, len(freedom))) / freedom)
    largest: Floats = np.abs(rng.standard_normal((draws, len(freedom))) @ root.T / widened).max(axis=1)
    return largest


def rows_to_meet(binned: Binned, tolerance: float, level: float, rows: int) -> int:
    """Return at how many rows the interval would end at the tolerance with probability 0.8, were there no error.

    With k times as many rows noise, S and squared errors are all k times smaller, so what S is at most with that probability
    now tells what it will be.
    """
    noise = _noise(binned)
    trace, square, cube = (float((noise**power).sum()) for power in (1, 2, 3))
    if not trace > 0:
        return rows
    statistic = critical_value(binned, trace, square, 1 - POWER)
    about = Spread(trace, square, square / trace, max(statistic - trace, 0.0), cube / square, 0.0)
    return int(np.ceil(rows * about.error_at(statistic, (1 - level) / 2) / tolerance**2))


def minimum_detectable_error(binned: Binned, level: float) -> float:
    """Return the error, the same in every bin, at which the interval starts above 0 with probability 0.8."""
    noise = _noise(binned)
    trace, square = float(noise.sum()), float(noise @ noise)
    if not trace > 0:
        return 0.0
    critical = critical_value(binned, trace, square, (1 - level) / 2)
    slope = float(binned.share @ binned.covariance @ binned.share)
    return float(np.sqrt(Spread(trace, square, slope, 0.0, slope, 0.0).error_at(critical, 1 - POWER)))
