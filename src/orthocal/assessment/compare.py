"""compare: did a change of predictions do good or harm?"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from scipy.stats import t as t_law

from orthocal.arrays import Floats
from orthocal.assessment.parts import Decision
from orthocal.assessment.records import Comparison
from orthocal.assessment.value import decision_change, weighted_mean
from orthocal.errors import require_inside
from orthocal.losses import Loss, QuadraticLoss, rows_that_count
from orthocal.observations import as_numbers


def compare(before: Any, after: Any, loss: Loss, *, level: float = 0.95, cost: float | None = None) -> Comparison:
    """Compare two predictions of the same rows by their mean loss, row by row (mathematics 10.4).

    Valid on rows that were not used to fit `after`. A difference of mean losses is half a difference of mean squared errors, for
    a squared loss, up to the nuisances' second-order bias (mathematics 10.4, 12.10).

    Parameters
    ----------
    before, after : array of shape (rows,)
        Two predictions of the same rows, unseen by the model and by the map.
    loss : Loss
        Of those rows.
    level : float, default 0.95
        Confidence level of the interval.
    cost : float, optional
        What treating one person costs: adds the share of rows whose decision changes, and what that gains.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from orthocal import compare, orthogonal_loss
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, random_state=0)
    >>> loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    >>> compare(1 + 2 * data.effect, data.effect, loss).verdict
    'improved'
    """
    require_inside(level, 0, 1, "level")
    before = as_numbers(before, "before", len(loss))
    after = as_numbers(after, "after", len(loss))
    before, _ = rows_that_count(before, loss)
    after, loss = rows_that_count(after, loss)
    difference = loss_change(loss, before, after)
    mean, error, interval, effective = weighted_mean(difference, loss, level)
    decision = None if cost is None else decision_change(before, after, loss, cost, level)
    return concluded(mean, error, interval, effective, level, decision)


@singledispatch
def loss_change(loss: Loss, before: Floats, after: Floats) -> Floats:
    """Return each row's loss after minus its loss before."""
    return loss.at(after).value(after) - loss.at(before).value(before)


@loss_change.register(QuadraticLoss)
def _(loss: QuadraticLoss, before: Floats, after: Floats) -> Floats:
    """In one product: far from 0 both losses are large, and their difference would be lost in rounding."""
    return (after - before) * (0.5 * loss.denominator * (before + after) - loss.numerator)


def concluded(
    mean: float, error: float, interval: tuple[float, float], effective: float, level: float, decision: Decision | None
) -> Comparison:
    """Return the verdict on a mean difference of losses, after minus before, over an effective number of rows or clusters."""
    low, high = interval
    harm = float(t_law.sf(mean / error, effective - 1)) if error > 0 else float(mean <= 0)
    word = "improved" if high < 0 else "harmed" if low > 0 else "no detectable change"
    return Comparison(mean, error, interval, harm, word, level, decision)
