"""The best constant of each bin, by sweeps."""

from __future__ import annotations

from functools import partial, singledispatch

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.crossings import Bracket, crossings
from orthocal.assessment.sweeps import Piece, Rows, Runs, Stage, count_rows
from orthocal.losses import Loss, QuadraticLoss, score_at
from orthocal.solvers import constants
from orthocal.solvers.constants import PRECISION, finite_bounds, narrowest, ratios

ROUGH = 1e-4
"""Precision, as a share of the bounds' distance, of a minimiser at which a search begins."""
PARTS = 16
"""Into so many parts each sweep divides the interval in which a minimiser lies."""
FIRST_STEP = 1 / 32
"""Of the search, as a share of the bounds' distance."""


def minimisers(rows: Rows, edges: Floats) -> Stage[Floats]:
    """Return for each bin the number that minimises its summed loss, with the loss taken at that number itself."""
    found: Floats = yield from by_kind(rows.like, edges)
    return found


@singledispatch
def by_kind(like: Loss, edges: Floats) -> Stage[Floats]:
    """Any convex loss: where it depends on the level, the level is moved until the loss taken there is least there.

    With a conditional distribution F taken at another level than the minimiser, its correction does not remove an error of the
    propensity. Taken at the minimiser v, E[F(v | X) - Q | bin] = 0 holds whichever of the two is right (mathematics 7.6).
    """
    if _stays(like):
        return (yield from _least(like, edges))
    low, high = finite_bounds(like)
    first = _off_bounds((yield from _divided(like, edges, ROUGH)), low, high)
    search = crossings(first, np.full(len(first), FIRST_STEP * (high - low)), Bracket.unknown(low, high, len(first)))
    level = next(search)
    while True:
        sums, squares = np.sum((yield partial(_scores, edges=edges, level=level)), axis=0)
        try:
            level = search.send(np.divide(sums, np.sqrt(squares), out=np.zeros(len(sums)), where=squares > 0))
        except StopIteration as done:
            return np.asarray(done.value)


def _off_bounds(found: Floats, low: float, high: float) -> Floats:
    """Begin in the middle of the other bins where a bin's minimiser is a bound: the loss was taken too far from it."""
    inside = (found - low > ROUGH * (high - low)) & (high - found > ROUGH * (high - low))
    return np.where(inside, found, np.median(found[inside]) if inside.any() else (low + high) / 2)


def _stays(like: Loss) -> bool:
    """Whether a loss is the same at every level."""
    return getattr(like, "law", None) is None and like.at(np.zeros(len(like))) is like


@by_kind.register(QuadraticLoss)
def _(like: QuadraticLoss, edges: Floats) -> Stage[Floats]:
    del like
    numerator, denominator = np.sum((yield partial(_ratio_sums, edges=edges)), axis=0)
    return ratios(numerator, denominator)


def _least(like: Loss, edges: Floats) -> Stage[Floats]:
    """Minimise the loss as it is, at once where all rows are in one piece."""
    if len((yield count_rows)) > 1:
        return (yield from _divided(like, edges, PRECISION))
    (found,) = yield partial(_whole, edges=edges)
    return np.asarray(found)


def _divided(like: Loss, edges: Floats, precision: float) -> Stage[Floats]:
    """Minimise the loss as it is by dividing the intervals in which minimisers lie, in sweeps."""
    low, high = finite_bounds(like)
    below, above = np.full(len(edges) + 1, low), np.full(len(edges) + 1, high)
    while (above - below).max() > narrowest(low, high, precision):
        grid = np.linspace(below, above, PARTS + 1)
        slopes = np.sum((yield partial(_slopes, edges=edges, values=grid[1:-1])), axis=0)
        falling, bins = (slopes < 0).sum(axis=0), np.arange(len(below))
        below, above = grid[falling, bins], grid[falling + 1, bins]
    return above


def _whole(piece: Piece, edges: Floats) -> Floats:
    return constants(piece.loss, Runs(piece.prediction, edges).index, len(edges) + 1)


def _slopes(piece: Piece, edges: Floats, values: Floats) -> Floats:
    """Question: summed derivatives of each bin at several values of its own."""
    runs = Runs(piece.prediction, edges)
    return np.array([runs.sums(piece.loss.derivative(runs.spread(one))) for one in values])


def _scores(piece: Piece, edges: Floats, level: Floats) -> Floats:
    """Question: summed derivatives of each bin at its level, of the loss taken there, and their squares."""
    runs = Runs(piece.prediction, edges)
    score = score_at(piece.loss, runs.spread(level))
    return np.array([runs.sums(score), runs.sums(score**2)])


def _ratio_sums(piece: Piece, edges: Floats) -> Floats:
    loss, runs = piece.loss, Runs(piece.prediction, edges)
    assert isinstance(loss, QuadraticLoss)  # noqa: S101
    return np.array([runs.sums(loss.numerator), runs.sums(loss.denominator)])
