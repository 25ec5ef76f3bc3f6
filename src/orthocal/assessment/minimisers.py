"""The best constant of each bin, by sweeps."""

from __future__ import annotations

from functools import partial, singledispatch
from typing import TYPE_CHECKING

import numpy as np

from orthocal.assessment.sweeps import Runs, count_rows
from orthocal.losses import Loss, QuadraticLoss
from orthocal.solvers import constants
from orthocal.solvers.constants import finite_bounds, narrowest, ratios

if TYPE_CHECKING:
    from orthocal.arrays import Floats
    from orthocal.assessment.sweeps import Piece, Rows, Stage


def minimisers(rows: Rows, edges: Floats) -> Stage[Floats]:
    """Return for each bin what `orthocal.solvers.constants` gives for all rows together."""
    found: Floats = yield from by_kind(rows.like, edges)
    return found


@singledispatch
def by_kind(like: Loss, edges: Floats) -> Stage[Floats]:
    """Any convex loss: solved at once where all rows are in one piece, else by bisection, one sweep for each halving."""
    if len((yield count_rows)) == 1:
        (found,) = yield partial(_whole, edges=edges)
        return np.asarray(found)
    low, high = finite_bounds(like)
    below, above = np.full(len(edges) + 1, low), np.full(len(edges) + 1, high)
    while (above - below).max() > narrowest(low, high):
        middle = (below + above) / 2
        falling = np.sum((yield partial(_slopes, edges=edges, values=middle)), axis=0) < 0
        below, above = np.where(falling, middle, below), np.where(falling, above, middle)
    return above


@by_kind.register(QuadraticLoss)
def _(like: QuadraticLoss, edges: Floats) -> Stage[Floats]:
    del like
    numerator, denominator = np.sum((yield partial(_ratio_sums, edges=edges)), axis=0)
    return ratios(numerator, denominator)


def _whole(piece: Piece, edges: Floats) -> Floats:
    return constants(piece.loss, Runs(piece.prediction, edges).index, len(edges) + 1)


def _slopes(piece: Piece, edges: Floats, values: Floats) -> Floats:
    runs = Runs(piece.prediction, edges)
    return runs.sums(piece.loss.derivative(runs.spread(values)))


def _ratio_sums(piece: Piece, edges: Floats) -> Floats:
    loss, runs = piece.loss, Runs(piece.prediction, edges)
    assert isinstance(loss, QuadraticLoss)  # noqa: S101
    return np.array([runs.sums(loss.numerator), runs.sums(loss.denominator)])
