r"""Bounds under an omitted variable of stated strength (Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis 2022).

A variable that was not measured moves the mean effect of a set of rows by at most :math:`C_Y C_D S` with
:math:`S^2 = E[(Y-\mu)^2]\,E[\alpha^2]` over the set, :math:`\alpha = 1\{a=1\}/\pi_1 - 1\{a=0\}/\pi_0` (mathematics 10.6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from orthocal.arrays import Booleans, Floats, Integers, RowIndex, group_sums, in_runs, is_constant, taken
from orthocal.assessment.average import average_effect
from orthocal.assessment.bins import Binned, binned
from orthocal.assessment.error import error_interval, excludes_zero
from orthocal.assessment.sweeps import SortedRows, answer
from orthocal.assessment.value import decision_value
from orthocal.losses import Overlap, QuadraticLoss

LEAST_REPRESENTER = 4.0
r"""Least mean of :math:`\alpha^2`: :math:`1/\pi_1 + 1/\pi_0` is never smaller where :math:`\pi_1 + \pi_0 \le 1`."""
STEPS = 60
"""Halvings in the search for a strength."""


class ConfoundingScale(NamedTuple):
    r"""What the strength of an omitted variable is multiplied by, of each row.

    Parameters
    ----------
    outcome : array
        :math:`(y - \mu_a(x))^2`, the variance of the outcome that is left.
    treatment : array
        :math:`2(1/\pi_1 + 1/\pi_0) - \alpha^2`, whose mean is :math:`E[\alpha^2]` up to second order in the error of the
        propensity.
    weight : array
    """

    outcome: Floats
    treatment: Floats
    weight: Floats

    def of(self, rows: RowIndex) -> ConfoundingScale:
        """Return that of some rows."""
        return ConfoundingScale(*(taken(column, rows) for column in self))

    def means(self, cell: Integers, cells: int) -> tuple[Floats, Floats]:
        """Return the mean of either in each cell; 1 and the least possible where a cell has no rows."""
        total = group_sums(cell, self.weight, cells)
        safe = np.where(total > 0, total, 1.0)
        each = self.weight[0] if is_constant(self.weight) else None
        outcome, treatment = (
            (group_sums(cell, self.weight * one, cells) if each is None else each * group_sums(cell, one, cells)) / safe
            for one in (self.outcome, self.treatment)
        )
        return np.where(outcome > 0, outcome, 1.0), np.maximum(treatment, LEAST_REPRESENTER)

    def scores(self, cell: Integers, cells: int) -> Floats:
        r"""Return a number per row whose mean in a cell is :math:`S`, with the error that S is estimated with (delta method)."""
        outcome, treatment = self.means(cell, cells)
        half = np.sqrt(outcome * treatment) / 2

        def score(cell: Integers, own_outcome: Floats, own_treatment: Floats) -> Floats:
            return np.asarray(half[cell] * (own_outcome / outcome[cell] + own_treatment / treatment[cell]))

        return in_runs(score, cell, self.outcome, self.treatment)


def scale_of(overlap: Overlap | None) -> ConfoundingScale | None:
    """Return what a strength is multiplied by, from what a loss knows of its arms; None where that is not enough."""
    if overlap is None or overlap.residual is None:
        return None
    (got1, pi1), (got0, pi0) = overlap.levels["treated"], overlap.levels["control"]
    return ConfoundingScale(overlap.residual**2, in_runs(squared_representer, got1, pi1, got0, pi0), overlap.weight)


def squared_representer(got1: Booleans, pi1: Floats, got0: Booleans, pi0: Floats) -> Floats:
    r"""Return :math:`2(1/\pi_1 + 1/\pi_0) - \alpha^2` of each row, with :math:`\alpha = 1\{1\}/\pi_1 - 1\{0\}/\pi_0`."""
    return 2 * (1 / pi1 + 1 / pi0) - (got1 / pi1 - got0 / pi0) ** 2


def product_of(outcome: Any, treatment: Any) -> Any:
    r"""Return :math:`C_Y C_D` of a variable that explains these shares of the outcome's variance and of the representer's.

    :math:`C_Y^2` is the first share, and :math:`C_D^2 = t/(1-t)` of the second, :math:`t = 1 - R^2`.
    """
    return np.sqrt(outcome * treatment / (1 - treatment))


def robustness_value(product: float) -> float:
    r"""Return the share r of both whose product is this: :math:`r^2/(1-r) = (C_Y C_D)^2`."""
    square = product**2
    return float((np.sqrt(square**2 + 4 * square) - square) / 2)


class MeanPath(NamedTuple):
    """A mean effect, or the value of a rule, as a function of the strength of an omitted variable.

    Parameters
    ----------
    estimate, slope : float
        At strength 0, and by how much a product of 1 moves its bounds.
    variance : (float, float, float)
        Of the upper bound, as a polynomial in the product; that of the lower bound is the same at minus the product.
    critical : float
        Standard errors that an interval reaches.
    """

    estimate: float
    slope: float
    variance: tuple[float, float, float]
    critical: float

    def bounds(self, product: float) -> tuple[float, float]:
        """Return what the mean can be, but for chance."""
        return self.estimate - product * self.slope, self.estimate + product * self.slope

    def interval(self, product: float) -> tuple[float, float]:
        """Return an interval of the mean that allows for chance, too."""
        (low, high), reach = self.bounds(product), self.critical
        return low - reach * self._error(-product), high + reach * self._error(product)

    def _error(self, product: float) -> float:
        constant, linear, square = self.variance
        return float(np.sqrt(max(constant + linear * product + square * product**2, 0.0)))

    @property
    def product_to_zero(self) -> float:
        """The product at which the interval reaches 0; 0 where it does already."""
        end = 0 if self.estimate > 0 else 1
        sign = 1.0 if self.estimate > 0 else -1.0
        if sign * self.interval(0.0)[end] <= 0 or self.slope <= 0:
            return 0.0
        return float(brentq(lambda product: sign * self.interval(product)[end], 0.0, abs(self.estimate) / self.slope))


class ErrorPath(NamedTuple):
    """The bins of a prediction as a function of the strength of an omitted variable, each moved towards its prediction.

    Parameters
    ----------
    binned : Binned
        At strength 0.
    slope : array
        S of each bin.
    linear, square : array of shape (bins, bins)
        Of the covariance of mean residuals, a polynomial in the product by which they move away from 0.
    """

    binned: Binned
    slope: Floats
    linear: Floats
    square: Floats

    def at(self, product: float) -> Binned:
        """Return the bins moved away from 0 by a product, towards 0 and not beyond where it is negative."""
        start = self.binned
        size = np.maximum(np.abs(start.residual) + product * self.slope, 0.0)
        covariance = start.covariance + product * self.linear + product**2 * self.square
        own = np.where(start.variance > 0, np.diag(covariance) / np.where(start.variance > 0, start.variance, 1.0), 1.0)
        pairs = size**2 - (start.residual**2 - start.pairs) * own
        return replace(start, residual=np.sign(start.residual) * size, covariance=covariance, pairs=pairs)

    def bounds(self, product: float) -> tuple[float, float]:
        """Return what the error can be, but for chance: debiased, as at strength 0."""
        both = (float(found.share @ found.pairs) for found in (self.at(-product), self.at(product)))
        low, high = (float(np.sqrt(max(square, 0.0))) for square in both)
        return low, high

    def interval(self, product: float, level: float) -> tuple[float, float]:
        """Return an interval of the error that allows for chance, too."""
        return error_interval(self.at(-product), level)[0], error_interval(self.at(product), level)[1]

    def product_to_zero(self, level: float) -> float:
        """Return the product at which the interval reaches 0; 0 where it does already."""
        if not excludes_zero(self.binned, level):
            return 0.0
        size, slope = np.abs(self.binned.residual), self.slope
        low, high = 0.0, float(np.divide(size, slope, out=np.zeros_like(size), where=slope > 0).max())
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if excludes_zero(self.at(-middle), level) else (low, middle)
        return low


def average_path(prediction: Floats, loss: QuadraticLoss, scale: ConfoundingScale, level: float) -> MeanPath:
    """Return the average effect as a function of the strength; rows sorted by prediction."""
    moved = scale.weight * scale.scores(np.zeros(len(loss), dtype=np.int64), 1)

    def at(product: float) -> tuple[float, float, float]:
        rows = SortedRows(prediction, _moved(loss, product * moved))
        found = answer(rows, average_effect(rows, level))
        return found.effect, found.standard_error, found.interval[1]

    return _mean_path(at)


def value_path(prediction: Floats, loss: QuadraticLoss, scale: ConfoundingScale, cost: float, level: float) -> MeanPath:
    """Return the value of treating those predicted above a cost as a function of the strength among them."""
    chosen = (prediction > cost).astype(np.int64)
    moved = scale.weight * chosen * scale.scores(chosen, 2)

    def at(product: float) -> tuple[float, float, float]:
        rows = SortedRows(prediction, _moved(loss, product * moved))
        found = answer(rows, decision_value(rows, cost, level))
        return found.value, found.standard_error, found.interval[1]

    return _mean_path(at)


def error_path(prediction: Floats, loss: QuadraticLoss, scale: ConfoundingScale, bins: int) -> ErrorPath:
    """Return the bins of the prediction as a function of the strength in each of them."""
    start = binned(prediction, loss, bins)
    cell, count = np.searchsorted(start.edges, prediction, side="left").astype(np.int64), len(start.edges) + 1
    away = np.where(start.residual < 0, -1.0, 1.0)
    moved = scale.weight * away[cell] * scale.scores(cell, count)
    up, down = (binned(prediction, _moved(loss, product * moved), bins) for product in (1.0, -1.0))
    linear = (up.covariance - down.covariance) / 2
    square = (up.covariance + down.covariance) / 2 - start.covariance
    return ErrorPath(start, away * (up.residual - start.residual), linear, square)


def _mean_path(at: Callable[[float], tuple[float, float, float]]) -> MeanPath:
    """Return a path from three of its points, which settle it: means are lines, and their variances parabolas."""
    (estimate, error, end), (higher, above, _), (_, below, _) = (at(product) for product in (0.0, 1.0, -1.0))
    linear, square = (above**2 - below**2) / 2, (above**2 + below**2) / 2 - error**2
    critical = (end - estimate) / error if error > 0 else 0.0
    return MeanPath(estimate, higher - estimate, (error**2, linear, square), critical)


def _moved(loss: QuadraticLoss, by: Floats) -> QuadraticLoss:
    return replace(loss, numerator=loss.numerator + by)
