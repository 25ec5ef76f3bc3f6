"""What decisions by the prediction are worth at a cost (mathematics 10.3)."""

from __future__ import annotations

from functools import partial, singledispatch
from typing import NamedTuple

import numpy as np
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Integers
from orthocal.assessment.bins import MOST_LEVERAGE
from orthocal.assessment.parts import Value
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Rows, Stage, cluster_sums, effective_number, merged, predictions_at, steadiness
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, QuadraticLoss

CURVE = 21
"""Costs at which the decision curve is drawn."""


@singledispatch
def net_gain(loss: Loss, cost: float) -> Floats:
    """Estimated gain of treating each row, net of the cost."""
    raise OrthocalError(
        f"`cost` must go with an effect that can be weighed against it; a {type(loss).__name__} has none ({cost} was given)."
    )


@net_gain.register(QuadraticLoss)
def _(loss: QuadraticLoss, cost: float) -> Floats:
    return loss.numerator - cost * loss.denominator


def decision_value(rows: Rows, cost: float, level: float) -> Stage[Value]:
    """Return the mean net gain of treating those predicted above the cost, and the curve of it over costs."""
    found: list[tuple[float, ...]] = yield partial(_gains, cost=cost)
    total, treated, gain, everyone, count = np.sum(found, axis=0)
    mean = float(gain / total)
    if rows.like.groups is None:
        squares, weights = np.sum((yield partial(_gain_squares, cost=cost, mean=mean)), axis=0)
        error, interval, _ = error_of_mean(mean, Squares(int(count), float(total), squares, weights), level)
    else:
        _, (centred, weight) = merged((yield partial(_cluster_gains, cost=cost, mean=mean)))
        error, interval, _ = error_of_mean(mean, jackknifed(centred, weight), level)
    costs = yield from _quantiles(np.linspace(0.02, 0.98, CURVE), int(count))
    above, all_of = np.sum((yield partial(_gains_above, costs=costs)), axis=0)
    curve = {"cost": costs, "by_prediction": above / total, "everyone": all_of / total}
    return Value(
        cost=float(cost),
        value=mean,
        standard_error=error,
        interval=interval,
        share_treated=float(treated / total),
        treating_everyone=float(everyone / total),
        curve=curve,
    )


def _gains(piece: Piece, cost: float) -> tuple[float, ...]:
    gain, chosen, weight = net_gain(piece.loss, cost), piece.prediction > cost, piece.loss.weight
    return piece.sum(weight), piece.sum(weight * chosen), piece.sum(gain * chosen), piece.sum(gain), float(piece.rows)


def _centred(piece: Piece, cost: float, mean: float) -> Floats:
    return (piece.prediction > cost) * net_gain(piece.loss, cost) - mean * piece.loss.weight


def _gain_squares(piece: Piece, cost: float, mean: float) -> tuple[float, float]:
    centred, weight = _centred(piece, cost, mean), piece.loss.weight
    return piece.dot(centred, centred), piece.dot(weight, weight)


def _cluster_gains(piece: Piece, cost: float, mean: float) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [_centred(piece, cost, mean), piece.loss.weight])


def _quantiles(shares: Floats, count: int) -> Stage[Floats]:
    """Quantiles of the prediction, straight between neighbours."""
    place = shares * (count - 1)
    below = np.floor(place).astype(np.int64)
    both = np.unique(np.concatenate([below, np.minimum(below + 1, count - 1)]))
    at = yield from predictions_at(both)
    low = at[np.searchsorted(both, below)]
    high = at[np.searchsorted(both, np.minimum(below + 1, count - 1))]
    return np.asarray(low + (high - low) * (place - below))


def _gains_above(piece: Piece, costs: Floats) -> Floats:
    """Question: for each cost, the summed net gain of those predicted above it, and of everyone."""
    chosen = np.searchsorted(piece.prediction, costs, side="right")
    at = [net_gain(piece.loss, cost) for cost in (0.0, 1.0)]  # it is a straight line in the cost
    free, slope = piece.each(at[0]), piece.each(at[1] - at[0])
    above = np.array([np.append(np.cumsum(column[::-1])[::-1], 0.0)[chosen] for column in (free, slope)])
    return np.array([above[0] + costs * above[1], free.sum() + costs * slope.sum()])


class Squares(NamedTuple):
    """Sums over units, which are rows or clusters: their number and weights, and squares of centred values and of weights.

    `steady` is how many equal units would have a sum of squares as steady as theirs.
    """

    units: int
    total: float
    centred: float
    weights: float
    steady: float = np.inf


def jackknifed(centred: Floats, weight: Floats) -> Squares:
    """Return the sums of clusters, each stretched as if left out of the mean (CR3); equal ones are left as they are."""
    units, total = len(weight), float(weight.sum())
    stretched = centred * (1 - 1 / units) / (1 - np.minimum(weight / total, MOST_LEVERAGE))
    return Squares(units, total, float(stretched @ stretched), float(weight @ weight), steadiness(stretched))


def error_of_mean(mean: float, squares: Squares, level: float) -> tuple[float, tuple[float, float], float]:
    """Return standard error and interval of a mean, and the effective number of units that its t distribution rests on."""
    units = squares.units
    if units < 2:
        raise OrthocalError(
            f"A comparison must rest on at least two rows, or clusters; there is {units}. Use more data."
        )
    effective = max(min(effective_number(squares.total, squares.weights), squares.steady), 2.0)
    error = float(np.sqrt(squares.centred * units / (units - 1))) / squares.total
    reach = float(t_distribution.ppf((1 + level) / 2, effective - 1)) * error
    return error, (mean - reach, mean + reach), effective
