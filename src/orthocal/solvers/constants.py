"""The best constant of each group of rows."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.errors import OrthocalError
from orthocal.losses import HingeLoss, Loss, QuadraticLoss

PRECISION = 1e-12
"""Width, as a share of the bounds' distance, at which the search for a minimiser stops."""
ROUNDING = 4 * float(np.finfo(float).eps)
"""Narrower than this share of the numbers themselves no interval can be halved."""


@singledispatch
def constants(loss: Loss, group: Integers, count: int) -> Floats:
    """Return for each group 0, ..., count - 1 the smallest number within bounds that minimises its summed loss.

    Any convex loss: bisection on the sign of the summed right derivative, all groups at once.
    """
    low, high = finite_bounds(loss)
    below, above = np.full(count, low), np.full(count, high)
    while (above - below).max() > narrowest(low, high):
        middle = (below + above) / 2
        falling = group_sums(group, loss.derivative(middle[group]), count) < 0
        below, above = np.where(falling, middle, below), np.where(falling, above, middle)
    return above


@constants.register(QuadraticLoss)
def _(loss: QuadraticLoss, group: Integers, count: int) -> Floats:
    return ratios(group_sums(group, loss.numerator, count), group_sums(group, loss.denominator, count))


@constants.register(HingeLoss)
def _(loss: HingeLoss, group: Integers, count: int) -> Floats:
    """Weighted quantile of the carrying outcomes at level T / W, exact, inside the bounds (mathematics 4.1)."""
    low, high = loss.bounds
    carrying = np.flatnonzero(loss.slope > 0)
    order = carrying[np.lexsort((loss.outcome[carrying], group[carrying]))]
    running = np.concatenate([[0.0], np.cumsum(loss.slope[order])])
    end = np.searchsorted(group[order], np.arange(count), side="right")
    start = np.concatenate([[0], end[:-1]])
    wanted, held = group_sums(group, loss.tilt, count), running[end] - running[start]
    # Rounding must not push a level that is reached exactly on to the next outcome.
    slack = 1e-12 * (np.abs(wanted) + held)
    place = np.searchsorted(running[1:], running[start] + wanted - slack, side="left")
    values = np.append(loss.outcome[order], high)[np.minimum(np.maximum(place, start), len(order))]
    return np.clip(np.where(wanted <= slack, low, np.where(wanted > held + slack, high, values)), low, high)


def ratios(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator, the minimisers of summed quadratic losses, which must be convex."""
    if not (denominator > 0).all():
        raise OrthocalError(
            f"Every group of rows must have positive mass; one has {denominator.min():.4g}. "
            "Use fewer, larger groups, or drop rows of weight 0."
        )
    return numerator / denominator


def narrowest(low: float, high: float, precision: float = PRECISION) -> float:
    """Return the width at which halving between two bounds stops: by their distance, not by how far they are from 0."""
    return max(precision * (high - low), ROUNDING * max(abs(low), abs(high)))


def finite_bounds(loss: Loss) -> tuple[float, float]:
    """Return the bounds of a loss whose minimiser must be searched for."""
    low, high = loss.bounds
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise OrthocalError(
            f"A {type(loss).__name__} must have finite `bounds` for its minimiser to be searched in; they are ({low}, {high})."
        )
    return float(low), float(high)
