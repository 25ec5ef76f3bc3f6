"""The test of no error in any bin (MATH 7.5 ii)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc
from scipy.stats import f as f_law
from scipy.stats import norm
from scipy.stats import t as t_law

from orthocal.arrays import group_sums
from orthocal.assessment.parts import TestResult
from orthocal.errors import SkewWarning

if TYPE_CHECKING:
    from orthocal.arrays import Floats
    from orthocal.assessment.bins import Binned
    from orthocal.losses import Loss

MOST_SKEW = 0.25
"""Skewness over root of the bin's rows beyond which the test rejects too often (size .09 at .31, .20 at .62)."""


def bins_test(binned: Binned, prediction: Floats, loss: Loss) -> TestResult:
    """Sum the squared t statistics of the bins, each first made normal; with clusters, Hotelling's F."""
    bins = len(binned.residual)
    if not (binned.variance > 0).all():
        return TestResult(None, None, "does not apply: a bin has no noise")
    _warn_if_skewed(binned, prediction, loss)
    if loss.groups is None:
        score = np.abs(binned.residual) / np.sqrt(binned.variance)
        tail = t_law.logsf(score, binned.freedom)
        normal = -norm.ppf(np.exp(np.maximum(tail, -700.0)))
        statistic = float(normal @ normal)
        return TestResult(statistic, float(chdtrc(bins, statistic)), f"chi-square, {bins} bins")
    free = binned.clusters - bins
    if free < 1 or np.linalg.matrix_rank(binned.covariance) < bins:
        return TestResult(None, None, f"does not apply: {binned.clusters} clusters are too few for {bins} bins")
    squared = float(binned.residual @ np.linalg.solve(binned.covariance, binned.residual))
    statistic = squared * free / (bins * (binned.clusters - 1))
    return TestResult(statistic, float(f_law.sf(statistic, bins, free)), f"Hotelling F, {bins} bins")


def _warn_if_skewed(binned: Binned, prediction: Floats, loss: Loss) -> None:
    residual = -loss.derivative(prediction) - binned.residual[binned.index] * loss.mass
    count = np.bincount(binned.index, minlength=len(binned.residual))
    square = residual * residual
    second = group_sums(binned.index, square, len(count)) / count
    third = group_sums(binned.index, square * residual, len(count)) / count
    # Averaged over bins, so that the chance skewness of symmetric heavy tails cancels.
    skewness = abs(float(np.average(third / second**1.5, weights=count)))
    worst, by_chance = skewness / float(np.sqrt(count.mean())), 3 * float(np.sqrt(6 / count.sum()))
    if worst > MOST_SKEW and skewness > by_chance:
        warnings.warn(
            f"Residuals are strongly skewed for the number of rows in a bin (skewness over root rows {worst:.2f}, above "
            f"{MOST_SKEW}): the bins test rejects too often. Use fewer `bins`, or rely on the linear test.",
            SkewWarning,
            stacklevel=4,
        )
