"""Does the ranking find who gains? Rank-weighted average treatment effects (Yadlowsky et al. 2021; mathematics 10.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.stats import norm

from orthocal.arrays import Floats, Integers, is_constant, unrepeated
from orthocal.assessment.parts import Coefficient, Rate
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Stage, cluster_sums, merged
from orthocal.losses import Loss, QuadraticLoss


@singledispatch
def rate(like: Loss, level: float) -> Stage[Rate | None]:
    """Return None: effects without an average, such as quantiles, have no rank-weighted one."""
    del like, level
    return None
    yield


@rate.register(QuadraticLoss)
def _(like: QuadraticLoss, level: float) -> Stage[Rate | None]:
    r"""Return AUTOC and Qini: mean effect of the top share u by prediction above the average, averaged over u.

    Both are :math:`T = \sum_i w_i (n_i - \bar\tau d_i)/\sum d`, with :math:`w_i` the mean, over the shares
    :math:`(a_i, b_i]` that the rows of a prediction take in the ranking from the top, of :math:`-\log u - 1` for AUTOC and
    :math:`1/2 - u` for Qini. So tied rows share what they would get on average over their orders. Errors by the influence
    function, ranks and :math:`-T d_i` for the summed mass included.
    """
    sums = np.array((yield _sums))
    # Pieces begin with the lowest predictions and ranks with the highest: weights are summed from the end.
    held = np.concatenate([np.cumsum(sums[::-1, 0])[::-1], [0.0]])
    total = float(sums[:, 2].sum())
    ranking = Ranking(held, float(sums[:, 1].sum()) / total)
    answers = yield partial(_rank_sums, ranking=ranking)
    found = np.array([measures for measures, _ in answers])  # piece, measure, (value, weighed, lean, pull)
    value, weighed, lean, _ = found.sum(axis=0).T
    # What blocks in pieces before a piece pull, which a row of the piece, ranked above them, moves.
    below = np.concatenate([np.zeros((1, 2)), np.cumsum(found[:, :, 3], axis=0)])
    moves = Moves(weighed / total, value / total, below[:-1] - lean)
    if like.groups is None:
        products = np.array([own for _, own in answers])
        squares = np.array([_squares(products[:, j], moves.factors(j)) for j in range(len(MEASURES))])
        squares *= (count := sums[:, 3].sum()) / max(count - 1, 1)
    else:  # influences add up within a cluster, and clusters are independent
        _, influence = merged((yield partial(_cluster_influence, ranking=ranking, moves=moves)))
        units = influence.shape[1]
        squares = (influence**2).sum(axis=1) * units / max(units - 1, 1)
    error = np.sqrt(squares) / total
    reach = float(norm.ppf((1 + level) / 2)) * error
    autoc, qini = (
        Coefficient(float(v), float(e), (float(v - r), float(v + r)))
        for v, e, r in zip(value / total, error, reach, strict=True)
    )
    return Rate(autoc, qini)


class Ranking(NamedTuple):
    """Weight above the start of each piece, and of none in the end; and the average effect."""

    held: Floats
    average: float


class Moves(NamedTuple):
    """The factors of what a row's influence is made of, one entry for each measure: see `InfluenceParts`.

    Parameters
    ----------
    weighed : array
        Mean weight by mass: by how much T falls when the average effect rises by one.
    value : array
        T, the measures.
    below : array of shape (pieces, measures)
        Change of T, times the mass, when all shares of the pieces before grow by one, less when all shares grow in proportion.
    """

    weighed: Floats
    value: Floats
    below: Floats

    def factors(self, measure: int) -> Floats:
        """Return the factors of the parts, by piece."""
        by_piece = self.below[:, measure]
        return np.column_stack(np.broadcast_arrays(1.0, -self.weighed[measure], -self.value[measure], by_piece))


class Ranked(NamedTuple):
    """Runs of tied predictions: their places (top, bottom] in the ranking from the top, and sums of their gains and masses."""

    top: Floats
    bottom: Floats
    gain: Floats
    mass: Floats
    size: Integers | None

    def rows(self, by_block: Floats) -> Floats:
        """Each row's own of what is known of its block."""
        return by_block if self.size is None else np.repeat(by_block, self.size)


def _ranked(piece: Piece, ranking: Ranking, parts: InfluenceParts) -> Ranked:
    columns = [piece.each(column) for column in (piece.loss.weight, parts.gain, parts.mass)]
    size = None
    if piece.is_tied:
        starts = np.concatenate([[0], np.flatnonzero(piece.prediction[1:] != piece.prediction[:-1]) + 1])
        columns = [np.add.reduceat(column, starts) for column in columns]
        size = np.diff(starts, append=len(piece))
    weight, gain, mass = columns
    share = _from_the_end(weight)
    share += ranking.held[piece.number + 1]
    share /= ranking.held[0]  # a block takes (what is above it, that and itself]
    return Ranked(share[1:], share[:-1], gain, mass, size)


def _from_the_end(weight: Floats) -> Floats:
    """Sums of the weights from each entry to the last, and 0: of equal ones without adding them up one by one."""
    if is_constant(weight):
        return float(weight[0]) * np.arange(len(weight), -1.0, -1.0)
    return np.append(np.cumsum(weight[::-1])[::-1], 0.0)


class InfluenceParts(NamedTuple):
    """What a row's influence is made of, each times a factor, beside what it does in its own piece (`_measured`).

    Parameters
    ----------
    gain : array
        Above the average effect; adds up to 0. It pulls that average.
    mass : array
        In the divisor of T.
    share : array
        Of the weight: by it the row moves the ranks of those in pieces below.
    """

    gain: Floats
    mass: Floats
    share: Floats

    @classmethod
    def of(cls, piece: Piece, ranking: Ranking) -> InfluenceParts:
        """Of the rows of a piece."""
        loss: Any = piece.loss
        share = unrepeated(loss.weight) / ranking.held[0]
        return cls(
            loss.numerator - ranking.average * unrepeated(loss.denominator),
            loss.mass,
            np.broadcast_to(share, len(piece)),
        )


