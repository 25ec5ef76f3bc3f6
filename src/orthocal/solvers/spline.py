"""The best smooth nondecreasing map: a cubic spline whose coefficients rise."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear, minimize

from orthocal.errors import OrthocalError
from orthocal.losses import Loss, QuadraticLoss, total_mass
from orthocal.solvers.constants import finite_bounds

if TYPE_CHECKING:
    from orthocal.arrays import Floats

DEGREE = 3


def spline_knots(prediction: Floats, pieces: int) -> Floats:
    """Return knots at quantiles of the prediction, the end ones repeated."""
    inner = np.unique(np.quantile(prediction, np.linspace(0, 1, pieces + 1)))
    return np.concatenate([[inner[0]] * DEGREE, inner, [inner[-1]] * DEGREE])


def spline_design(prediction: Floats, knots: Floats) -> Floats:
    """Return the B-spline basis at each prediction, those outside the knots moved to the nearest end."""
    inside = np.clip(prediction, knots[0], knots[-1])
    return np.asarray(BSpline.design_matrix(inside, knots, DEGREE).toarray())


def roughness(knots: Floats) -> Floats:
    """Return the matrix P of the roughness c'Pc: summed squares of changes of slope, 0 for every straight line.

    A line has the averages of neighbouring knots (Greville's abscissae) as coefficients, so slopes are taken against those.
    """
    place = np.array([knots[j + 1 : j + 1 + DEGREE].mean() for j in range(len(knots) - DEGREE - 1)])
    slope = np.diff(np.eye(len(place)), axis=0) / np.diff(place)[:, None]
    change = np.diff(slope, axis=0) * (place[-1] - place[0])
    return np.asarray(change.T @ change) / len(change)


@singledispatch
def spline(loss: Loss, design: Floats, penalty: Floats, start: Floats | None = None) -> Floats:
    """Return nondecreasing coefficients c that minimise mean loss + c' penalty c / 2 times the loss's mean curvature.

    A spline with nondecreasing coefficients is nondecreasing: it is a nonnegative combination of integrated B-splines. Any
    convex loss: bounded quasi-Newton steps.
    """
    size, total = design.shape[1], float(loss.weight.sum())
    low, high = finite_bounds(loss)
    steps, penalty = _steps(size), penalty * _curvature(loss, low, high)
    first = np.linspace(low, high, size) if start is None else start
    bounds = [(None, None)] + [(0.0, None)] * (size - 1)

    def objective(step: Floats) -> tuple[float, Floats]:
        coefficient = steps @ step
        fit = design @ coefficient
        gradient = design.T @ loss.derivative(fit) / total + penalty @ coefficient
        value = float(loss.value(fit).sum()) / total + 0.5 * float(coefficient @ penalty @ coefficient)
        return value, steps.T @ gradient

    begin = np.concatenate([first[:1], np.maximum(np.diff(first), 0.0)])
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300}).x
    return np.clip(np.asarray(steps @ found), low, high)


@spline.register(QuadraticLoss)
def _(loss: QuadraticLoss, design: Floats, penalty: Floats, start: Floats | None = None) -> Floats:
    """Least squares with nonnegative steps, on moments of the size of the basis."""
    del start
    total = total_mass(loss)
    gram = (design * loss.denominator[:, None]).T @ design / total
    return spline_from_moments(gram, design.T @ loss.numerator / total, penalty)


def spline_from_moments(gram: Floats, score: Floats, penalty: Floats) -> Floats:
    """Return nondecreasing c that minimise c'(gram + penalty)c / 2 - score'c."""
    steps = _steps(len(score))
    # A tiny ridge keeps basis functions without rows from being anything.
    curvature = steps.T @ (gram + penalty) @ steps + 1e-10 * np.trace(gram) * np.eye(len(score))
    try:
        root = cholesky(curvature)
    except np.linalg.LinAlgError:
        raise OrthocalError(
            "The summed loss must be convex for a spline; negative masses make it concave somewhere. "
            "Use the method 'linear' or 'histogram' with few bins."
        ) from None
    target = solve_triangular(root, steps.T @ score, trans="T")
    lower = np.concatenate([[-np.inf], np.zeros(len(score) - 1)])
    return np.asarray(steps @ lsq_linear(root, target, bounds=(lower, np.inf), tol=1e-12).x)


def _curvature(loss: Loss, low: float, high: float) -> float:
    """Mean second derivative between the bounds."""
    ends = [float(loss.derivative(np.full(len(loss), end)).sum()) for end in (low, high)]
    return max(ends[1] - ends[0], 0.0) / (max(high - low, 1e-300) * float(loss.weight.sum()))


def _steps(size: int) -> Floats:
    """Coefficients from their first value and the rises after it."""
    return np.tril(np.ones((size, size)))
