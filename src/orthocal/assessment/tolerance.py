"""The tolerance: the size of error that would matter, in the unit of the error, by default from the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.parts import Average
from orthocal.assessment.sweeps import Piece, Rows, Stage

PART = 0.5
"""Of the spread of predictions, the size of effects or the size of scores: an error as large would already matter."""
IN_PROBABILITY = 0.05
NO_EFFECT = {"ratio": 1.0}
"""What an effect is where there is none, by unit; else 0."""


class Tolerance(NamedTuple):
    """A tolerance and where it comes from."""

    value: float
    note: str


def usual_tolerance(rows: Rows, columns: Mapping[str, Floats], average: Average) -> Stage[Tolerance]:
    """Return the tolerance of a verdict that was given none, from the bins and the average of its rows."""
    return (yield from USUAL.get(rows.like.unit, _of_scores)(rows, columns, average))


def _of_effects(rows: Rows, columns: Mapping[str, Floats], average: Average) -> Stage[Tolerance]:
    """Half the smaller of the spread of the predictions and the size of the effects, neither of which a flat map can move.

    Never below half the standard error of the average effect, which is what remains for a constant, and without any effect.
    """
    spread = yield from spread_of_predictions()
    size = size_of_effects(columns, NO_EFFECT.get(rows.like.unit, 0.0))
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


def size_of_effects(columns: Mapping[str, Floats], nothing: float) -> float:
    """Return the root mean square over bins of effects away from nothing, what noise adds taken off; 0 if less is left."""
    known = np.isfinite(columns["target"]) & np.isfinite(columns["standard_error"])
    mass = np.where(known, columns["mass"], 0.0)
    if not mass.sum() > 0:
        return 0.0
    squares = (columns["target"] - nothing) ** 2 - columns["standard_error"] ** 2
    return float(np.sqrt(max(np.where(known, squares, 0.0) @ mass / mass.sum(), 0.0)))


def _of_probabilities(rows: Rows, columns: Mapping[str, Floats], average: Average) -> Stage[Tolerance]:
    del rows, columns, average
    yield from ()
    return Tolerance(IN_PROBABILITY, "0.05 in probability")


def _of_scores(rows: Rows, columns: Mapping[str, Floats], average: Average) -> Stage[Tolerance]:
    del rows, columns
    size, mass = np.sum((yield partial(_absolute_scores, value=average.effect)), axis=0)
    return Tolerance(PART * float(size / mass), "half the mean absolute score at the best constant")


def _absolute_scores(piece: Piece, value: float) -> tuple[float, float]:
    at = np.full(len(piece), value)
    return float(np.abs(piece.loss.at(at).derivative(at)).sum()), float(piece.loss.mass.sum())


USUAL: dict[str, Callable[[Rows, Mapping[str, Floats], Average], Stage[Tolerance]]] = {
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
    mean = float(weight @ prediction / weight.sum())
    return float(weight.sum()), mean, float(weight @ (prediction - mean) ** 2)
