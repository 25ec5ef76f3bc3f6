"""The joint linear test: intercept 0 and slope 1 (MATH 7.5 i)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import f as f_law

from orthocal.assessment.records import TestResult

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers
    from orthocal.losses import Loss


def linear_test(prediction: Floats, loss: Loss) -> TestResult:
    """Regress the residuals on (1, prediction) and test that both coefficients are zero.

    For a quadratic loss this is the regression of the pseudo-outcome on (1, prediction) tested against (0, 1). The
    covariance is a jackknife over rows (HC3) or clusters (CR3), and the law is F with as many degrees of freedom as there are
    rows or clusters less one.
    """
    low, high = prediction.min(), prediction.max()
    constant = low == high
    scaled = np.zeros(len(prediction)) if constant else (prediction - prediction.mean()) / (high - low)
    mass, residual = loss.mass, -loss.derivative(prediction)
    columns = [np.ones(len(prediction))] if constant else [np.ones(len(prediction)), scaled]
    moments = _unit_sums([mass * a * b for a in columns for b in columns], loss.groups)
    scores = _unit_sums([residual * a for a in columns], loss.groups)
    size, units = len(columns), len(scores)
    moments = moments.reshape(units, size, size)
    if not constant and _leans_on_one(moments):
        return TestResult(None, None, "does not apply: one row or cluster carries the slope")
    coefficient, covariance = _jackknife(moments, scores)
    note = "intercept only: the prediction is constant" if constant else "intercept 0 and slope 1"
    if units <= size or not np.linalg.eigvalsh(covariance)[0] > 0:
        return TestResult(None, None, "does not apply: too few rows or clusters, or no noise")
    statistic = float(coefficient @ np.linalg.solve(covariance, coefficient)) / size
    return TestResult(statistic, float(f_law.sf(statistic, size, units - 1)), note)


def _leans_on_one(moments: Floats) -> bool:
    """Whether leaving out some unit leaves hardly any spread of the predictions."""
    whole = moments.sum(axis=0)
    rest = whole - moments
    spread = np.abs(rest[:, 0, 0] * rest[:, 1, 1] - rest[:, 0, 1] * rest[:, 1, 0])
    return bool(spread.min() < 1e-3 * abs(np.linalg.det(whole)))


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
    without = _solve_small(matrix - moments, score - scores)
    change = without - coefficient
    units = len(scores)
    return coefficient, (units - 1) / units * (change.T @ change)


def _solve_small(matrices: Floats, scores: Floats) -> Floats:
    """Solve many systems of one or two unknowns, by Cramer's rule."""
    if scores.shape[1] == 1:
        return scores / matrices[:, 0]
    a, b, c, d = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 0], matrices[:, 1, 1]
    determinant = a * d - b * c
    first, second = scores[:, 0], scores[:, 1]
    return np.column_stack([first * d - b * second, a * second - first * c]) / determinant[:, None]
