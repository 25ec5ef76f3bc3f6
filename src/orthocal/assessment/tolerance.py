"""The tolerance: the size of error that would matter, in the unit of the error, by default from the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.parts import Average
from orthocal.assessment.pieces import Piece, Runs
from orthocal.assessment.sweeps import Rows, Stage

PART = 0.5
"""Of the spread of predictions, the size of effects or the size of scores: an error as large would already matter."""
IN_PROBABILITY = 0.05
NO_EFFECT = {"ratio": 1.0}
"""What an effect is where there is none, by unit; else 0."""


class Tolerance(NamedTuple):
    """A tolerance and where it comes from."""

    value: float
    note: str


def usual_tolerance(rows: Rows, edges: Floats, average: Average) -> Stage[Tolerance]:
    """Return the tolerance of a verdict that was given none, from the bins and the average of its rows."""
    return (yield from USUAL.get(rows.like.unit, _of_scores)(rows, edges, average))


def _of_effects(rows: Rows, edges: Floats, average: Average) -> Stage[Tolerance]:
    """Half the smaller of the spread of the predictions and the size of the effects, neither of which a flat map can move.

    Never below half the standard error of the average effect, which is what remains for a constant, and without any effect.
    """
    spread = yield from spread_of_predictions()
    size = yield from size_of_effects(edges, NO_EFFECT.get(rows.like.unit, 0.0))
    named = {
        "standard deviation of the predictions": spread,
        "root mean square of the effects of the bins": size,
        "standard error of the average effect": average.standard_error,
    }
    *smaller, least = named.items()
    name, value = max(min(smaller, key=_second), least, key=_second)
    return Tolerance(PART * value, f"half the {name}")


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def size_of_effects(edges: Floats, nothing: float) -> Stage[float]:
    """Return the root mean square over bins of effects away from nothing, what noise adds taken off; 0 if less is left.

    The noise is that of the effects themselves, not of their distance from the prediction, which an inflated model makes large.
    """
    mass, away, squares, products, masses = np.sum((yield partial(_away_by_bin, edges=edges, nothing=nothing)), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = away / mass
        size = mean**2 - (squares - 2 * mean * products + mean**2 * masses) / mass**2
    kept = mass > 0
    return float(np.sqrt(max(mass[kept] @ size[kept] / mass[kept].sum(), 0.0))) if kept.any() else 0.0


def _away_by_bin(piece: Piece, edges: Floats, nothing: float) -> Floats:
    """Summary: of each bin, sums of masses and of scores at no effect, of squared scores, of products and of squared masses."""
    runs, mass = Runs.of(piece, edges), piece.loss.mass
    score = -piece.loss.derivative(np.full(len(piece), nothing))
    return np.array([runs.sums(column) for column in (mass, score, score**2, score * mass, mass**2)])


def _of_probabilities(rows: Rows, edges: Floats, average: Average) -> Stage[Tolerance]:
    del rows, edges, average
    yield from ()
    return Tolerance(IN_PROBABILITY, "0.05 in probability")


def _of_scores(rows: Rows, edges: Floats, average: Average) -> Stage[Tolerance]:
    del rows, edges
    size, mass = np.sum((yield partial(_absolute_scores, value=average.effect)), axis=0)
    return Tolerance(PART * float(size / mass), "half the mean absolute score at the best constant")


def _absolute_scores(piece: Piece, value: float) -> tuple[float, float]:
    at = np.full(len(piece), value)
    return float(np.abs(piece.loss.at(at).derivative(at)).sum()), float(piece.loss.mass.sum())


USUAL: dict[str, Callable[[Rows, Floats, Average], Stage[Tolerance]]] = {
    "effect": _of_effects,
    "ratio": _of_effects,
    "probability": _of_probabilities,
}
"""By the unit of the residuals; scores of whatever kind, for all others."""


def spread_of_predictions() -> Stage[float]:
    """Return the standard deviation of the predictions, by sample weight."""
    weight, mean, squares = np.array((yield _moments_of_prediction)).T
    middle = float(weight @ mean / weight.sum())
    return float(np.sqrt((squares.sum() + weight @ (mean - middle) ** 2) / weight.sum()))


def _moments_of_prediction(piece: Piece) -> tuple[float, float, float]:
    """Summary: weight, mean, and squares about it."""
    weight, prediction = piece.loss.weight, piece.prediction
    total = piece.sum(weight)
    mean = piece.dot(weight, prediction) / total
    return total, mean, piece.dot(weight, (prediction - mean) ** 2)
