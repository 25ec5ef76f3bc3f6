"""Score decomposition: miscalibration, discrimination, uncertainty (MATH 7.6)."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from orthocal.arrays import MANY
from orthocal.assessment.parts import Decomposition
from orthocal.folds import assign_folds
from orthocal.losses import Loss, QuadraticLoss
from orthocal.solvers import constants, monotone

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Rows

FOLDS = 2


def decompose(prediction: Floats, loss: Loss, rng: np.random.Generator) -> Decomposition:
    """Split the mean loss into miscalibration - discrimination + uncertainty, recalibrating by isotonic regression out of fold.

    Miscalibration is what recalibration gains and can be negative out of fold: then it would have done harm. Discrimination is
    what the recalibrated prediction gains over the best constant.
    """
    total = float(loss.weight.sum())
    everyone = np.zeros(len(loss), dtype=np.int64)
    best = np.full(len(loss), constants(loss, everyone, 1)[0])
    recalibrated, constant = _out_of_fold(prediction, loss, rng)
    at_prediction = float(loss.value(prediction).sum()) / total
    at_recalibrated = float(loss.value(recalibrated).sum()) / total
    at_constant = float(loss.value(constant).sum()) / total
    return Decomposition(
        miscalibration=at_prediction - at_recalibrated,
        discrimination=at_constant - at_recalibrated,
        uncertainty=uncertainty(loss, best),
    )


def _out_of_fold(prediction: Floats, loss: Loss, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Isotonic fit and best constant, each row's from the other half."""
    everyone = np.zeros(len(loss), dtype=np.int64)
    recalibrated, constant = np.empty(len(loss)), np.empty(len(loss))
    for own, rest in _halves(loss, rng):
        other = loss[rest]
        edges, values = monotone(other, prediction[rest])
        recalibrated[own] = values[np.searchsorted(edges, prediction[own], side="left")]
        constant[own] = constants(other, everyone[rest], 1)[0]
    return recalibrated, constant


def _halves(loss: Loss, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Return (rows, the other rows) of each half: every second row where rows are many, drawn where few or clustered."""
    if loss.groups is None and len(loss) > MANY:
        even, odd = slice(0, None, 2), slice(1, None, 2)
        return [(even, odd), (odd, even)]
    fold = assign_folds(FOLDS, np.zeros(len(loss), dtype=np.int64), loss.groups, rng)
    first, second = np.flatnonzero(fold == 0), np.flatnonzero(fold == 1)
    return [(first, second), (second, first)]


@singledispatch
def uncertainty(loss: Loss, best: Floats) -> float | None:
    """Mean loss of the best constant."""
    return float(loss.value(best).sum() / loss.weight.sum())


@uncertainty.register(QuadraticLoss)
def _(loss: QuadraticLoss, best: Floats) -> float | None:
    """With the constant n^2 / 2d that the loss leaves out, which makes it half the variance; None where d can be 0."""
    if not (loss.denominator > 0).all():
        return None
    return float((loss.value(best) + 0.5 * loss.numerator**2 / loss.denominator).sum() / loss.weight.sum())
