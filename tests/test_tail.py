"""The conditional quantile that the mean of the largest outcomes rests on, and what its error does."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

from orthocal import CausalCalibrator, CVaRUnderTreatment, orthogonal_loss
from orthocal.effects.cvar import tail_value
from orthocal.nuisances.conditional_distribution import TailModel
from orthocal.nuisances.learners import default_learner
from orthocal.nuisances.polynomials import Hinges, fit_in_stages
from tests.simulation import TAILS, simulate_tail, tail_mean

LEVEL = 0.9
GRID = norm.ppf((np.arange(400_000) + 0.5) / 400_000)
"""A standard normal outcome, each value of the same chance."""


def mean_tail(q, difference=0.0):
    return float(tail_value(GRID, np.full(len(GRID), q), LEVEL, difference).mean())


def test_the_tail_is_least_and_flat_at_the_true_quantile():
    q = norm.ppf(LEVEL)
    truth = norm.pdf(q) / (1 - LEVEL)
    assert mean_tail(q) == pytest.approx(truth, abs=1e-4)
    step = 0.05
    slope = (mean_tail(q + step) - mean_tail(q - step)) / (2 * step)
    curvature = (mean_tail(q + step) - 2 * mean_tail(q) + mean_tail(q - step)) / step**2
    assert abs(slope) < 2e-3  # of the order of step^2
    assert curvature == pytest.approx(norm.pdf(q) / (1 - LEVEL), rel=0.01)


@pytest.mark.parametrize(("one", "other"), [(0.1, 0.1), (0.1, -0.1), (0.1, 0.0), (-0.05, 0.1)])
def test_two_quantiles_leave_the_product_of_their_errors(one, other):
    q, curvature = norm.ppf(LEVEL), norm.pdf(norm.ppf(LEVEL)) / (1 - LEVEL)
    truth = norm.pdf(q) / (1 - LEVEL)
    added = mean_tail(q + (one + other) / 2, one - other) - truth
    # Third-order terms are left: 0.1^3 times the density's slope over 0.1.
    assert added == pytest.approx(curvature * one * other / 2, abs=1.5e-3)


def test_the_tail_model_takes_its_learner_from_the_outcomes_role():
    wanted = CVaRUnderTreatment(tail=1 - LEVEL).nuisances(_observed())
    assert [(n.name, n.role, n.names) for n in wanted[1:]] == [("tail", "outcome", ("tail_quantile", "tail_mean"))]


def _observed():
    from orthocal.observations import observe

    data, _ = simulate_tail(50, "normal", 0)
    return observe(data.X, data.y, treatment=data.treatment)


def learnt_quantiles(shape, seed):
    """Standardised q, half the distance of two, and scale on fresh rows, learnt from 600 treated rows."""
    data, tail = simulate_tail(1500, shape, seed)
    arm = np.flatnonzero(data.treatment == 1)[:600]
    nuisance = CVaRUnderTreatment(tail=1 - LEVEL).nuisances(_observed())[1]
    fresh, _ = simulate_tail(1000, shape, 10_000 + seed)
    learner = default_learner(nuisance).set_params(learner__random_state=seed)
    model = TailModel(learner, LEVEL, random_state=seed).fit(data.X[arm], data.y[arm])
    quantile, _, apart = model.predict(fresh.X).T
    location, scale = fresh.nuisances["location"], fresh.nuisances["scale"]
    return (quantile - location) / scale, apart / scale / 2, scale, tail


@pytest.mark.parametrize("shape", TAILS)
def test_with_600_rows_the_quantile_has_its_level_and_its_error_adds_little(shape):
    noise, level, added, corrected = TAILS[shape], [], [], []
    for seed in range(6):
        q, half, scale, tail = learnt_quantiles(shape, seed)
        level.append(noise.cdf(q).mean())
        over = tail_mean(noise, q, LEVEL) - tail
        taken_off = (noise.cdf(q + half) - noise.cdf(q - half)) * half / (4 * (1 - LEVEL))
        added.append(np.mean(scale * over))
        corrected.append(np.mean(scale * (over - taken_off)))
    assert np.mean(level) == pytest.approx(LEVEL, abs=0.02)
    assert np.mean(added) < 0.13
    chance = np.std(corrected, ddof=1) / np.sqrt(len(corrected))
    assert abs(np.mean(corrected)) < 0.05 + 2.6 * chance  # six draws; tests/statistics/test_cvar.py has more
    assert np.mean(corrected) < np.mean(added) - 0.02


def test_a_shape_that_varies_is_learnt():
    # Noise skewed to the right where x > 0, to the left elsewhere: a common quantile would have levels of 0.88 and 1.
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((4000, 2)), rng.exponential(size=4000) - 1
    right = X[:, 0] > 0
    model = TailModel(LinearRegression(), LEVEL, random_state=0)
    q = model.fit(X[:3000], np.where(right, noise, -noise)[:3000]).predict(X)[:, 0]
    level = np.where(right, 1 - np.exp(-(q + 1)), np.exp(np.minimum(q - 1, 0)))
    assert level[right].mean() == pytest.approx(LEVEL, abs=0.03)
    assert level[~right].mean() == pytest.approx(LEVEL, abs=0.03)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_it_does_not_depend_on_unit_and_origin(scale, shift):
    data, _ = simulate_tail(400, "exponential", 0)
    learner = default_learner(CVaRUnderTreatment(tail=1 - LEVEL).nuisances(_observed())[1])
    model = TailModel(learner.set_params(learner__random_state=0), LEVEL, random_state=0)
    one = model.fit(data.X, data.y).predict(data.X)
    other = model.fit(data.X, scale * (data.y + shift)).predict(data.X)
    back = other / scale - np.array([shift, shift, 0.0])
    np.testing.assert_allclose(back, one, atol=1e-6 * data.y.std())


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 45])
def test_few_rows_give_finite_numbers(rows):
    data, _ = simulate_tail(45, "normal", 0)
    model = TailModel(LinearRegression(), LEVEL, random_state=0).fit(data.X[:rows], data.y[:rows])
    found = model.predict(data.X)
    assert np.isfinite(found).all()
    assert found[:, 0].min() >= data.y[:rows].min() - 1e-9
    assert found[:, 0].max() <= data.y[:rows].max() + 1e-9


def test_an_outcome_that_does_not_vary_is_its_own_tail():
    found = TailModel(LinearRegression(), LEVEL, random_state=0).fit(np.ones((60, 2)), np.full(60, 7.0))
    np.testing.assert_allclose(found.predict(np.ones((3, 2))), [[7.0, 7.0, 0.0]] * 3)


def test_rows_of_weight_zero_do_not_count():
    data, _ = simulate_tail(400, "normal", 0)
    weight = np.ones(400)
    weight[::4] = 0
    spoilt = np.where(weight == 0, 50.0, data.y)
    model = TailModel(LinearRegression(), LEVEL, random_state=0).fit(data.X, spoilt, sample_weight=weight)
    assert model.predict(data.X)[:, 0].max() < 15


def test_known_quantiles_need_no_difference_and_learnt_ones_can_be_passed_back():
    data, _ = simulate_tail(600, "normal", 0)
    effect, columns = CVaRUnderTreatment(tail=1 - LEVEL), {"treatment": data.treatment}
    known = {name: data.nuisances[name] for name in ("propensity", "tail_quantile", "tail_mean")}
    loss = orthogonal_loss(effect, data.X, data.y, nuisances=known, **columns)
    assert len(loss) == 600
    learners = {"propensity": LinearRegression(), "outcome": LinearRegression()}
    first = CausalCalibrator(effect, "linear", learners=learners, random_state=0)
    first.fit(data.X, data.y, prediction=data.effect, **columns)
    assert {"tail_quantile", "tail_mean", "tail_difference"} < set(first.nuisances_)
    again = CausalCalibrator(effect, "linear", random_state=0)
    again.fit(data.X, data.y, prediction=data.effect, nuisances=first.nuisances_, **columns)
    np.testing.assert_allclose(again.loss_.target, first.loss_.target)


def test_missing_covariates_are_at_their_mean_and_constant_ones_have_no_bends():
    X = np.column_stack([[1.0, 2.0, np.nan, 3.0], np.full(4, 5.0), [0.0, 1.0, 0.0, 1.0], np.full(4, np.nan)])
    hinges = Hinges().fit(X)
    assert [len(knots) for knots in hinges.knots_[1:]] == [0, 0, 0]
    assert np.isfinite(hinges.transform(X)).all()
    assert hinges.transform(X)[2, 0] == 0
    assert Hinges(most=3).fit(np.tile(X, 2)).transform(np.tile(X, 2)).shape == (4, 8)


def test_stages_add_a_learner_to_an_additive_fit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    y = np.abs(X[:, 0]) + X[:, 0] * X[:, 1]
    found = fit_in_stages(
        default_learner(CVaRUnderTreatment().nuisances(_observed())[1]).set_params(learner__random_state=0), X, y, None
    )
    assert np.mean((found.predict(X) - y) ** 2) < 0.1 * y.var()
