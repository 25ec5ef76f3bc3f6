"""Does the ranking find who gains? Rank-weighted average treatment effects (Yadlowsky et al. 2021)."""

from __future__ import annotations

from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm

from orthocal.assessment.parts import Coefficient, Rate
from orthocal.assessment.sweeps import cluster_sums, merged
from orthocal.losses import Loss, QuadraticLoss

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers
    from orthocal.assessment.sweeps import Piece, Stage


@singledispatch
def rate(like: Loss, level: float) -> Stage[Rate | None]:
    """Return None: effects without an average, such as quantiles, have no rank-weighted one."""
    del like, level
    return None
    yield


@rate.register(QuadraticLoss)
def _(like: QuadraticLoss, level: float) -> Stage[Rate | None]:
    r"""Return AUTOC and Qini: mean effect of the top share u by prediction above the average, averaged over u.

    Both are :math:`\sum_i w(u_i)(n_i - \bar\tau d_i)/\sum d`, with :math:`u` the share of rows at least as high:
    :math:`w = -\log u - 1` for AUTOC, :math:`w = 1/2 - u` for Qini. Errors by the influence function, ranks included; tied
    predictions share their weight.
    """
    sums = np.array((yield _sums))
    held = np.concatenate([[0.0], np.cumsum(sums[:, 0])])
    total = float(sums[:, 2].sum())
    ranking = Ranking(held, float(sums[:, 1].sum()) / total)
    pulls = np.array((yield partial(_pulls, ranking=ranking)))  # piece, measure, (value, weight, pull * share, pull)
    value, weighed, lean, _ = pulls.sum(axis=0).T
    below = np.concatenate([np.zeros((1, 2)), np.cumsum(pulls[:, :, 3], axis=0)])
    moves = Moves(ranking, weighed / total, lean, below)
    if like.groups is None:
        count, first, square = np.sum((yield partial(_influence_sums, moves=moves)), axis=0).T
        squares = square - first**2 / count
    else:
        _, (size, *influence) = merged((yield partial(_cluster_influence, moves=moves)))
        squares = np.array([((one - one.sum() / size.sum() * size) ** 2).sum() for one in influence])
    error = np.sqrt(np.maximum(squares, 0.0)) / total
    reach = float(norm.ppf((1 + level) / 2)) * error
    autoc, qini = (
        Coefficient(float(v), float(e), (float(v - r), float(v + r)))
        for v, e, r in zip(value / total, error, reach, strict=True)
    )
    return Rate(autoc, qini)


class Ranking(NamedTuple):
    """Weight below each piece, of all pieces in the end; and the average effect."""

    held: Floats
    average: float


class Moves(NamedTuple):
    """What a row's influence on the two measures is made of."""

    ranking: Ranking
    weighed: Floats
    lean: Floats
    below: Floats


class Ranked(NamedTuple):
    """Gain, share at least as high, and of both measures the weight and its pull: its derivative in the share, times the gain."""

    gain: Floats
    share: Floats
    weights: tuple[Floats, Floats]
    pulls: tuple[Floats, Floats]
    starts: Integers | None


def _ranked(piece: Piece, ranking: Ranking) -> Ranked:
    loss: Any = piece.loss
    starts = np.concatenate([[0], np.flatnonzero(piece.prediction[1:] != piece.prediction[:-1]) + 1])
    tied = len(starts) < len(piece)
    weight = np.add.reduceat(loss.weight, starts) if tied else loss.weight
    # The middle of each tied block's place in the ranking from the top, in (0, 1).
    share = 1 - (ranking.held[piece.number] + np.cumsum(weight) - weight / 2) / ranking.held[-1]
    if tied:
        share = np.repeat(share, np.diff(starts, append=len(piece)))
    gain = loss.numerator - ranking.average * loss.denominator
    return Ranked(gain, share, (-np.log(share) - 1, 0.5 - share), (-gain / share, -gain), starts if tied else None)


def _sums(piece: Piece) -> tuple[float, float, float]:
    loss: Any = piece.loss
    return float(loss.weight.sum()), float(loss.numerator.sum()), float(loss.denominator.sum())


def _pulls(piece: Piece, ranking: Ranking) -> list[tuple[float, ...]]:
    """Question: for each measure its value, its weights' sum, pull times share, and pull."""
    ranked, loss = _ranked(piece, ranking), piece.loss
    return [
        (float(weight @ ranked.gain), float(weight @ loss.mass), float(pull @ ranked.share), float(pull.sum()))
        for weight, pull in zip(ranked.weights, ranked.pulls, strict=True)
    ]


def _influences(piece: Piece, moves: Moves) -> list[Floats]:
    """A row counts by its own weight and gain, and by moving the ranks of those below it."""
    ranked, own = _ranked(piece, moves.ranking), piece.loss.weight / moves.ranking.held[-1]
    found = []
    for j, (weight, pull) in enumerate(zip(ranked.weights, ranked.pulls, strict=True)):
        block = pull if ranked.starts is None else np.add.reduceat(pull, ranked.starts)
        below = moves.below[piece.number, j] + np.cumsum(block) - block / 2
        if ranked.starts is not None:
            below = np.repeat(below, np.diff(ranked.starts, append=len(piece)))
        found.append((weight - moves.weighed[j]) * ranked.gain + own * (below - moves.lean[j]))
    return found


def _influence_sums(piece: Piece, moves: Moves) -> list[tuple[float, float, float]]:
    return [(len(piece), float(one.sum()), float(one @ one)) for one in _influences(piece, moves)]


def _cluster_influence(piece: Piece, moves: Moves) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [np.ones(len(piece)), *_influences(piece, moves)])
