"""Continuous treatments whose average derivative is known, from weak to strong confounding."""

import numpy as np
from scipy.special import expit

from orthocal.datasets import SimulatedData

NONLINEAR_AVERAGE = 0.2717
"""Mean of sin(x2) + exp(-0.245) cos(1.5 sin x1 + |x2|) over standard normal covariates, by quadrature in the tests."""
INDICATORS_AVERAGE = 0.4503
"""Mean effect of `indicators`, by quadrature in the tests."""


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


def products(n, random_state):
    """Confounding by a product, heavy tails (logistic noise) in the treatment; **effect** .7 + tanh(x3) / 2, average .7."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 6))
    treatment = X[:, 0] * X[:, 1] + X[:, 2] + rng.logistic(0, 0.6, n)
    effect = 0.7 + 0.5 * np.tanh(X[:, 2])
    y = 1.5 * X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3] + effect * treatment + rng.standard_normal(n)
    return SimulatedData(X, y, treatment, effect, {})


def indicators(n, random_state):
    """Three uniform covariates and three indicators, a response that bends; **effect** (1 + x4) / 2 e^(-s^2/8) cos(m(x) / 2)."""
    rng = np.random.default_rng(random_state)
    X = np.column_stack([rng.uniform(-1.5, 1.5, (n, 3)), rng.random((n, 3)) < 0.4])
    mean = X[:, 0] ** 2 + X[:, 1] + X[:, 3] - X[:, 4]
    deviation, height = 0.8 + 0.4 * X[:, 5], 1 + X[:, 3]
    treatment = mean + deviation * rng.standard_normal(n)
    y = 2 * X[:, 0] ** 2 + X[:, 1] + 2 * X[:, 3] - X[:, 4] + height * np.sin(treatment / 2) + rng.standard_normal(n)
    return SimulatedData(X, y, treatment, height / 2 * np.exp(-(deviation**2) / 8) * np.cos(mean / 2), {})


AVERAGES = {
    strong: 0.015,
    weak: 1.0,
    heteroskedastic: 0.5,
    nonlinear: NONLINEAR_AVERAGE,
    skewed: 0.5,
    products: 0.7,
    indicators: INDICATORS_AVERAGE,
}
"""The last two were used to choose nothing."""
