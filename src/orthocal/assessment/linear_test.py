"""The best linear predictor of the effect given the prediction; joint test of intercept 0 and slope 1 (mathematics 8.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Integers, is_nearly_constant, unrepeated
from orthocal.assessment.parts import Coefficient, LinearPredictor, TestResult
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Rows, Stage, cluster_sums, count_effective, merged
from orthocal.calibrators.skewness import FEW_UNITS

ROUNDING = 1e-12
MOST_SKEW = 0.3
"""Skewness of the statistic beyond which too much of it would be left."""
LEAST_SPREAD = 1e-3
"""Share of the predictions' spread that must be left without any one row or cluster."""


def linear_test(rows: Rows, level: float) -> Stage[tuple[TestResult, LinearPredictor | None]]:
    """Regress the residuals on (1, prediction); test that both coefficients are zero, and return them with intervals.

    For a quadratic loss this is the regression of the pseudo-outcome on (1, prediction), tested against (0, 1). The
    covariance is a jackknife over rows (HC3) or clusters (CR3), and the distribution is F with as many degrees of freedom as
    Kish's effective number of rows or clusters less one. Skewed residuals skew the statistic, which Hall's (1992) monotone
    transformation takes out to first order.
    """
    found = yield _spread
    low, high = found[0][0], found[-1][1]
    middle, width = sum(total for _, _, total, _ in found) / sum(many for *_, many in found), high - low
    units, effective = yield from count_effective(rows)
    if is_nearly_constant(np.array([low, high], dtype=np.float64)):
        return (yield from _intercept_only(rows, effective)), None
    if units <= 2:
        return TestResult(None, None, "does not apply: too few rows or clusters"), None
    scale = Scale(middle, width)
    fit = yield from (_over_rows(scale) if rows.like.groups is None else _over_clusters(scale))
    coefficient, covariance = fit.coefficient, fit.covariance
    if reason := _no_inverse(fit):
        return TestResult(None, None, f"does not apply: {reason}"), None
    direction = np.linalg.solve(covariance, coefficient)
    length = float(np.sqrt(coefficient @ direction))
    skewness = 0.0
    if length > 0:
        cubes, squares = yield from fit.powers(np.asarray(direction / length, dtype=np.float64))
        # Few units tell little of their skewness, and one large cluster nothing.
        believed = effective / (effective + FEW_UNITS) * (effective / units) ** 2
        skewness = believed * cubes / squares**1.5
    statistic = unskewed(length, skewness) ** 2 / 2
    test = TestResult(statistic, float(f_distribution.sf(statistic, 2, effective - 1)), "intercept 0 and slope 1")
    if abs(skewness) > MOST_SKEW:
        test = TestResult(
            None, None, f"does not apply: too skewed for {units:,} rows or clusters (skewness {skewness:.2f})"
        )
    if np.isfinite(rows.like.bounds).all():
        return test, None  # residuals are in other units than the effect: `best_line` has what is reported
    return test, _predictor(coefficient, covariance, middle, width, effective, level)


def unskewed(t: float, skewness: float) -> float:
    r"""Return a t statistic without the skewness of what it is a sum of: Hall's transformation, which keeps its order.

    `skewness` is :math:`\sum_i c_i^3 / (\sum_i c_i^2)^{3/2}` of the contributions c to the sum.
    """
    return max(t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6, 0.0)


class Scale(NamedTuple):
    """How predictions are moved to the middle and divided by their range."""

    middle: float
    width: float

    def of(self, prediction: Floats) -> Floats:
        """Scaled predictions."""
        return (prediction - self.middle) / self.width


def _spread(piece: Piece) -> tuple[float, float, float, int]:
    return *piece.ends, piece.sum(piece.prediction), piece.rows


