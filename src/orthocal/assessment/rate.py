"""Does the ranking find who gains? Rank-weighted average treatment effects (Yadlowsky et al. 2021)."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from orthocal.arrays import group_sums, sorting_order
from orthocal.assessment.parts import Coefficient, Rate
from orthocal.losses import Loss, QuadraticLoss

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Rows


@singledispatch
def rate(loss: Loss, prediction: Floats, level: float) -> Rate | None:
    """Return None: effects without an average, such as quantiles, have no rank-weighted one."""
    del loss, prediction, level
    return None


@rate.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats, level: float) -> Rate | None:
    r"""Return AUTOC and Qini: mean effect of the top share u by prediction above the average, averaged over u.

    Both are :math:`\sum_i w(u_i)(n_i - \bar\tau d_i)/\sum d`, with :math:`u` the share of rows at least as high:
    :math:`w = -\log u - 1` for AUTOC, :math:`w = 1/2 - u` for Qini. Errors by the influence function, ranks included; tied
    predictions share their weight.
    """
    share = _share_at_least_as_high(prediction, loss.weight)
    total = float(loss.denominator.sum())
    gain = loss.numerator - float(loss.numerator.sum()) / total * loss.denominator
    order = sorting_order(prediction)
    autoc = _rank_weighted(gain, loss, share, order, -np.log(share) - 1, -gain / share, level)
    qini = _rank_weighted(gain, loss, share, order, 0.5 - share, -gain, level)
    return Rate(autoc, qini)


def _share_at_least_as_high(prediction: Floats, weight: Floats) -> Floats:
    """Middle of each tied block's place in the ranking from the top, in (0, 1)."""
    order = sorting_order(prediction)
    level = prediction[order]
    running = np.cumsum(weight[order])
    last = np.append(np.flatnonzero(level[1:] != level[:-1]), len(level) - 1)
    end = running[last]
    middle = 1 - (np.concatenate([[0.0], end[:-1]]) + end) / 2 / running[-1]
    spread = middle if len(last) == len(level) else np.repeat(middle, np.diff(last, prepend=-1))
    if isinstance(order, slice):
        return spread
    share = np.empty(len(prediction))
    share[order] = spread
    return share


def _rank_weighted(
    gain: Floats, loss: QuadraticLoss, share: Floats, order: Rows, weight: Floats, pull: Floats, level: float
) -> Coefficient:
    """Return sum(weight * gain) / sum(d); `pull` is the derivative of the weight in the share, times the gain."""
    total = float(loss.denominator.sum())
    value = float(weight @ gain) / total
    # A row also moves the ranks of those below it: cumulate their pull from the bottom of the ranking up.
    below = np.cumsum(pull[order])
    if not isinstance(order, slice):
        below[order] = below.copy()
    influence = (weight - float(weight @ loss.denominator) / total) * gain
    influence += loss.weight / float(loss.weight.sum()) * (below - float(pull @ share))
    influence -= influence.mean()
    if loss.groups is not None:
        codes, index = np.unique(loss.groups, return_inverse=True)
        influence = group_sums(index, influence, len(codes))
    error = float(np.sqrt(influence @ influence)) / total
    reach = float(norm.ppf((1 + level) / 2)) * error
    return Coefficient(value, error, (value - reach, value + reach))
