"""The best linear predictor of the effect given the prediction, and the joint test of intercept 0 and slope 1 (MATH 7.5 i)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import f as f_law
from scipy.stats import t as t_law

from orthocal.assessment.records import Coefficient, LinearPredictor, TestResult

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
    columns = [np.ones(len(prediction))] + ([(prediction - middle) / width] if width > 0 else [])
    mass, residual = loss.mass, -loss.derivative(prediction)
    moments = _unit_sums([mass * a * b for a in columns for b in columns], loss.groups)
    scores = _unit_sums([residual * a for a in columns], loss.groups)
    size, units = len(columns), len(scores)
    moments = moments.reshape(units, size, size)
    if width > 0 and _leans_on_one(moments):
        return TestResult(None, None, "does not apply: one row or cluster carries the slope"), None
    coefficient, covariance = _jackknife(moments, scores)
    if units <= size or not np.linalg.eigvalsh(covariance)[0] > 0:
        return TestResult(None, None, "does not apply: too few rows or clusters, or no noise"), None
    statistic = float(coefficient @ np.linalg.solve(covariance, coefficient)) / size
    note = "intercept 0 and slope 1" if width > 0 else "intercept only: the prediction is constant"
    test = TestResult(statistic, float(f_law.sf(statistic, size, units - 1)), note)
    return test, _predictor(coefficient, covariance, middle, width, units, level) if width > 0 else None


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


def _leans_on_one(moments: Floats) -> bool:
    """Whether leaving out some unit leaves hardly any spread of the predictions."""
    whole = moments.sum(axis=0)
    rest = whole - moments
    spread = np.abs(rest[:, 0, 0] * rest[:, 1, 1] - rest[:, 0, 1] * rest[:, 1, 0])
    return bool(spread.min() < LEAST_SPREAD * abs(np.linalg.det(whole)))


def _unit_sums(columns: list[Floats], groups: Integers | None) -> Floats:
    """Stack columns, summed within clusters where there are any."""
    if groups is None:
        return np.column_stack(columns)
    codes = np.unique(groups, return_inverse=True)[1]
    return np.column_stack([np.bincount(codes, column) for column in columns])


def _jackknife(moments: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Solve the summed normal equations, and again without each unit in turn."""
    matrix, score = moments.sum(axis=0), scores.sum(axis=0)
    coefficient = np.linalg.solve(matrix, score)
    change = _solve_small(matrix - moments, score - scores) - coefficient
    units = len(scores)
    return coefficient, (units - 1) / units * (change.T @ change)


def _solve_small(matrices: Floats, scores: Floats) -> Floats:
    """Solve many systems of one or two unknowns, by Cramer's rule."""
    if scores.shape[1] == 1:
        return scores / matrices[:, 0]
    a, b, c, d = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 0], matrices[:, 1, 1]
    first, second = scores[:, 0], scores[:, 1]
    return np.column_stack([first * d - b * second, a * second - first * c]) / (a * d - b * c)[:, None]
