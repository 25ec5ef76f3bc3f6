"""The best constant of each group of rows."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from orthocal.arrays import group_sums
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, QuadraticLoss

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers


@singledispatch
def constants(loss: Loss, group: Integers, count: int) -> Floats:
    """Return for each group 0, ..., count - 1 the number that minimises the group's summed loss."""
    raise NotImplementedError(type(loss).__name__)


@constants.register(QuadraticLoss)
def _(loss: QuadraticLoss, group: Integers, count: int) -> Floats:
    return ratios(group_sums(group, loss.numerator, count), group_sums(group, loss.denominator, count))


def ratios(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator, the minimisers of summed quadratic losses, which must be convex."""
    if not (denominator > 0).all():
        raise OrthocalError(
            f"Every group of rows must have positive mass; one has {denominator.min():.4g}. "
            "Use fewer, larger groups, or drop rows of weight 0."
        )
    return numerator / denominator
