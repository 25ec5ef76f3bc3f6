"""The score at a number: the derivative there of the loss taken there."""

from __future__ import annotations

from functools import singledispatch

from orthocal.arrays import Floats
from orthocal.losses.expectile import ExpectileLoss, expected_score
from orthocal.losses.hinge import HingeLoss
from orthocal.losses.protocol import Loss


@singledispatch
def score_at(loss: Loss, v: Floats) -> Floats:
    """Return ``loss.at(v).derivative(v)``; where that is registered, without what only the loss's value needs."""
    return loss.at(v).derivative(v)


@score_at.register(HingeLoss)
def _(loss: HingeLoss, v: Floats) -> Floats:
    if loss.law is None:
        return loss.derivative(v)
    wanted = loss.weight * loss.quantile + (loss.slope - loss.weight) * loss.law.below(v)
    return loss.slope * (loss.outcome <= v) - wanted


@score_at.register(ExpectileLoss)
def _(loss: ExpectileLoss, v: Floats) -> Floats:
    if loss.law is None:
        return loss.derivative(v)
    # The derivative has the tilt of another level; that is taken off and the one of this level put on.
    return loss.derivative(v) + loss.tilt - (loss.slope - loss.weight) * expected_score(loss.law, v, loss.expectile)
