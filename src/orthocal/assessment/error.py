"""Size of the calibration error: debiased, with intervals (MATH 7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, chndtr, ndtr
from scipy.stats import norm

from orthocal.assessment.parts import Distance

if TYPE_CHECKING:
    from orthocal.arrays import Floats
    from orthocal.assessment.bins import Binned

LARGE = 1e8
AT_ONCE = 128
"""Draws that are held at the same time."""
POWER = 0.8
"""Chance of detection that the minimum detectable error refers to."""


def squared_error(binned: Binned) -> tuple[float, float]:
    r"""Return the debiased squared error :math:`\sum_b w_b U_b` and its standard error.

    Variance = degenerate part :math:`2\,\mathrm{tr}((WV)^2)`, linear part :math:`4 (w\bar r)'V(w\bar r)` with products of means
    debiased, and the sampling of the bin shares.
    """
    share, covariance = binned.share, binned.covariance
    estimate = float(share @ binned.pairs)
    weights = np.outer(share, share)
    products = np.outer(binned.residual, binned.residual) - covariance
    np.fill_diagonal(products, binned.pairs)
    degenerate = 2 * float((weights * covariance**2).sum())
    centred = binned.pairs - estimate
    linear = 4 * float((weights * products * covariance).sum()) + float(centred @ binned.share_variance @ centred)
    return estimate, float(np.sqrt(degenerate + max(linear, 0.0)))


def error_interval(binned: Binned, level: float) -> tuple[float, float]:
    r"""Return the interval of the error by inverting a noncentral chi-square.

    :math:`S = \sum_b w_b \bar r_b^2` is :math:`g` times a noncentral chi-square with :math:`k` degrees of freedom and
    noncentrality :math:`Cal^2/g`, with :math:`g, k` matched to the covariance of the bin means.
    """
    statistic, scale, freedom = quadratic_form(binned)
    if scale == 0:
        return float(np.sqrt(statistic)), float(np.sqrt(statistic))
    tail = (1 - level) / 2
    low = _noncentrality(statistic / scale, freedom, 1 - tail)
    high = _noncentrality(statistic / scale, freedom, tail)
    return float(np.sqrt(scale * low)), float(np.sqrt(scale * high))


def quadratic_form(binned: Binned) -> tuple[float, float, float]:
    """Return (S, g, k): the plug-in squared error, and scale and degrees of freedom of its law at no error."""
    scaled = binned.share[:, None] * binned.covariance
    trace, square = float(np.trace(scaled)), float((scaled * scaled.T).sum())
    statistic = float(binned.share @ binned.residual**2)
    return (statistic, square / trace, trace**2 / square) if trace > 0 else (statistic, 0.0, 0.0)


def _noncentrality(x: float, freedom: float, probability: float) -> float:
    """Return the noncentrality at which the cdf at x equals `probability`; 0 when even the central cdf is below it."""

    def gap(noncentrality: float) -> float:
        if x > LARGE:  # the series gives up; the normal law it tends to is exact to the digits that matter
            spread = np.sqrt(2 * freedom + 4 * noncentrality)
            return float(ndtr((x - freedom - noncentrality) / spread)) - probability
        return float(chndtr(x, freedom, noncentrality)) - probability

    if gap(0.0) <= 0:
        return 0.0
    reach = 10 * np.sqrt(x + freedom) + 50
    return float(brentq(gap, max(0.0, x - freedom - reach), x + reach, xtol=1e-10 * (1 + x), rtol=1e-12))


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
    are made bin by bin and never touch the rows. Each bin's draws are widened as in a t law, for its variance is estimated
    too, from as many rows (or clusters) as it has.
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


def minimum_detectable_error(binned: Binned, level: float) -> float:
    """Return the error at which the interval would start above 0 with probability 0.8."""
    _, scale, freedom = quadratic_form(binned)
    if scale == 0:
        return 0.0
    critical = float(chdtri(freedom, (1 - level) / 2))
    if 1 - chndtr(critical, freedom, 0) >= POWER:
        return 0.0
    needed = brentq(lambda extra: 1 - chndtr(critical, freedom, extra) - POWER, 0, 10 * (critical + freedom) + 100)
    return float(np.sqrt(scale * needed))