def _sums(piece: Piece) -> tuple[float, float, float, int]:
    """Summary: weight, numerators, masses and rows."""
    loss: Any = piece.loss
    return piece.sum(loss.weight), piece.sum(loss.numerator), piece.sum(loss.denominator), piece.rows


class Weighing(NamedTuple):
    """The weights of blocks, and how they change as shares (a, b] do.

    `pull` is for a and b moving together, `by_top` for a alone, and `lean` for both growing in proportion: then AUTOC's weight
    falls by one, as -log u does, and Qini's by the middle of (a, b].
    """

    weight: Floats
    pull: Floats | float
    by_top: Floats | float
    lean: Floats | float


NARROW = 1e-5
"""Shares of a block below which its weight is that of its middle: t^2 / 24 is lost, and quotients would lose more, or be 0/0."""


def _autoc_weights(top: Floats, bottom: Floats) -> Weighing:
    r"""Mean of -log u - 1 over (a, b]: :math:`-\log b + (1 - t) L` with :math:`t = (b - a)/b, L = \log(1 - t)/t`.

    By d/du (-u log u) = -log u - 1 the mean is (a log a - b log b) / (b - a), with derivatives (1 + L) / (b - a) in a and
    -(1 + (1 - t) L) / (b - a) in b. The top of the first block never moves, so it needs no derivative; L is infinite there.
    """
    middle, width = (top + bottom) / 2, bottom - top
    # As t goes to 0 both derivatives tend to -1 / 2b, half of d(-log u)/du: the block moves as a point.
    if width.max() < NARROW * bottom[-1]:  # the last block is the first of the ranking, whose share ends lowest
        pull = -1 / middle
        return Weighing(-1 - np.log(middle), pull, pull / 2, -1.0)
    t = width / bottom
    first, near = top == 0, t < NARROW
    safe = np.where(first | near, 0.5, t)
    log = np.log1p(-safe) / safe
    log[first] = -1.0
    shrunk, divisor = (1 - t) * log, np.where(near, 1.0, width)
    by_top = np.where(near, -0.5 / middle, (1 + log) / divisor)
    by_bottom = np.where(near, -0.5 / middle, -(1 + shrunk) / divisor)
    weight = np.where(near, -1 - np.log(middle), shrunk - np.log(bottom))
    return Weighing(weight, by_top + by_bottom, by_top, -1.0)


def _qini_weights(top: Floats, bottom: Floats) -> Weighing:
    """Mean of 1/2 - u over (a, b]."""
    middle = (top + bottom) / 2
    return Weighing(0.5 - middle, -1.0, -0.5, -middle)


RankMeasure: TypeAlias = Callable[[Floats, Floats], Weighing]
MEASURES: tuple[RankMeasure, ...] = (_autoc_weights, _qini_weights)


def _rank_sums(piece: Piece, ranking: Ranking) -> tuple[list[tuple[float, ...]], Floats]:
    """Question: for each measure its value, its weights times masses, and the pull of shares at it, times them and alone.

    And the sums of products of what rows' influences are made of, which give their squares once all factors are known.
    """
    parts = InfluenceParts.of(piece, ranking)
    ranked = _ranked(piece, ranking, parts)
    found = [_measured(ranked, parts, measure) for measure in MEASURES]
    products = np.empty((len(MEASURES), 1 + len(parts), 1 + len(parts)))
    products[:, 1:, 1:] = [[piece.dot(one, other) for other in parts] for one in parts]
    for own, (_, first) in zip(products, found, strict=True):
        own[0] = [piece.dot(first, other) for other in (first, *parts)]
        own[1:, 0] = own[0, 1:]
    return [sums for sums, _ in found], products


def _measured(ranked: Ranked, parts: InfluenceParts, measure: RankMeasure) -> tuple[tuple[float, ...], Floats]:
    """Return the sums of a measure; and of each row its weight times its gain, plus what moving ranks in its piece brings."""
    weight, pull, by_top, lean = measure(ranked.top, ranked.bottom)
    pulls = ranked.gain * pull
    # A row's weight is in the divisor of all shares: a and b fall in proportion to themselves.
    sums = weight @ ranked.gain, weight @ ranked.mass, (ranked.gain * lean).sum(), pulls.sum()
    # A row moves bottoms of blocks up to its own (predictions at most its own), and tops of those below it.
    pulled = np.cumsum(pulls)
    pulled -= ranked.gain * by_top
    first = ranked.rows(weight) * parts.gain
    first += unrepeated(parts.share) * ranked.rows(pulled)
    return tuple(map(float, sums)), first


def _squares(products: Floats, factors: Floats) -> float:
    """Return the sum of squared influences: of each piece, factors times products times factors; rounding may fall below 0."""
    return max(float(np.einsum("pi,pij,pj->", factors, products, factors)), 0.0)


def _cluster_influence(piece: Piece, ranking: Ranking, moves: Moves) -> tuple[Integers, Floats]:
    """Summary: influences by cluster."""
    assert piece.loss.groups is not None  # noqa: S101
    parts = InfluenceParts.of(piece, ranking)
    ranked = _ranked(piece, ranking, parts)
    influences = []
    for j, measure in enumerate(MEASURES):
        _, first = _measured(ranked, parts, measure)
        columns = zip(moves.factors(j)[piece.number], (first, *parts), strict=True)
        influences.append(sum(factor * column for factor, column in columns))
    return cluster_sums(piece.loss.groups, influences)