def _intercept_only(rows: Rows, effective: float) -> Stage[TestResult]:
    """The jackknife of a mean: all that a constant prediction allows."""
    if rows.like.groups is None:
        units, total, gap = np.sum((yield _mass_and_residual), axis=0)
        change = float(sum((yield partial(_changes_in_piece, total=total, gap=gap))))
    else:
        _, (mass, residual) = merged((yield _cluster_residuals))
        units, total, gap = len(mass), float(mass.sum()), float(residual.sum())
        change = float(_changes(mass, residual, total, gap).sum())
    variance = (units - 1) / units * change
    if units < 2 or not variance > 0:
        return TestResult(None, None, "does not apply: too few rows or clusters, or no noise")
    statistic = float((gap / total) ** 2 / variance)
    note = "intercept only: the prediction is constant"
    return TestResult(statistic, float(f_distribution.sf(statistic, 1, effective - 1)), note)


def _mass_and_residual(piece: Piece) -> Floats:
    return np.array([piece.rows, piece.sum(piece.loss.mass), piece.sum(piece.residual)])


def _cluster_residuals(piece: Piece) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [piece.loss.mass, piece.residual])


def _changes_in_piece(piece: Piece, total: float, gap: float) -> float:
    return piece.sum(_changes(piece.loss.mass, piece.residual, total, gap))


def _changes(mass: Floats, residual: Floats, total: float, gap: float) -> Floats:
    """Squares of what leaving each out changes in the mean."""
    if not (total - mass).all():
        return np.zeros(len(mass))
    change = (gap - residual) / (total - mass) - gap / total
    return np.asarray(change**2)


def _predictor(
    coefficient: Floats, covariance: Floats, middle: float, width: float, effective: float, level: float
) -> LinearPredictor:
    """Turn residual coefficients of the scaled prediction into intercept and slope of the effect."""
    turn = np.array([[1.0, -middle / width], [0.0, 1.0 / width]])
    intercept, slope = (turn @ coefficient + [0.0, 1.0]).tolist()
    errors = np.sqrt(np.diag(turn @ covariance @ turn.T)).tolist()
    reach = float(t_distribution.ppf((1 + level) / 2, effective - 1))
    one, two = (
        Coefficient(value, error, (value - reach * error, value + reach * error))
        for value, error in zip((intercept, slope), errors, strict=True)
    )
    return LinearPredictor(one, two)


class Fit(NamedTuple):
    """Coefficients, their jackknife covariance, and the least share of the determinant that a row or cluster leaves.

    `powers` gives, for a direction, the sums of cubes and of squares of what rows or clusters contribute to the coefficients.
    """

    coefficient: Floats
    covariance: Floats
    smallest: float
    powers: Callable[[Floats], Stage[tuple[float, float]]]


def _no_inverse(fit: Fit) -> str:
    """Say why the covariance cannot be inverted; nothing where it can."""
    one_row = "one row or cluster determines the slope"
    if fit.smallest < LEAST_SPREAD:
        return one_row
    least, most = np.linalg.eigvalsh(fit.covariance)
    if not least > 0:
        return "no noise"
    return one_row if least <= np.finfo(float).eps * most else ""


def _no_powers(direction: Floats) -> Stage[tuple[float, float]]:
    del direction
    yield from ()
    return 0.0, 1.0


NO_FIT = Fit(np.zeros(2), np.zeros((2, 2)), 0.0, _no_powers)


def _over_rows(scale: Scale) -> Stage[Fit]:
    """Leaving out row i moves the coefficients by A^-1 z_i e_i / (1 - h_i), with h_i its leverage: HC3, in two sweeps."""
    count, a, b, d, one, two = np.sum((yield partial(_moments, scale=scale)), axis=0)
    if not is_spread(a, b, d):
        return NO_FIT
    inverse = np.linalg.inv(np.array([[a, b], [b, d]]))
    coefficient = inverse @ np.array([one, two])
    moved = partial(_moved, scale=scale, inverse=inverse, coefficient=coefficient)
    answers = yield partial(_jackknifed, scale=scale, inverse=inverse, coefficient=coefficient)
    smallest = min(least for least, _ in answers)
    if smallest < LEAST_SPREAD:
        return NO_FIT._replace(smallest=smallest)
    square, cross, far = np.sum([meat for _, meat in answers], axis=0)
    meat = np.array([[square, cross], [cross, far]])
    return Fit(coefficient, (count - 1) / count * (inverse @ meat @ inverse), smallest, partial(_powers_of_rows, moved))


