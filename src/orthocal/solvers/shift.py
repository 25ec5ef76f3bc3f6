"""The best number to add to every prediction."""

from __future__ import annotations

from functools import singledispatch

from orthocal.arrays import Floats
from orthocal.losses import Loss, QuadraticLoss, total_mass
from orthocal.solvers.constants import finite_bounds, narrowest


@singledispatch
def shift(loss: Loss, prediction: Floats) -> float:
    """Return the number that minimises the summed loss when it is added to every prediction.

    Any convex loss: bisection on the sign of the summed right derivative. The average of the predictions stays within the loss's
    bounds; single predictions may leave them, as they may without a shift.
    """
    lowest, highest = finite_bounds(loss)
    middle = float(prediction.mean())
    low, high = lowest - middle, highest - middle
    while high - low > narrowest(lowest, highest):
        half = (low + high) / 2
        falls = loss.derivative(prediction + half).sum() < 0
        low, high = (half, high) if falls else (low, half)
    return high


@shift.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats) -> float:
    return float((loss.numerator - loss.denominator * prediction).sum()) / total_mass(loss)
