"""The best smooth nondecreasing map: a cubic spline whose coefficients rise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize, nnls

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.losses import ExpectileLoss, HingeLoss, Loss, QuadraticLoss, total_mass
from orthocal.losses.units import units_of
from orthocal.solvers.constants import PRECISION, finite_bounds

DEGREE = 3
MOST_STEPS, NARROWED = 100, 4.0
"""Newton steps at most; and how much narrower a kernel is each time it is narrowed."""
HEAVY = 1e5
"""How many times as heavy as the others an equation is that must hold."""


def spline_knots(prediction: Floats, pieces: int) -> Floats:
    """Return knots at quantiles of the prediction, the end ones repeated."""
    inner = np.unique(np.quantile(prediction, np.linspace(0, 1, pieces + 1), method="inverted_cdf"))
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
    convex loss: bounded quasi-Newton steps, in units of the distance of the bounds, for they end at fixed tolerances.
    """
    low, high = finite_bounds(loss)
    width = max(high - low, 1e-300)
    size, total = design.shape[1], float(loss.weight.sum())
    unit = max(_curvature(loss, low, high), 1e-300) * width**2
    steps = _steps(size)
    first = np.linspace(0.0, 1.0, size) if start is None else (start - low) / width
    bounds = [(None, None)] + [(0.0, None)] * (size - 1)

    def objective(step: Floats) -> tuple[float, Floats]:
        coefficient = steps @ step
        fit = low + width * (design @ coefficient)
        gradient = design.T @ loss.derivative(fit) * (width / (total * unit)) + penalty @ coefficient
        value = float(loss.value(fit).sum()) / (total * unit) + 0.5 * float(coefficient @ penalty @ coefficient)
        return value, steps.T @ gradient

    begin = np.concatenate([first[:1], np.maximum(np.diff(first), 0.0)])
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300}).x
    return np.clip(low + width * np.asarray(steps @ found), low, high)


@spline.register(QuadraticLoss)
def _(loss: QuadraticLoss, design: Floats, penalty: Floats, start: Floats | None = None) -> Floats:
    """Least squares with nonnegative steps, on moments of the size of the basis."""
    del start
    total = total_mass(loss)
    gram = (design * loss.denominator[:, None]).T @ design / total
    return spline_from_moments(gram, design.T @ loss.numerator / total, penalty)


