"""What decisions by the prediction are worth at a cost (MATH 7.7)."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as t_law

from orthocal.arrays import group_sums
from orthocal.assessment.parts import Decision, Value
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, QuadraticLoss

if TYPE_CHECKING:
    from orthocal.arrays import Floats

CURVE = 21
"""Costs at which the decision curve is drawn."""


@singledispatch
def net_gain(loss: Loss, cost: float) -> Floats:
    """Estimated gain of treating each row, net of the cost."""
    raise OrthocalError(
        f"`cost` must go with an effect that can be weighed against it; a {type(loss).__name__} has none ({cost} was given)."
    )


@net_gain.register(QuadraticLoss)
def _(loss: QuadraticLoss, cost: float) -> Floats:
    return loss.numerator - cost * loss.denominator


def decision_value(prediction: Floats, loss: Loss, cost: float, level: float) -> Value:
    """Return the mean net gain of treating those predicted above the cost, and the curve of it over costs."""
    value, error, interval = weighted_mean((prediction > cost) * net_gain(loss, cost), loss, level)
    everyone = weighted_mean(net_gain(loss, cost), loss, level)[0]
    costs = np.quantile(prediction, np.linspace(0.02, 0.98, CURVE))
    total = float(loss.weight.sum())
    curve = {
        "cost": costs,
        "by_prediction": np.array([float(((prediction > c) * net_gain(loss, c)).sum()) / total for c in costs]),
        "everyone": np.array([float(net_gain(loss, c).sum()) / total for c in costs]),
    }
    treated = float(loss.weight @ (prediction > cost)) / total
    return Value(float(cost), value, error, interval, treated, everyone, curve)


def decision_change(before: Floats, after: Floats, loss: Loss, cost: float, level: float) -> Decision:
    """Return the share of rows whose decision changes, and what the change gains."""
    flips = (after > cost).astype(float) - (before > cost)
    gain, error, interval = weighted_mean(flips * net_gain(loss, cost), loss, level)
    return Decision(float(cost), float(loss.weight @ np.abs(flips)) / float(loss.weight.sum()), gain, error, interval)


def weighted_mean(values: Floats, loss: Loss, level: float) -> tuple[float, float, tuple[float, float]]:
    """Return sum(values) / sum(weight) with standard error and interval, over rows or clusters; weights are inside values."""
    total = float(loss.weight.sum())
    mean = float(values.sum()) / total
    centred, units = values - mean * loss.weight, len(values)
    if loss.groups is not None:
        codes, index = np.unique(loss.groups, return_inverse=True)
        units = len(codes)
        centred = group_sums(index, centred, units)
    if units < 2:
        raise OrthocalError(
            f"A comparison must rest on at least two rows, or clusters; there is {units}. Use more data."
        )
    error = float(np.sqrt(centred @ centred * units / (units - 1))) / total
    reach = float(t_law.ppf((1 + level) / 2, units - 1)) * error
    return mean, error, (mean - reach, mean + reach)
