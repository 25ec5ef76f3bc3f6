"""The test of no error in any bin (MATH 7.5 ii)."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc
from scipy.stats import f as f_law
from scipy.stats import norm
from scipy.stats import t as t_law

from orthocal.assessment.parts import TestResult
from orthocal.assessment.sweeps import Runs
from orthocal.errors import SkewWarning

if TYPE_CHECKING:
    from orthocal.arrays import Floats
    from orthocal.assessment.bins import Binned
    from orthocal.assessment.sweeps import Piece, Rows, Stage

MOST_SKEW = 0.25
"""Skewness over root of the bin's rows beyond which the test rejects too often (size .09 at .31, .20 at .62)."""


def bins_test(rows: Rows, binned: Binned) -> Stage[TestResult]:
    """Sum the squared t statistics of the bins, each first made normal; with clusters, Hotelling's F."""
    bins = len(binned.residual)
    if not (binned.variance > 0).all():
        return TestResult(None, None, "does not apply: a bin has no noise")
    answers = yield partial(_central_moments, edges=binned.edges, mean=binned.residual)
    _warn_if_skewed(binned, *np.sum(answers, axis=0))
    if rows.like.groups is None:
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


def _central_moments(piece: Piece, edges: Floats, mean: Floats) -> Floats:
    """Question: sums of squares and cubes of what the bin's mean leaves."""
    runs = Runs(piece.prediction, edges)
    residual = piece.residual - runs.spread(mean) * piece.loss.mass
    square = residual * residual
    return np.array([runs.sums(square), runs.sums(square * residual)])


def _warn_if_skewed(binned: Binned, squares: Floats, cubes: Floats) -> None:
    count = binned.size
    second, third = squares / count, cubes / count
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
