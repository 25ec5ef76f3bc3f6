"""The best map lower + (upper - lower) * sigmoid(intercept + slope * prediction)."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, QuadraticLoss
from orthocal.solvers.affine import affine

MOST_STEPS = 200
TOLERANCE = 1e-12
"""Largest gradient, relative to the largest it could be, at which Newton's method stops."""


@singledispatch
def sigmoid(loss: Loss, prediction: Floats, lower: float, upper: float) -> tuple[float, float]:
    """Return (intercept, slope) of the best sigmoid between two bounds; slope 0 for a constant prediction.

    Any convex loss: the problem is no longer convex, so the search starts from the best line and may end in a local minimum.
    """
    middle, scale = float(prediction.mean()), float(prediction.std()) if np.ptp(prediction) > 0 else 1.0
    scaled = (prediction - middle) / scale

    def summed(coefficient: Floats) -> float:
        score = coefficient[0] + coefficient[1] * scaled
        return float(loss.value(lower + (upper - lower) * expit(score)).sum())

    line = affine(loss, prediction)
    ends = line[0] + line[1] * (middle + scale * np.array([-1.0, 1.0]))
    low, high = logit(np.clip((ends - lower) / (upper - lower), 0.01, 0.99))
    start = np.array([(low + high) / 2, (high - low) / 2])
    options: Any = {"xatol": 1e-7, "fatol": 1e-10 * abs(summed(start)), "maxiter": 2 * MOST_STEPS}
    found = minimize(summed, start, method="Nelder-Mead", options=options).x
    slope = float(found[1]) / scale if np.ptp(prediction) > 0 else 0.0
    return float(found[0]) - slope * middle, slope


@sigmoid.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats, lower: float, upper: float) -> tuple[float, float]:
    r"""Logistic quasi-likelihood, convex and linear in the pseudo-outcome, so that orthogonality is kept.

    Minimises :math:`\sum d \log(1 + e^s) - \tilde n s` with :math:`\tilde n = (n - L d) / (U - L)`, which is not clipped
    (mathematics 4.5).
    """
    middle, scale = float(prediction.mean()), float(prediction.std()) if np.ptp(prediction) > 0 else 0.0
    columns = [np.ones(len(prediction))] + ([(prediction - middle) / scale] if scale > 0 else [])
    design = np.column_stack(columns)
    mass, share = loss.denominator, (loss.numerator - lower * loss.denominator) / (upper - lower)
    coefficient = _newton(design, mass, share)
    slope = float(coefficient[1]) / scale if scale > 0 else 0.0
    return float(coefficient[0]) - slope * middle, slope


def _newton(design: Floats, mass: Floats, share: Floats) -> Floats:
    """Minimise sum(mass * log(1 + exp(s)) - share * s) over s = design @ coefficient by damped Newton steps."""

    def objective(coefficient: Floats) -> float:
        score = design @ coefficient
        return float(mass @ np.logaddexp(0, score) - share @ score)

    coefficient = np.zeros(design.shape[1])
    largest = np.abs(mass) @ np.abs(design) + np.abs(share) @ np.abs(design)
    for _ in range(MOST_STEPS):
        probability = expit(design @ coefficient)
        gradient = design.T @ (mass * probability - share)
        if (np.abs(gradient) <= TOLERANCE * largest).all():
            return coefficient
        curvature = (design * (mass * probability * (1 - probability))[:, None]).T @ design
        if np.linalg.eigvalsh(curvature)[0] <= 1e-14 * np.abs(mass).sum():
            break
        step = np.linalg.solve(curvature, gradient)
        before, size = objective(coefficient), 1.0
        # Close to the minimum the objective cannot tell better from worse: rounding must not stop the step.
        while objective(coefficient - size * step) > before + TOLERANCE * largest[0] and size > TOLERANCE:
            size /= 2
        coefficient = coefficient - size * step
    raise OrthocalError(
        "No sigmoid between `lower` and `upper` fits: the best fit is a jump, or lies outside the bounds. "
        "Widen the bounds, Platt(lower=..., upper=...), or use the method 'linear' or 'isotonic'."
    )
