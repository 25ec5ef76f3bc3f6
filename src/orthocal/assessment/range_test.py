"""The bin-free test: the range of cumulative residuals (mathematics 8.4)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.special import ndtr

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.assessment.parts import TestResult
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Rows, Stage, cluster_sums, merged

AT_ONCE = 64
"""Draws of signs that are held at the same time."""
SERIES_MEET = 2.0
"""Where both series of the distribution of the range have all digits."""
FEW_LEVELS = 500
"""Below as many distinct predictions the walk has too few steps for the distribution of Brownian motion."""


def range_test(rows: Rows, draws: int, rng: np.random.Generator) -> Stage[TestResult]:
    """Sum the residuals up by prediction and compare the range of the sums with what chance gives; ties move as one."""
    walks: list[Walk] = yield _walk
    # A piece knows its own walk only: it begins where the pieces before it end. The walk begins at 0, which is one of its values.
    total = np.cumsum([0.0, *(walk.total for walk in walks)])
    ends = [(before + walk.low, before + walk.high) for before, walk in zip(total, walks, strict=False)]
    reach = max(0.0, *(high for _, high in ends)) - min(0.0, *(low for low, _ in ends))
    levels = sum(walk.levels for walk in walks)
    if rows.like.groups is not None:
        found = yield from _cluster_bootstrap([walk.levels for walk in walks], draws, rng)
        return TestResult(reach, found, "range of cumulative residuals, cluster wild bootstrap")
    count = sum(walk.rows for walk in walks)
    # sigma^2 of mathematics 8.4. Half the squared difference of neighbours has the mean of their variances: an error that
    # changes slowly with the prediction cancels, which it would not in a sum of squares about one mean.
    between = sum(a.last.to(b.first) for a, b in pairwise(walks))
    variance = (sum(walk.jumps for walk in walks) + between) / 2 * count / max(count - 1, 1)
    if not variance > 0:
        return TestResult(None, None, "does not apply: no noise")
    statistic = float(reach / np.sqrt(variance))
    if levels >= FEW_LEVELS:
        return TestResult(statistic, brownian_range_tail(statistic), "range of cumulative residuals, Brownian motion")
    # The walk is seen where a prediction ends: under calibration its steps have mean 0 and variance sum r^2 of the tied rows.
    steps = np.sqrt(np.concatenate((yield _squares_by_level)))
    simulated = _ranges(rng.standard_normal((draws, levels)) * steps)
    p_value = float((1 + (simulated >= reach).sum()) / (1 + draws))  # what was seen counts as a draw
    return TestResult(statistic, p_value, f"range of cumulative residuals, {levels} distinct predictions simulated")


class Level(NamedTuple):
    """The residuals of one prediction: their mean, and the mean of their squares about it."""

    mean: float
    variance: float

    def to(self, other: Level) -> float:
        """Mean square of the difference between a row of this level and one of the other."""
        return (self.mean - other.mean) ** 2 + self.variance + other.variance


class Walk(NamedTuple):
    """Summary of a piece: its residuals, summed up in order and seen where a level ends.

    `jumps` sums the squared differences of neighbours, on average over the orders in which tied rows could stand.
    """

    rows: int
    levels: int
    total: float
    low: float
    high: float
    jumps: float
    first: Level
    last: Level


def _level_ends(prediction: Floats) -> Integers:
    """Return the last row of each level."""
    return np.append(np.flatnonzero(prediction[1:] != prediction[:-1]), len(prediction) - 1)


def _walk(piece: Piece) -> Walk:
    """Summary: the walk of the piece."""
    residual = piece.residual
    path = np.cumsum(piece.each(residual))
    total = float(path[-1])
    if not piece.is_tied and piece.packed is None:
        jump = np.diff(residual)
        ends = (Level(float(residual[0]), 0.0), Level(float(residual[-1]), 0.0))
        return Walk(len(piece), len(piece), total, float(path.min()), float(path.max()), float(jump @ jump), *ends)
    # Over the orders of k tied rows, neighbours among them have a mean squared difference of 2 S / (k - 1), S the sum of squares
    # about their mean; there are k - 1 pairs, so 2 S. Neighbours of two levels add their means' distance and both variances.
    last = _level_ends(piece.prediction)
    starts, entries = np.concatenate([[0], last[:-1] + 1]), np.diff(last, prepend=-1)
    size = entries if piece.packed is None else np.add.reduceat(piece.packed.count, starts)
    mean = np.add.reduceat(piece.each(residual), starts) / size
    inside = np.add.reduceat(piece.each((residual - np.repeat(mean, entries)) ** 2), starts)
    variance = inside / size
    jumps = float(2 * inside.sum() + (np.diff(mean) ** 2).sum() + (variance[1:] + variance[:-1]).sum())
    path = path[last]
    ends = (Level(float(mean[0]), float(variance[0])), Level(float(mean[-1]), float(variance[-1])))
    return Walk(piece.rows, len(last), total, float(path.min()), float(path.max()), jumps, *ends)


def _squares_by_level(piece: Piece) -> Floats:
    """Summary: squared residuals of each level."""
    last = _level_ends(piece.prediction)
    return np.add.reduceat(piece.each(piece.residual**2), np.concatenate([[0], last[:-1] + 1]))


def brownian_range_tail(x: float) -> float:
    """P(range of Brownian motion on [0, 1] > x), to all digits however small (Feller 1951; mathematics 8.4).

    One series converges fast for small x and gives the rest of the tail, the other for large x and gives the tail itself.
    """
    if x <= 0:  # a walk that never leaves its place
        return 1.0
    if x <= SERIES_MEET:
        # P(range <= x): 1 - series has no digits left of a small tail, so it is not used for large x.
        k = np.arange(20) + 0.5
        series = (8 / x**2 + 2 / (np.pi * k) ** 2) * np.exp(-2 * (np.pi * k / x) ** 2)
        return float(1 - min(series.sum(), 1.0))
    # P(range > x) = 8 sum (-1)^(k-1) k Phi(-k x): terms fall as exp(-k^2 x^2 / 2), so nine are enough from x = 2 on.
    k = np.arange(1.0, 10.0)
    return float(-8 * ((-1.0) ** k * k * ndtr(-k * x)).sum())


def _cluster_bootstrap(levels: list[int], draws: int, rng: np.random.Generator) -> Stage[float]:
    """Flip the signs of whole clusters: the walk's distribution under no error, whatever the dependence within a cluster.

    With no error a cluster's steps have mean 0, and a flip of their signs keeps their variances and covariances.
    """
    before = np.cumsum([0, *levels])
    cells = min(FEW_LEVELS, int(before[-1]))  # the walk is watched at this many places
    codes, (sums,) = merged((yield partial(_cluster_blocks, before=before, cells=cells)))
    unit = np.unique(codes // cells, return_inverse=True)[1]
    count = int(unit.max()) + 1
    # Row g of the table has the steps of cluster g, so signs @ table has the steps of a walk with these signs. The walk it is
    # compared with is watched at the same places: with fewer of them ranges are smaller, on both sides.
    table = coo_array((sums, (unit, codes % cells)), shape=(count, cells)).tocsr()
    watched = _ranges(group_sums(codes % cells, sums, cells)[None, :])[0]
    beyond = 0
    for done in range(0, draws, AT_ONCE):
        signs = rng.choice([-1.0, 1.0], (min(AT_ONCE, draws - done), count))
        beyond += int((_ranges(np.asarray(signs @ table)) >= watched).sum())
    return (1 + beyond) / (1 + draws)


def _cluster_blocks(piece: Piece, before: Integers, cells: int) -> tuple[Integers, Floats]:
    """Summary: residuals by cluster and place."""
    assert piece.loss.groups is not None  # noqa: S101
    level = np.concatenate([[0], np.cumsum(piece.prediction[1:] != piece.prediction[:-1])])
    place = (level + before[piece.number]) * cells // before[-1]
    return cluster_sums(piece.loss.groups * cells + place, [piece.residual])


def _ranges(steps: Floats) -> Floats:
    """Range of each walk, one to a row of steps; 0, where walks begin, is among the values."""
    walk = np.cumsum(steps, axis=1)
    return np.asarray(np.maximum(walk.max(axis=1), 0.0) - np.minimum(walk.min(axis=1), 0.0))