def _powers_of_rows(moved: Callable[..., Floats], direction: Floats) -> Stage[tuple[float, float]]:
    cubes, squares = np.sum((yield partial(_powers_in_piece, moved=moved, direction=direction)), axis=0)
    return float(cubes), float(squares)


def _powers_in_piece(piece: Piece, moved: Callable[..., Floats], direction: Floats) -> Floats:
    own = moved(piece, direction=direction)
    square = own * own
    return np.array([piece.dot(own, square), piece.sum(square)])


def is_spread(mass: float, first: float, second: float) -> bool:
    """Whether the moments of the predictions, by mass, are those of several values: rounding and negative masses apart."""
    return mass > 0 and mass * second - first * first > ROUNDING * mass * second


def _columns(piece: Piece, scale: Scale) -> list[Floats]:
    x, mass, residual = scale.of(piece.prediction), piece.loss.mass, piece.residual
    pulled = mass * x
    return [mass, pulled, pulled * x, residual, residual * x]


def _moments(piece: Piece, scale: Scale) -> Floats:
    return np.array([piece.rows, *(piece.sum(column) for column in _columns(piece, scale))])


def _moved(piece: Piece, scale: Scale, inverse: Floats, coefficient: Floats, direction: Floats) -> Floats:
    """What each row contributes to the coefficients, in a direction."""
    x, mass = scale.of(piece.prediction), unrepeated(piece.loss.mass)
    own = (piece.residual - mass * (coefficient[0] + coefficient[1] * x)) / _left(mass, x, inverse)
    one, two = direction @ inverse
    return np.asarray(own * (one + two * x))


def _left(mass: Floats, x: Floats, inverse: Floats) -> Floats:
    """One less the leverage of each row."""
    return np.asarray(1 - mass * (inverse[0, 0] + x * (2 * inverse[0, 1] + inverse[1, 1] * x)))


def _jackknifed(piece: Piece, scale: Scale, inverse: Floats, coefficient: Floats) -> tuple[float, Floats]:
    """Question: how little a row leaves, and the sums of squares of what each would move."""
    x, mass, residual = scale.of(piece.prediction), unrepeated(piece.loss.mass), piece.residual
    left = _left(mass, x, inverse)
    smallest = float(np.abs(left).min())
    if smallest < LEAST_SPREAD:
        return smallest, np.zeros(3)
    square = piece.each(((residual - mass * (coefficient[0] + coefficient[1] * x)) / left) ** 2)
    return smallest, np.array([square.sum(), square @ x, (square * x) @ x])


def _over_clusters(scale: Scale) -> Stage[Fit]:
    """The same over clusters: solve the two equations again without each, by Cramer's rule."""
    _, (m0, m1, m2, r0, r1) = merged((yield partial(_cluster_moments, scale=scale)))
    a, b, d, one, two = (float(column.sum()) for column in (m0, m1, m2, r0, r1))
    if not is_spread(a, b, d):
        return NO_FIT
    whole = a * d - b * b
    coefficient = np.array([one * d - b * two, a * two - one * b]) / whole
    a_, b_, d_, one_, two_ = a - m0, b - m1, d - m2, one - r0, two - r1
    rest = a_ * d_ - b_ * b_
    smallest = float(np.abs(rest).min()) / abs(whole)
    if smallest < LEAST_SPREAD:
        return NO_FIT._replace(smallest=smallest)
    first = (one_ * d_ - b_ * two_) / rest - coefficient[0]
    second = (a_ * two_ - one_ * b_) / rest - coefficient[1]
    cross = float(first @ second)
    covariance = np.array([[float(first @ first), cross], [cross, float(second @ second)]])
    moved = -np.array([first, second])  # leaving a cluster out takes off what it contributes
    return Fit(coefficient, (len(m0) - 1) / len(m0) * covariance, smallest, partial(_powers_of_clusters, moved))


def _powers_of_clusters(moved: Floats, direction: Floats) -> Stage[tuple[float, float]]:
    yield from ()
    own = direction @ moved
    return float(own @ own**2), float(own @ own)


def _cluster_moments(piece: Piece, scale: Scale) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, _columns(piece, scale))
