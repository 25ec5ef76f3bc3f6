"""Where scores cross zero, when each look at them costs a sweep over the rows."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.assessment.bins import at_constant
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Rows, Stage, cluster_sums, count_units, merged
from orthocal.solvers.constants import finite_bounds

Crossing: TypeAlias = "Generator[Floats, Floats, Floats]"

ROUNDS = 8
"""Most looks at the scores."""
NEAR = 0.01
"""Scores, in standard errors, that are taken for 0."""
WIDER = 3.0
"""By how much a step grows that did not cross."""


@dataclass
class Bracket:
    """For each of several functions a point where it is below 0 and one where it is not, as far as they are known.

    Parameters
    ----------
    below, above : array
        The points.
    at_below, at_above : array
        Values of the functions there; NaN where they were not looked at.
    """

    below: Floats
    above: Floats
    at_below: Floats
    at_above: Floats

    @classmethod
    def unknown(cls, low: float, high: float, count: int) -> Bracket:
        """Nothing is known but where to look."""
        return cls(np.full(count, low), np.full(count, high), np.full(count, np.nan), np.full(count, np.nan))


def crossings(first: Floats, step: Floats, bracket: Bracket) -> Crossing:
    """Yield points, be sent the values of the functions there, and return where they cross 0 from below.

    Steps outwards until 0 is crossed, then regula falsi (Illinois variant: an end that stays is made to count for half). A value
    is a score in standard errors, so that one below `NEAR` is as good as 0.
    """
    point, side = first, np.zeros(len(first))
    for _ in range(ROUNDS):
        value = yield point
        found = np.abs(value) <= NEAR
        if found.all():
            return point
        point, side = np.where(found, point, _next(point, value, side, step, bracket)), np.sign(value)
        step = step * WIDER
    return point


def _next(point: Floats, value: Floats, side: Floats, step: Floats, bracket: Bracket) -> Floats:
    """Note what is known of the point in the bracket, and return the next one to look at."""
    low, high = value < 0, value >= 0
    again = np.sign(value) == side
    bracket.at_above = np.where(low & again, bracket.at_above / 2, bracket.at_above)
    bracket.at_below = np.where(high & again, bracket.at_below / 2, bracket.at_below)
    bracket.below, bracket.at_below = np.where(low, point, bracket.below), np.where(low, value, bracket.at_below)
    bracket.above, bracket.at_above = np.where(high, point, bracket.above), np.where(high, value, bracket.at_above)
    width, rise = bracket.above - bracket.below, bracket.at_above - bracket.at_below
    inside = bracket.below - bracket.at_below * np.divide(width, rise, out=np.zeros(len(width)), where=rise > 0)
    outside = np.clip(np.where(low, point + step, point - step), bracket.below, bracket.above)
    return np.asarray(np.where(np.isnan(rise), outside, inside))


FAR = 3.0
"""Scores farther from an end than so many critical values are taken for that many: only their sign is of use."""


def score_interval(rows: Rows, effect: float, error: float, critical: float) -> Stage[tuple[float, float]]:
    """Return the two numbers at which the mean score, of the loss taken there, is `critical` standard errors from 0.

    Parameters
    ----------
    effect, error : float
        The minimiser, and the standard error of the mean score there. Those at other numbers have the same relation to the
        plain one, so one sweep is enough for a look at both ends.
    """
    low, high = finite_bounds(rows.like)
    units = yield from count_units(rows)
    _, (plain,) = yield from _means_and_errors(rows, np.array([effect]))
    if not (error > 0 and plain > 0 and low < high):
        return effect, effect
    ends = np.array([-critical, critical])
    known = (
        np.array([np.nan, -critical]),
        np.array([critical, np.nan]),
    )  # of the scores over their errors, less the ends
    bracket = Bracket(np.array([low, effect]), np.array([effect, high]), *known)
    step = np.full(2, (high - low) / np.sqrt(units))
    search = crossings(np.clip(effect + np.sign(ends) * step, low, high), step, bracket)
    point = next(search)
    while True:
        mean, spread = yield from _means_and_errors(rows, point)
        certain = np.where(mean == 0, 0.0, np.copysign(np.inf, mean))  # where nothing varies
        score = np.divide(mean, spread * error / plain, out=certain, where=spread > 0)
        try:
            point = search.send(np.clip(score - ends, -FAR * critical, FAR * critical))
        except StopIteration as done:
            lower, upper = np.asarray(done.value).tolist()
            return lower, upper


def _means_and_errors(rows: Rows, values: Floats) -> Stage[tuple[Floats, Floats]]:
    """Return the mean score at each of several numbers, and its standard error over rows or clusters, in one sweep."""
    if rows.like.groups is None:
        total, square, *sums = np.sum((yield partial(_score_sums, values=values)), axis=0)
        first, second, cross = np.reshape(sums, (3, len(values)))
        mean = first / total
        squares = second - 2 * mean * cross + mean**2 * square
    else:
        _, (mass, *scores) = merged((yield partial(_cluster_scores, values=values)))
        total = mass.sum()
        mean = np.sum(scores, axis=1) / total
        squares = ((np.array(scores) - mean[:, None] * mass) ** 2).sum(axis=1)
    return mean, np.sqrt(np.maximum(squares, 0.0)) / total


def _scores_at(piece: Piece, values: Floats) -> list[Floats]:
    return [at_constant(piece, value) for value in values]


def _score_sums(piece: Piece, values: Floats) -> Floats:
    """Question: summed masses and their squares; then for each number the sums of scores, of their squares, and with the mass."""
    mass, scores = piece.loss.mass, _scores_at(piece, values)
    sums = [one.sum() for one in scores], [one @ one for one in scores], [one @ mass for one in scores]
    return np.concatenate([[mass.sum(), mass @ mass], *sums])


def _cluster_scores(piece: Piece, values: Floats) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [piece.loss.mass, *_scores_at(piece, values)])
