"""Continuous treatments whose average derivative is known, from weak to strong confounding."""

import numpy as np
from scipy.special import expit

from orthocal.datasets import SimulatedData

NONLINEAR_AVERAGE = 0.2717
"""Mean of sin(x2) + exp(-0.245) cos(1.5 sin x1 + |x2|) over standard normal covariates, by quadrature in the tests."""


def strong(n, random_state):
    """Eight confounders explain 8/9 of the treatment's variance; **effect** .015 + .7 x1, average .015, confounded slope 7.4."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 8))
    treatment = X.sum(axis=1) + rng.standard_normal(n)
    effect = 0.015 + 0.7 * X[:, 0]
    return SimulatedData(X, 8.3 * X.sum(axis=1) + effect * treatment + rng.standard_normal(n), treatment, effect, {})


def weak(n, random_state):
    """Eight confounders explain a quarter of the treatment's variance; **effect** 1 + x1 / 2, average 1."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 8))
    treatment = 0.2 * X.sum(axis=1) + rng.standard_normal(n)
    effect = 1 + X[:, 0] / 2
    return SimulatedData(X, X.sum(axis=1) / 2 + effect * treatment + rng.standard_normal(n), treatment, effect, {})


def heteroskedastic(n, random_state):
    """The treatment's deviation is .4 to 1.6, by the second confounder; **effect** (1 + x2) / 2, average .5."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 5))
    deviation = 0.4 + 1.2 * expit(1.5 * X[:, 1])
    treatment = 1.5 * X[:, 0] + X[:, 1] + deviation * rng.standard_normal(n)
    effect = (1 + X[:, 1]) / 2
    y = 2 * X[:, 0] + 2 * X[:, 1] + effect * treatment + rng.standard_normal(n)
    return SimulatedData(X, y, treatment, effect, {})


def nonlinear(n, random_state):
    """Curved confounding and a curved response, A given x normal of deviation .7; **effect** x1/2 + sin x2 + e^-.245 cos m(x)."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 5))
    mean = 1.5 * np.sin(X[:, 0]) + np.abs(X[:, 1])
    treatment = mean + 0.7 * rng.standard_normal(n)
    slope = X[:, 0] / 2 + np.sin(X[:, 1])
    y = 2 * np.sin(X[:, 0]) + 2 * np.abs(X[:, 1]) + treatment * slope + np.sin(treatment) + rng.standard_normal(n)
    return SimulatedData(X, y, treatment, slope + np.exp(-0.245) * np.cos(mean), {})


def skewed(n, random_state):
    """Gamma noise of shape 4 in the treatment, a square in the response; **effect** (1 + x1) / 2 + .6 m(x), average .5."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 5))
    mean = X[:, 0] + X[:, 1] / 2
    treatment = mean + rng.gamma(4.0, 0.4, n) - 1.6
    slope = (1 + X[:, 0]) / 2
    y = 2 * X[:, 0] + 2 * X[:, 1] ** 2 + slope * treatment + 0.3 * treatment**2 + rng.standard_normal(n)
    return SimulatedData(X, y, treatment, slope + 0.6 * mean, {})


AVERAGES = {strong: 0.015, weak: 1.0, heteroskedastic: 0.5, nonlinear: NONLINEAR_AVERAGE, skewed: 0.5}
