"""Laws of every effect, checked exactly on a population whose cells are enumerated."""

import itertools

import numpy as np
import pytest

from orthocal.effects import EFFECTS
from orthocal.nuisances import Fitted
from orthocal.observations import Observations
from orthocal.solvers import constants

X_LEVELS = np.array([0.0, 1.0, 2.0])
X_SHARE = np.array([0.2, 0.5, 0.3])
TRUTH = {
    "propensity": np.array([0.3, 0.5, 0.8]),
    "outcome_control": np.array([1.0, -1.0, 0.5]),
    "outcome_treated": np.array([2.0, 0.0, 3.0]),
}
EFFECT = np.array([1.0, 1.0, 2.5])
DIRECTION = {
    "propensity": np.array([0.1, -0.2, 0.05]),
    "outcome_control": np.array([0.5, 1.0, -0.7]),
    "outcome_treated": np.array([-0.4, 0.8, 1.1]),
}


def cells():
    """Rows (x, a, noise) with probability as weight; noise is -1 or 2 with mean 0."""
    rows = list(itertools.product(range(3), (0, 1), ((-1.0, 2 / 3), (2.0, 1 / 3))))
    x = np.array([row[0] for row in rows])
    a = np.array([row[1] for row in rows])
    noise, chance = np.array([row[2] for row in rows]).T
    pi = TRUTH["propensity"][x]
    weight = X_SHARE[x] * np.where(a == 1, pi, 1 - pi) * chance
    y = np.where(a == 1, TRUTH["outcome_treated"][x], TRUTH["outcome_control"][x]) + noise
    return x, Observations(X_LEVELS[x][:, None], y, a, weight)


def answer(effect, size, names=tuple(DIRECTION)):
    """The loss's minimiser given x when the named nuisances are off by `size` times their direction."""
    x, observations = cells()
    off = {name: TRUTH[name] + size * (DIRECTION[name] if name in names else 0) for name in TRUTH}
    fitted = Fitted({name: value[x] for name, value in off.items()}, clip=0.01)
    return constants(effect.loss(observations, fitted), x, 3)


@pytest.mark.parametrize("name", EFFECTS)
def test_true_nuisances_give_the_true_effect(name):
    np.testing.assert_allclose(answer(EFFECTS[name](), 0.0), EFFECT, atol=1e-14)


@pytest.mark.parametrize("name", EFFECTS)
def test_halving_a_joint_nuisance_error_quarters_the_bias(name):
    bias = {h: np.abs(answer(EFFECTS[name](), h) - EFFECT) for h in (0.02, 0.01)}
    assert bias[0.02].min() > 1e-6
    np.testing.assert_allclose(bias[0.02] / bias[0.01], 4, rtol=0.05)


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("nuisance", DIRECTION)
def test_the_bias_is_exactly_zero_along_one_nuisance(name, nuisance):
    np.testing.assert_allclose(answer(EFFECTS[name](), 0.3, (nuisance,)), EFFECT, atol=1e-13)


def test_the_bias_is_the_product_the_formula_sheet_gives():
    # MATH 2: (pi - pi0) [dmu1 / pi + dmu0 / (1 - pi)]
    h = 0.2
    pi = TRUTH["propensity"] + h * DIRECTION["propensity"]
    dmu1, dmu0 = h * DIRECTION["outcome_treated"], h * DIRECTION["outcome_control"]
    expected = (pi - TRUTH["propensity"]) * (dmu1 / pi + dmu0 / (1 - pi))
    np.testing.assert_allclose(answer(EFFECTS["cate"](), h) - EFFECT, expected, atol=1e-14)
