"""A loss in standard units, and its score at a number: solvers must not see the unit of the outcome."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.losses.protocol import Loss
from orthocal.losses.quadratic import QuadraticLoss
from orthocal.losses.tilted import ExpectileLoss, HingeLoss, expected_score


class Units(NamedTuple):
    """Where a loss's minimisers are and how far they spread: v is centre + scale * (v in standard units)."""

    centre: float
    scale: float

    def standard(self, values: Floats) -> Floats:
        """Return values in standard units."""
        return np.asarray((values - self.centre) / self.scale)

    def original(self, values: Floats) -> Floats:
        """Return values as they were."""
        return np.asarray(self.centre + self.scale * values)


@singledispatch
def units_of(loss: Loss) -> Units:
    """Return the units of a loss; of a custom loss, whose columns are not known, those it has."""
    del loss
    return Units(0.0, 1.0)


@units_of.register(QuadraticLoss)
def _(loss: QuadraticLoss) -> Units:
    """The mean effect, and the root mean square of what it leaves, for a row of mean mass."""
    total = float(loss.denominator.sum())
    centre = float(loss.numerator.sum()) / total if total > 0 else 0.0
    left = loss.numerator - centre * loss.denominator
    return Units(centre, _positive(float(np.sqrt((left @ left) / len(left))) / float(np.abs(loss.denominator).mean())))


@units_of.register(HingeLoss)
@units_of.register(ExpectileLoss)
def _(loss: HingeLoss | ExpectileLoss) -> Units:
    carrying = loss.outcome[loss.slope > 0]
    carrying = carrying if len(carrying) else loss.outcome
    return Units(float(np.median(carrying)), _positive(float(carrying.std())))


def _positive(scale: float) -> float:
    return scale if np.isfinite(scale) and scale > 0 else 1.0


@singledispatch
def restated(loss: Any, units: Units) -> Any:
    """Return the loss of numbers in standard units, up to a factor and a constant; a custom loss as it is."""
    del units
    return loss


@restated.register(QuadraticLoss)
def _(loss: QuadraticLoss, units: Units) -> QuadraticLoss:
    return replace(loss, numerator=(loss.numerator - units.centre * loss.denominator) / units.scale)


@restated.register(HingeLoss)
def _(loss: HingeLoss, units: Units) -> HingeLoss:
    """Tilts are probabilities and stay; the loss stays at its level."""
    return replace(
        loss,
        outcome=units.standard(loss.outcome),
        bounds=_bounds(loss, units),
        offset=np.zeros(len(loss)),
        distribution=None,
    )


@restated.register(ExpectileLoss)
def _(loss: ExpectileLoss, units: Units) -> ExpectileLoss:
    return replace(
        loss,
        outcome=units.standard(loss.outcome),
        tilt=loss.tilt / units.scale,
        bounds=_bounds(loss, units),
        offset=np.zeros(len(loss)),
        distribution=None,
    )


def _bounds(loss: HingeLoss | ExpectileLoss, units: Units) -> tuple[float, float]:
    low, high = units.standard(np.array(loss.bounds)).tolist()
    return low, high


@singledispatch
def score_at(loss: Loss, v: Floats) -> Floats:
    """Return ``loss.at(v).derivative(v)``; where that is registered, without what only the loss's value needs."""
    return loss.at(v).derivative(v)


@score_at.register(HingeLoss)
def _(loss: HingeLoss, v: Floats) -> Floats:
    if loss.distribution is None:
        return loss.derivative(v)
    wanted = loss.weight * loss.quantile + (loss.slope - loss.weight) * loss.distribution.below(v)
    return loss.slope * (loss.outcome <= v) - wanted


@score_at.register(ExpectileLoss)
def _(loss: ExpectileLoss, v: Floats) -> Floats:
    if loss.distribution is None:
        return loss.derivative(v)
    # The derivative has the tilt of another level; that is taken off and the one of this level put on.
    return (
        loss.derivative(v)
        + loss.tilt
        - (loss.slope - loss.weight) * expected_score(loss.distribution, v, loss.expectile)
    )
