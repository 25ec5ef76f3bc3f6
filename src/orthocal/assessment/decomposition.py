"""Score decomposition: miscalibration, discrimination, uncertainty (mathematics 10.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, RowIndex
from orthocal.assessment.bin_table import minimisers
from orthocal.assessment.parts import Decomposition
from orthocal.assessment.pieces import Piece, Runs
from orthocal.assessment.sweeps import Rows, SortedRows, Stage, answer, cluster_codes, count_rows
from orthocal.folds import assign_folds
from orthocal.losses import Loss, QuadraticLoss, joined
from orthocal.maps import StepMap
from orthocal.solvers import constants, monotone
from orthocal.solvers.monotone import Blocks, blocks_of, runs_of

FOLDS, FEW = 2, 2000
"""Up to so many rows the halves are drawn; beyond, every second row in the order of the predictions is as good."""
REFINEMENTS = 2
"""How often the map is fitted again, to the loss taken at what it gives."""


def decompose(rows: Rows, rng: np.random.Generator) -> Stage[tuple[float, Decomposition]]:
    """Return the mean loss, and split it into miscalibration - discrimination + uncertainty, recalibrating out of fold.

    Miscalibration is what isotonic recalibration gains and can be negative out of fold: then it would have done harm.
    Discrimination is what the recalibrated prediction gains over the best constant, uncertainty what that constant leaves; both
    by one constant, out of fold as well. Losses are taken at the numbers they are to judge.
    """
    halves = yield from _halves(rows, rng)
    whole = all(least > 0 for least in (yield _least_mass))
    maps = yield from recalibrations(rows.like, halves)
    if maps is None:
        weight, total = np.sum((yield partial(_mean_loss, whole=whole)), axis=0)
        return float(total / weight), Decomposition(None, None, None)
    sums = np.sum((yield partial(_mean_losses, halves=halves, maps=maps, whole=whole)), axis=0)
    mean, recalibrated, constant = (sums[1:] / sums[0]).tolist()
    return mean, Decomposition(mean - recalibrated, constant - recalibrated, constant)


def _least_mass(piece: Piece) -> float:
    return float(piece.loss.mass.min()) if piece.packed is None else piece.packed.least


def _mean_loss(piece: Piece, whole: bool) -> Floats:
    """Question: weight, and loss of the prediction."""
    return _with_weight(piece, [piece.prediction], whole=whole)


class Halves(NamedTuple):
    """Which rows are in the first half: those of some places, of some clusters, or else every second one."""

    places: Booleans | None = None
    clusters: Integers | None = None

    def of(self, piece: Piece) -> tuple[RowIndex, RowIndex]:
        """Rows of the piece in the first and in the second half."""
        if piece.packed is not None:
            first = piece.packed.half == 0
        elif self.places is not None:
            first = self.places[piece.start : piece.start + len(piece)]
        elif self.clusters is not None:
            first = np.isin(np.asarray(piece.loss.groups), self.clusters)
        else:
            return slice(piece.start % 2, None, 2), slice(1 - piece.start % 2, None, 2)
        return np.flatnonzero(first), np.flatnonzero(~first)


def _halves(rows: Rows, rng: np.random.Generator) -> Stage[Halves]:
    """Every second row where rows are many, drawn where few or clustered."""
    if rows.like.groups is not None:
        codes = np.unique(np.concatenate((yield cluster_codes)))
        fold = assign_folds(FOLDS, np.zeros(len(codes), dtype=np.int64), None, rng)
        return Halves(clusters=codes[fold == 0])
    count = sum((yield count_rows))
    if count > FEW:
        return Halves()
    return Halves(places=assign_folds(FOLDS, np.zeros(count, dtype=np.int64), None, rng) == 0)


class Recalibrated(NamedTuple):
    """What a half says of all rows: an isotonic map and the best constant."""

    map: StepMap
    constant: float


MOST_GATHERED = 2**18
"""Rows that are gathered from several pieces, where rows and not sums are needed."""


@singledispatch
def recalibrations(like: Loss, halves: Halves) -> Stage[list[Recalibrated] | None]:
    """Return what each half says, None where one has no mass to say it with.

    Any convex loss, by its rows, of which some stand for all where they are in many pieces.
    """
    del like
    sizes = yield count_rows
    step = 1 if len(sizes) == 1 else -(-sum(sizes) // MOST_GATHERED)
    found = yield partial(_every, halves=halves, step=step)
    answers = []
    for own in zip(*found, strict=True):
        loss = own[0][1] if len(own) == 1 else joined([part for _, part in own])
        prediction = np.concatenate([part for part, _ in own])
        half = SortedRows(prediction, loss)
        constant = float(answer(half, minimisers(half, np.empty(0)))[0])
        answers.append(Recalibrated(_refined(prediction, loss), constant))
    return answers


def _refined(prediction: Floats, loss: Loss) -> StepMap:
    """Fit an isotonic map to the loss taken at what the map makes of the predictions."""
    found = StepMap(*monotone(loss, prediction))
    for _ in range(REFINEMENTS):
        there = loss.at(found.predict(prediction))
        if there is loss:
            break
        loss = there
        found = StepMap(*monotone(loss, prediction))
    return found


@recalibrations.register(QuadraticLoss)
def _(like: QuadraticLoss, halves: Halves) -> Stage[list[Recalibrated] | None]:
    """Blocks of each piece are enough: pooling them gives what pooling the rows would."""
    del like
    found = yield _masses
    positive, rows = all(least > 0 for least, _ in found), sum(many for _, many in found)
    found = yield partial(_blocks, halves=halves, rows=None if positive else rows)
    answers = []
    for own in zip(*found, strict=True):
        blocks = Blocks.together(own)
        if not blocks.denominator.sum() > 0:
            return None
        everyone = np.zeros(len(blocks.level), dtype=np.int64)
        edges, values = monotone(blocks.loss, blocks.level)
        answers.append(Recalibrated(StepMap(edges, values), float(constants(blocks.loss, everyone, 1)[0])))
    return answers


def _masses(piece: Piece) -> tuple[float, int]:
    return _least_mass(piece), piece.rows


def _every(piece: Piece, halves: Halves, step: int) -> list[tuple[Floats, Loss]]:
    """Question: predictions and losses of every so many rows of each half."""
    found = []
    for own in halves.of(piece):
        rows = np.arange(len(piece))[own][::step]
        found.append((piece.prediction[rows], piece.loss[rows]))
    return found


def _blocks(piece: Piece, halves: Halves, rows: int | None) -> list[Blocks]:
    """Question: the blocks of each half; where masses can be negative, runs of some of all the rows."""
    loss: Any = piece.loss
    found = []
    for own in halves.of(piece):
        n, d, weight = (piece.each(column)[own] for column in (loss.numerator, loss.denominator, loss.weight))
        columns = piece.prediction[own], n, d, weight
        if rows is None:
            found.append(blocks_of(*columns))
        else:
            place = piece.start + np.cumsum(piece.each(np.ones(len(piece)))).astype(np.int64) - 1
            found.append(runs_of(*columns, place[own], rows))
    return found


def _mean_losses(piece: Piece, halves: Halves, maps: list[Recalibrated], whole: bool) -> Floats:
    """Question: weight, and losses of the prediction, and of the other half's map and constant."""
    recalibrated, constant = np.empty(len(piece)), np.empty(len(piece))
    for own, other in zip(halves.of(piece), reversed(maps), strict=True):
        runs = Runs(
            piece.prediction[own], other.map.edges
        )  # sorted, so that few edges are searched for among many rows
        recalibrated[own] = runs.spread(other.map.values)
        constant[own] = other.constant
    return _with_weight(piece, [piece.prediction, recalibrated, constant], whole=whole)


def _with_weight(piece: Piece, values: Sequence[Floats], *, whole: bool) -> Floats:
    return np.array([piece.sum(piece.loss.weight), *losses(piece.loss, piece, values, whole=whole)])


@singledispatch
def losses(loss: Loss, piece: Piece, values: Sequence[Floats], *, whole: bool) -> list[float]:
    """Sums of the rows' losses at the prediction, which is the first, and at other numbers, each taken where it judges."""
    del whole
    first, *others = values
    return [piece.sum(loss.value(first)), *(piece.sum(loss.at(value).value(value)) for value in others)]


@losses.register(QuadraticLoss)
def _(loss: QuadraticLoss, piece: Piece, values: Sequence[Floats], *, whole: bool) -> list[float]:
    """With the constant n^2 / 2d that the loss leaves out, where no d is 0 or less: half the squared distance from the target."""
    if not whole:
        return [piece.sum(loss.value(value)) for value in values]
    target, mass = loss.target, loss.denominator
    away = (value - target for value in values)
    return [0.5 * piece.dot(one * mass, one) for one in away]
