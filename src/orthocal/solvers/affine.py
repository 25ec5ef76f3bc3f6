"""The best map intercept + slope * prediction."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from orthocal.errors import OrthocalError
from orthocal.losses import Loss, QuadraticLoss, total_mass

if TYPE_CHECKING:
    from orthocal.arrays import Floats


@singledispatch
def affine(loss: Loss, prediction: Floats) -> tuple[float, float]:
    """Return (intercept, slope) of the affine map that minimises the summed loss; slope 0 for a constant prediction."""
    raise NotImplementedError(type(loss).__name__)


@affine.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats) -> tuple[float, float]:
    total = total_mass(loss)
    average = float(loss.numerator.sum()) / total
    if prediction.min() == prediction.max():
        return average, 0.0
    middle = float(loss.denominator @ prediction) / total
    centred = prediction - middle
    spread = float((loss.denominator * centred) @ centred)
    if not spread > 0:
        raise OrthocalError(
            f"The mass-weighted spread of the predictions must be positive for a line; it is {spread:.4g}. "
            "Use more rows or the method 'histogram' with few bins."
        )
    slope = float(centred @ loss.numerator) / spread
    return average - slope * middle, slope