def spline_from_moments(
    gram: Floats, score: Floats, penalty: Floats, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> Floats:
    """Return nondecreasing c within bounds that minimise c'(gram + penalty)c / 2 - score'c.

    The spline's own range is from the first of them to the last.
    """
    low, high = bounds
    if np.isfinite(low):  # the penalty is 0 for constants
        score = score - gram.sum(axis=1) * low
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
    if np.isfinite(low):
        return np.asarray(low + steps @ _bounded_rises(root, target, high - low))
    # The first step is free: whatever the others are, it makes the first of the triangular equations true.
    rises = nnls(root[1:, 1:], target[1:], maxiter=100 * len(score))[0]
    first = (target[0] - root[0, 1:] @ rises) / root[0, 0]
    return np.asarray(steps @ np.concatenate([[first], rises]))


def _bounded_rises(root: Floats, target: Floats, most: float) -> Floats:
    """Return x >= 0 with a sum of at most `most` that minimises |root x - target|."""
    rises = nnls(root, target, maxiter=100 * len(target))[0]
    if rises.sum() <= most:
        return np.asarray(rises)
    heavy = HEAVY * float(np.abs(root).max())  # the sum is at its bound: an equation that outweighs the others
    matrix, wanted = np.vstack([root, np.full(len(target), heavy)]), np.append(target, heavy * most)
    rises = nnls(matrix, wanted, maxiter=100 * len(target))[0]
    return np.asarray(rises * (most / rises.sum()))


class Bend(NamedTuple):
    """A loss and how it bends, at one number per row."""

    value: Floats
    derivative: Floats
    curvature: Floats


@spline.register(ExpectileLoss)
def _(loss: ExpectileLoss, design: Floats, penalty: Floats, start: Floats | None = None) -> Floats:
    """Newton's method: the loss is quadratic on either side of the outcome, so it ends once no row changes sides."""
    low, high = finite_bounds(loss)
    penalty = penalty * _curvature(loss, low, high)
    first = np.linspace(low, high, design.shape[1]) if start is None else start
    return _by_newton(partial(_bent, loss), design, penalty, loss, first)


def _bent(loss: ExpectileLoss, v: Floats) -> Bend:
    side = np.where(loss.outcome <= v, 1 - loss.expectile, loss.expectile)
    return Bend(loss.value(v), loss.derivative(v), loss.slope * side)


@spline.register(HingeLoss)
def _(loss: HingeLoss, design: Floats, penalty: Floats, start: Floats | None = None) -> Floats:
    """Newton's method on the loss averaged over a short interval, which bends where the loss has kinks.

    The interval shortens as rows grow in number, so that it changes the answer less than their noise (He, Pan, Tan and Zhou
    2023, smoothed quantile regression); it is first as wide as all outcomes, then narrowed.
    """
    low, high = finite_bounds(loss)
    size, penalty = design.shape[1], penalty * _curvature(loss, low, high)
    found = np.linspace(low, high, size) if start is None else start
    carrying = loss.slope[loss.slope > 0]
    rows = float(carrying.sum() ** 2 / (carrying @ carrying)) if len(carrying) else 1.0
    last = units_of(loss).scale * ((size + np.log(rows)) / rows) ** 0.4
    reach = max(high - low, last)
    while reach > last:
        found = _by_newton(partial(_averaged, loss, reach), design, penalty, loss, found)
        reach /= NARROWED
    return _by_newton(partial(_averaged, loss, last), design, penalty, loss, found)


def _averaged(loss: HingeLoss, reach: float, v: Floats) -> Bend:
    """The hinge averaged over [v - reach, v + reach]: a parabola in between, itself outside."""
    above = np.clip((v - loss.outcome) / (2 * reach) + 0.5, 0.0, 1.0)
    hinge = np.where(above < 1, reach * above**2, v - loss.outcome)
    inside = (above > 0) & (above < 1)
    return Bend(loss.slope * hinge - loss.tilt * v, loss.slope * above - loss.tilt, loss.slope * inside / (2 * reach))


def _by_newton(bend: Callable[[Floats], Bend], design: Floats, penalty: Floats, loss: Loss, first: Floats) -> Floats:
    """Minimise over nondecreasing coefficients by steps to the minimum of the parabola, shortened while they lead upwards."""
    total = float(loss.weight.sum())

    def objective(coefficient: Floats, at: Bend) -> float:
        return float(at.value.sum()) / total + 0.5 * float(coefficient @ penalty @ coefficient)

    found, at = first, bend(design @ first)
    for _ in range(MOST_STEPS):
        gram = (design * at.curvature[:, None]).T @ design / total
        if not np.trace(gram) > 0:
            break
        aim = spline_from_moments(gram, gram @ found - design.T @ at.derivative / total, penalty, loss.bounds)
        before, share = objective(found, at), 1.0
        while share > PRECISION:
            new = found + share * (aim - found)
            there = bend(design @ new)
            if objective(new, there) <= before:
                break
            share /= 2
        moved = float(np.abs(new - found).max())
        found, at = new, there
        if share <= PRECISION or moved <= PRECISION * max(float(np.ptp(first)), float(np.ptp(found))):
            break
    return found


def _curvature(loss: Loss, low: float, high: float) -> float:
    """Mean second derivative between the bounds."""
    ends = [float(loss.derivative(np.full(len(loss), end)).sum()) for end in (low, high)]
    return max(ends[1] - ends[0], 0.0) / (max(high - low, 1e-300) * float(loss.weight.sum()))


def _steps(size: int) -> Floats:
    """Coefficients from their first value and the rises after it."""
    return np.tril(np.ones((size, size)))
