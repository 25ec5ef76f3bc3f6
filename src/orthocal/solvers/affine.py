"""The best map intercept + slope * prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from orthocal.arrays import Floats, runs
from orthocal.errors import OrthocalError
from orthocal.losses import HingeLoss, Loss, QuadraticLoss, total_mass
from orthocal.losses.units import restated, units_of
from orthocal.solvers.constants import PRECISION, ROUNDING, constants, finite_bounds, narrowest
from orthocal.solvers.monotone import positive_runs


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


if TYPE_CHECKING:
    Profile = Callable[[float], tuple[float, float, float]]
    """Slope -> (least objective, its derivative in the slope, best intercept)."""

MOST_STEPS = 200
L = TypeVar("L", bound=Loss)


@singledispatch
def affine(loss: Loss, prediction: Floats) -> tuple[float, float]:
    """Return (intercept, slope) of the affine map that minimises the summed loss; slope 0 for a constant prediction.

    The map stays within the loss's bounds on the range of the predictions (mathematics 4.4). Any convex loss: the best intercept
    of a slope is found by bisection, the best slope by intersecting tangents of what is left.
    """
    return _boxed(loss, prediction, _bisected_profile)


@affine.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats) -> tuple[float, float]:
    total = total_mass(loss)
    average = float(loss.numerator.sum()) / total
    if prediction.min() == prediction.max():
        return average, 0.0
    middle = float(loss.denominator @ prediction) / total
    spread = pull = 0.0
    for rows in runs(len(prediction)):
        centred, mass = prediction[rows] - middle, loss.denominator[rows]
        spread += float((mass * centred) @ centred)
        # Of the numerators what the average leaves, so that a rounded middle does not matter.
        pull += float(centred @ (loss.numerator[rows] - average * mass))
    if spread <= 0 and loss.denominator.min() < 0:
        pooled, runs_of_rows = positive_runs(loss, prediction)
        return affine(runs_of_rows, pooled)
    return line_of(average, middle, spread, pull)


def line_of(average: float, middle: float, spread: float, pull: float) -> tuple[float, float]:
    """Return (intercept, slope) of the least squares line from its moments about the middle."""
    if not spread > 0:
        raise OrthocalError(
            f"The mass-weighted spread of the predictions must be positive for a line; it is {spread:.4g}. "
            "Use more rows or the method 'histogram' with few bins."
        )
    slope = pull / spread
    return average - slope * middle, slope


@affine.register(HingeLoss)
def _(loss: HingeLoss, prediction: Floats) -> tuple[float, float]:
    return _boxed(loss, prediction, _sorted_profile)


def _boxed(loss: L, prediction: Floats, profile: Callable[[L, Floats, Box], Profile]) -> tuple[float, float]:
    units = units_of(loss)
    loss = restated(loss, units)
    low, high = finite_bounds(loss)
    least, most = float(prediction.min()), float(prediction.max())
    if least == most or low == high:
        best = constants(loss, np.zeros(len(prediction), dtype=np.int64), 1)
        return float(units.original(best)[0]), 0.0
    # Predictions are scaled to [0, 1], where the box is easy to see and rounding is even.
    box = Box(low, high)
    intercept, slope = least_point(profile(loss, (prediction - least) / (most - least), box), low - high, high - low)
    slope *= units.scale / (most - least)
    return units.centre + units.scale * intercept - slope * least, slope


class Box:
    """Intercepts that keep intercept + slope * [0, 1] within bounds."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def of(self, slope: float) -> tuple[float, float]:
        """Least and largest intercept."""
        return self.low - min(slope, 0.0), self.high - max(slope, 0.0)

    def corner(self, slope: float, is_low: bool) -> float:
        """The prediction, 0 or 1, at which the bound is met."""
        return float((slope < 0) == is_low)


def _sorted_profile(loss: HingeLoss, prediction: Floats, box: Box) -> Profile:
    """Exact: the best intercept is a weighted quantile of outcome - slope * prediction (mathematics 4.4)."""
    carrying = loss.slope > 0
    y, x, w = loss.outcome[carrying], prediction[carrying], loss.slope[carrying]
    wanted, wanted_x = float(loss.tilt.sum()), float(loss.tilt @ prediction)

    def profile(slope: float) -> tuple[float, float, float]:
        low, high = box.of(slope)
        gap = y - slope * x
        order = np.argsort(gap)
        gap, weight = gap[order], w[order]
        mass = np.cumsum(weight)
        place = int(np.searchsorted(mass, wanted))
        free = -np.inf if wanted <= 0 else np.inf if place == len(mass) else float(gap[place])
        intercept = min(max(free, low), high)
        # Rows that pull the line down: those before the quantile, or all under a bound that is active.
        held = place if low <= free <= high else int(np.searchsorted(gap, intercept, "right" if free < low else "left"))
        under = float(mass[held - 1]) if held else 0.0
        under_x = float(weight[:held] @ x[order[:held]])
        value = under * intercept - float(weight[:held] @ gap[:held]) - wanted * intercept - wanted_x * slope
        # What the held rows miss of the tilt sits on the row at the kink, or on the corner of the box.
        at = x[order[place]] if low <= free <= high else box.corner(slope, free < low)
        return value, under_x - wanted_x + (wanted - under) * float(at), intercept

    return profile


def _bisected_profile(loss: Loss, prediction: Floats, box: Box) -> Profile:
    def profile(slope: float) -> tuple[float, float, float]:
        lowest, highest = low, high = box.of(slope)
        while high - low > max(PRECISION * (box.high - box.low), ROUNDING * max(abs(low), abs(high))):
            middle = (low + high) / 2
            falls = loss.derivative(middle + slope * prediction).sum() < 0
            low, high = (middle, high) if falls else (low, middle)
        right, left = loss.derivative(high + slope * prediction), loss.derivative(low + slope * prediction)
        value = float(loss.value(high + slope * prediction).sum())
        rise, fall = float(right.sum()), float(left.sum())
        if low == lowest and fall >= 0:  # the lower bound is active, and takes up what is left of the derivative
            return value, float(left @ prediction) - fall * box.corner(slope, is_low=True), high
        if high == highest and rise <= 0:
            return value, float(right @ prediction) - rise * box.corner(slope, is_low=False), high
        share = fall / (fall - rise) if fall < rise else 0.5  # a kink: the mixture of both sides that is flat
        return value, float((share * right + (1 - share) * left) @ prediction), high

    return profile


def least_point(profile: Profile, low: float, high: float) -> tuple[float, float]:
    """Return (intercept, slope) where a convex profile is least: intersect the tangents at both ends, keep the lower side."""
    (value_low, fall, intercept_low), (value_high, rise, intercept_high) = profile(low), profile(high)
    if fall >= 0:
        return intercept_low, low
    if rise <= 0:
        return intercept_high, high
    best = min((value_low, intercept_low, low), (value_high, intercept_high, high))
    for _ in range(MOST_STEPS):
        middle = (value_high - value_low + fall * low - rise * high) / (fall - rise)
        promised = value_low + fall * (middle - low)
        value, slope, intercept = profile(middle)
        best = min(best, (value, intercept, middle))
        if best[0] - promised <= 1e-14 * (abs(promised) + 1e-300) or not low < middle < high:
            break
        if slope < 0:
            low, value_low, fall = middle, value, slope
        elif slope > 0:
            high, value_high, rise = middle, value, slope
        else:
            break
    return best[1], best[2]
