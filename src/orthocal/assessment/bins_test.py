"""The test of no error in any bin (mathematics 8.3)."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.special import chdtrc
from scipy.stats import beta as beta_distribution
from scipy.stats import norm
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Integers
from orthocal.assessment.bins import Binned
from orthocal.assessment.parts import TestResult
from orthocal.assessment.pieces import Piece, Runs
from orthocal.assessment.sweeps import Rows, Stage, cluster_sums, merged, pair_codes
from orthocal.errors import SkewWarning

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_SKEW = 0.25
"""Skewness over root of the bin's rows beyond which the test would reject too often (size .11 at .31, .20 at .62)."""


def bins_test(rows: Rows, binned: Binned) -> Stage[tuple[TestResult, float]]:
    """Sum the squared t statistics of the bins, each first made normal; with clusters, judge by flips of their signs.

    Also the skewness of the residuals, over the root of the rows of a bin: where that is large, a bin's mean is far from normal
    and nothing can be said.
    """
    if not (binned.variance > 0).all():
        return TestResult(None, None, "does not apply: a bin has no noise"), 0.0
    answers = yield partial(_central_moments, edges=binned.edges, mean=binned.residual)
    skewness = _skewness(binned, *np.sum(answers, axis=0))
    if skewness > MOST_SKEW:
        _warn_of(skewness)
        note = f"does not apply: residuals are strongly skewed (skewness over root rows of a bin {skewness:.2f})"
        return TestResult(None, None, note), skewness
    return (yield from _of_bins(rows, binned)), skewness


def _of_bins(rows: Rows, binned: Binned) -> Stage[TestResult]:
    bins = len(binned.residual)
    if rows.like.groups is None:
        score = np.abs(binned.residual) / np.sqrt(binned.variance)
        tail = t_distribution.logsf(score, binned.freedom)
        normal = -norm.ppf(np.exp(np.maximum(tail, -700.0)))
        statistic = float(normal @ normal)
        return TestResult(statistic, float(chdtrc(bins, statistic)), f"chi-square, {bins} bins")
    codes, (residual,) = merged((yield partial(_cell_residuals, edges=binned.edges)))
    cluster = np.unique(codes // bins, return_inverse=True)[1]
    return by_signs(coo_array((residual, (cluster, codes % bins)), shape=(binned.clusters, bins)).tocsr())


def by_signs(sums: csr_array) -> TestResult:
    r"""Test that summed residuals have mean zero in every bin, from those of each cluster: Hotelling's F for unequal clusters.

    With :math:`r_g` the sums of cluster g, :math:`T = (\sum r_g)' (\sum r_g r_g')^{-1} (\sum r_g) = 1'P1` for a projection P.
    Flipping the signs of clusters at random leaves P as it is, so :math:`s'Ps` has mean B and variance :math:`2(B - \sum_g
    P_{gg}^2)`. For G equal clusters :math:`T/G` is nearly Beta(B/2, (G - B)/2), which is Hotelling's F. The effective number of
    unequal ones gives that variance: :math:`2B(G - B)/(G + 2)` at :math:`G = B(B + 2) / \sum_g P_{gg}^2 - 2`.
    """
    clusters, bins = sums.shape
    products = np.asarray((sums.T @ sums).toarray())
    if clusters <= bins or np.linalg.matrix_rank(products) < bins:
        return TestResult(None, None, f"does not apply: {clusters} clusters are too few for {bins} bins")
    total, inverse = np.asarray(sums.sum(axis=0)).ravel(), np.linalg.inv(products)
    own = np.asarray(sums.multiply(sums @ inverse).sum(axis=1)).ravel()  # P_gg
    counted = bins * (bins + 2) / float(own @ own) - 2
    free = counted - bins
    if free < 1:
        return TestResult(
            None, None, f"does not apply: {clusters} clusters of unequal size are too few for {bins} bins"
        )
    statistic = float(total @ inverse @ total)
    tail = float(beta_distribution.sf(min(statistic / counted, 1.0), bins / 2, free / 2))
    note = f"signs of clusters, {bins} bins, effective number of clusters {counted:.0f}"
    return TestResult(statistic, max(tail, 2.0 ** (1 - clusters)), note)  # flips of signs give no smaller p-value


def _cell_residuals(piece: Piece, edges: Floats) -> tuple[Integers, Floats]:
    """Question: residuals summed by cluster and bin."""
    return cluster_sums(pair_codes(piece, edges), [piece.residual])


def _central_moments(piece: Piece, edges: Floats, mean: Floats) -> Floats:
    """Question: sums of squares and cubes of what the bin's mean leaves."""
    runs = Runs.of(piece, edges)
    residual = piece.residual - runs.spread(mean) * piece.loss.mass
    square = residual * residual
    return np.array([runs.sums(square), runs.sums(square * residual)])


def _skewness(binned: Binned, squares: Floats, cubes: Floats) -> float:
    """Return the skewness of the residuals over the root of the rows of a bin; 0 where it may be chance."""
    count = binned.size
    second, third = squares / count, cubes / count
    # Averaged over bins, so that the chance skewness of symmetric heavy tails cancels.
    skewness = abs(float(np.average(third / second**1.5, weights=count)))
    by_chance = 3 * float(np.sqrt(6 / count.sum()))
    return skewness / float(np.sqrt(count.mean())) if skewness > by_chance else 0.0


def _warn_of(skewness: float) -> None:
    warnings.warn(
        f"Residuals are strongly skewed for the number of rows in a bin (skewness over root rows {skewness:.2f}, above "
        f"{MOST_SKEW}): the bins test would reject too often and is left out. Use fewer `bins`, or more rows.",
        SkewWarning,
        stacklevel=5,
    )
