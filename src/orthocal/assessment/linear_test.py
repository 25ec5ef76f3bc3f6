"""The best linear predictor of the effect given the prediction, and the joint test of intercept 0 and slope 1 (MATH 7.5 i)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import f as f_law
from scipy.stats import t as t_law

from orthocal.arrays import group_sums
from orthocal.assessment.parts import Coefficient, LinearPredictor, TestResult

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers
    from orthocal.losses import Loss

LEAST_SPREAD = 1e-3
"""Share of the predictions' spread that must be left without any one row or cluster."""


def linear_test(prediction: Floats, loss: Loss, level: float) -> tuple[TestResult, LinearPredictor | None]:
    """Regress the residuals on (1, prediction); test that both coefficients are zero, and return them with intervals.

    For a quadratic loss this is the regression of the pseudo-outcome on (1, prediction), tested against (0, 1). The
    covariance is a jackknife over rows (HC3) or clusters (CR3), and the law is F with as many degrees of freedom as there are
    rows or clusters less one.
    """
    low, high = float(prediction.min()), float(prediction.max())
    middle, width = float(prediction.mean()), high - low
    mass, residual = loss.mass, -loss.derivative(prediction)
    if width == 0:
        return _intercept_only(*_unit_sums([mass, residual], loss.groups)), None
    scaled = (prediction - middle) / width
    units = len(mass) if loss.groups is None else len(np.unique(loss.groups))
    if units <= 2:
        return TestResult(None, None, "does not apply: too few rows or clusters"), None
    if loss.groups is None:
        coefficient, covariance, smallest = _over_rows(scaled, mass, residual)
    else:
        coefficient, covariance, smallest = _over_clusters(scaled, mass, residual, loss.groups)
    if smallest < LEAST_SPREAD:
        return TestResult(None, None, "does not apply: one row or cluster carries the slope"), None
    if not np.linalg.eigvalsh(covariance)[0] > 0:
        return TestResult(None, None, "does not apply: no noise"), None
    statistic = float(coefficient @ np.linalg.solve(covariance, coefficient)) / 2
    test = TestResult(statistic, float(f_law.sf(statistic, 2, units - 1)), "intercept 0 and slope 1")
    return test, _predictor(coefficient, covariance, middle, width, units, level)


def _intercept_only(mass: Floats, residual: Floats) -> TestResult:
    """The jackknife of a mean: all that a constant prediction allows."""
    units, total, gap = len(mass), float(mass.sum()), float(residual.sum())
    change = (gap - residual) / (total - mass) - gap / total
    variance = (units - 1) / units * float(change @ change)
    if units < 2 or not variance > 0:
        return TestResult(None, None, "does not apply: too few rows or clusters, or no noise")
    statistic = (gap / total) ** 2 / variance
    note = "intercept only: the prediction is constant"
    return TestResult(statistic, float(f_law.sf(statistic, 1, units - 1)), note)


def _predictor(
    coefficient: Floats, covariance: Floats, middle: float, width: float, units: int, level: float
) -> LinearPredictor:
    """Turn residual coefficients of the scaled prediction into intercept and slope of the effect."""
    turn = np.array([[1.0, -middle / width], [0.0, 1.0 / width]])
    intercept, slope = (turn @ coefficient + [0.0, 1.0]).tolist()
    errors = np.sqrt(np.diag(turn @ covariance @ turn.T)).tolist()
    reach = float(t_law.ppf((1 + level) / 2, units - 1))
    one, two = (
        Coefficient(value, error, (value - reach * error, value + reach * error))
        for value, error in zip((intercept, slope), errors, strict=True)
    )
    return LinearPredictor(one, two)


def _unit_sums(columns: list[Floats], groups: Integers | None) -> list[Floats]:
    """Return the columns, summed within clusters where there are any."""
    if groups is None:
        return columns
    codes, index = np.unique(groups, return_inverse=True)
    return [group_sums(index, column, len(codes)) for column in columns]


def _over_rows(x: Floats, mass: Floats, residual: Floats) -> tuple[Floats, Floats, float]:
    """Return coefficients, their jackknife covariance, and the least share of the determinant that a row leaves.

    Leaving out row i moves the coefficients by A^-1 z_i e_i / (1 - h_i), with h_i its leverage: HC3, in a few sweeps.
    """
    pulled = mass * x
    matrix = np.array([[mass.sum(), pulled.sum()], [pulled.sum(), pulled @ x]])
    inverse = np.linalg.inv(matrix)
    coefficient = inverse @ np.array([residual.sum(), residual @ x])
    left = 1 - mass * (inverse[0, 0] + x * (2 * inverse[0, 1] + inverse[1, 1] * x))
    smallest = float(np.abs(left).min())
    if smallest < LEAST_SPREAD:
        return coefficient, np.zeros((2, 2)), smallest
    error = (residual - coefficient[0] * mass - coefficient[1] * pulled) / left
    square = error * error
    cross = float(square @ x)
    meat = np.array([[float(square.sum()), cross], [cross, float((square * x) @ x)]])
    return coefficient, (len(x) - 1) / len(x) * (inverse @ meat @ inverse), smallest


def _over_clusters(x: Floats, mass: Floats, residual: Floats, groups: Integers) -> tuple[Floats, Floats, float]:
    """Return the same over clusters: solve the two equations again without each, by Cramer's rule."""
    pulled = mass * x
    m0, m1, m2, r0, r1 = _unit_sums([mass, pulled, pulled * x, residual, residual * x], groups)
    a, b, d, one, two = (float(column.sum()) for column in (m0, m1, m2, r0, r1))
    whole = a * d - b * b
    coefficient = np.array([one * d - b * two, a * two - one * b]) / whole
    a_, b_, d_, one_, two_ = a - m0, b - m1, d - m2, one - r0, two - r1
    rest = a_ * d_ - b_ * b_
    smallest = float(np.abs(rest).min()) / abs(whole)
    if smallest < LEAST_SPREAD:
        return coefficient, np.zeros((2, 2)), smallest
    first = (one_ * d_ - b_ * two_) / rest - coefficient[0]
    second = (a_ * two_ - one_ * b_) / rest - coefficient[1]
    cross = float(first @ second)
    covariance = np.array([[float(first @ first), cross], [cross, float(second @ second)]])
    return coefficient, (len(m0) - 1) / len(m0) * covariance, smallest
