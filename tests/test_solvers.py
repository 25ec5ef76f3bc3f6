"""Solvers against linear programs, searches and each other."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from orthocal import ExpectileLoss, HingeLoss, OrthocalError, QuadraticLoss
from orthocal.solvers import affine, constants, monotone, sigmoid, spline
from orthocal.solvers.monotone import blocks_of
from orthocal.solvers.spline import roughness, spline_design, spline_knots


def random_problem(seed):
    """Predictions and a hinge loss with ties, zero weights, whole weights and unbounded blocks now and then."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    prediction = np.round(rng.standard_normal(n), int(rng.integers(0, 3)))
    outcome = np.round(rng.standard_normal(n), int(rng.integers(0, 3)))
    slope = np.where(rng.random(n) < 0.5, rng.uniform(0, 4, n), 0.0)
    slope = np.round(slope) if seed % 5 == 0 else slope
    slope[0] = max(slope[0], 1.0)
    level = rng.choice([0.1, 0.5, 0.9])
    return prediction, HingeLoss(outcome, slope, level + (slope - 1) * rng.random(n))


def program(loss, design, extra_matrix, extra_bound, bounds):
    """Optimum of min sum s (fit - y)_+ - t fit over fit = design @ c, by HiGHS."""
    n, size = design.shape
    cost = np.concatenate([-(loss.tilt @ design), loss.slope])
    hinge = np.hstack([design, -np.eye(n)])
    extra = np.hstack([extra_matrix, np.zeros((len(extra_matrix), n))])
    matrix, bound = np.vstack([hinge, extra]), np.concatenate([loss.outcome, extra_bound])
    limits = [*([bounds] * size), *([(0, None)] * n)]
    return linprog(cost, A_ub=matrix, b_ub=bound, bounds=limits, method="highs").fun


@pytest.mark.parametrize("solver", [monotone, monotone.dispatch(object)], ids=["hinge", "any loss"])
def test_monotone_reaches_the_optimum_of_the_linear_program(solver):
    for seed in range(100):
        prediction, loss = random_problem(seed)
        edges, values = solver(loss, prediction)
        level, group = np.unique(prediction, return_inverse=True)
        order = np.eye(len(level))[:-1] - np.eye(len(level))[1:]
        best = program(loss, np.eye(len(level))[group], order, np.zeros(len(order)), loss.bounds)
        fitted = values[np.searchsorted(edges, prediction)]
        assert loss.value(fitted).sum() == pytest.approx(best, abs=1e-9)
        assert (np.diff(values) >= 0).all()
        assert loss.bounds[0] <= values.min()
        assert values.max() <= loss.bounds[1]


@pytest.mark.parametrize("solver", [affine, affine.dispatch(object)], ids=["hinge", "any loss"])
def test_affine_reaches_the_optimum_of_the_boxed_linear_program(solver):
    for seed in range(100):
        prediction, loss = random_problem(seed)
        if np.ptp(prediction) == 0:
            continue
        intercept, slope = solver(loss, prediction)
        ends = np.array([[1, prediction.min()], [1, prediction.max()]])
        limits = np.repeat([loss.bounds[1], -loss.bounds[0]], 2)
        design = np.column_stack([np.ones(len(prediction)), prediction])
        best = program(loss, design, np.vstack([ends, -ends]), limits, (None, None))
        fitted = intercept + slope * prediction
        assert loss.value(fitted).sum() == pytest.approx(best, abs=1e-9)
        assert loss.bounds[0] - 1e-9 <= fitted.min()
        assert fitted.max() <= loss.bounds[1] + 1e-9


def test_constants_of_any_loss_and_of_the_hinge_agree():
    for seed in range(50):
        prediction, loss = random_problem(seed)
        group = np.unique(np.round(prediction), return_inverse=True)[1]
        exact = constants(loss, group, group.max() + 1)
        searched = constants.dispatch(object)(loss, group, group.max() + 1)
        np.testing.assert_allclose(exact, searched, atol=1e-9)


def test_an_unbounded_block_ends_at_the_box():
    # T < 0: the sum falls for ever towards -inf; T > W: towards +inf (mathematics 4.1).
    loss = HingeLoss(np.array([1.0, 2.0, 5.0]), np.array([1.0, 1.0, 0.0]), np.array([-1.0, 3.0, 0.0]))
    np.testing.assert_array_equal(constants(loss, np.array([0, 1, 1]), 2), [1.0, 2.0])
    assert loss.bounds == (1.0, 2.0)


def test_a_weighted_quantile_by_hand():
    # Weights 1, 2, 1 at outcomes 1, 2, 3; T = 2: cumulative 1, 3 reaches 2 at outcome 2. T = 1 is reached at 1 exactly.
    loss = HingeLoss(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), np.full(3, 2 / 3))
    np.testing.assert_array_equal(constants(loss, np.zeros(3, int), 1), [2.0])
    loss = HingeLoss(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), np.full(3, 1 / 3))
    np.testing.assert_array_equal(constants(loss, np.zeros(3, int), 1), [1.0])


def test_expectile_solvers_agree_with_a_general_search():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    y = x + rng.standard_normal(300)
    slope = 2.0 * (rng.random(300) < 0.5)
    loss = ExpectileLoss(y, slope, 0.1 * (slope - 1), expectile=0.7)
    found = affine(loss, x)
    design = np.column_stack([np.ones(300), x])
    searched = minimize(
        lambda c: loss.value(design @ c).sum(), [0, 1], jac=lambda c: design.T @ loss.derivative(design @ c), tol=1e-9
    ).x
    np.testing.assert_allclose(found, searched, atol=1e-5)
    single = constants(loss, np.zeros(300, int), 1)
    assert abs(loss.derivative(np.full(300, single[0])).sum()) < 1e-7
    edges, values = monotone(loss, x)
    block = np.searchsorted(edges, x)
    for b in np.flatnonzero((values > loss.bounds[0] + 1e-9) & (values < loss.bounds[1] - 1e-9)):
        assert abs(loss.derivative(np.full(300, values[b]))[block == b].sum()) < 1e-6


def test_monotone_for_any_loss_equals_the_quadratic_short_cut():
    rng = np.random.default_rng(0)
    x, y = np.round(rng.standard_normal(200), 1), rng.standard_normal(200)
    # An expectile loss at 0.5 with no correction is a quarter of the squared loss.
    general = ExpectileLoss(y, np.ones(200), np.zeros(200))
    exact_edges, exact = monotone(QuadraticLoss(y, np.ones(200)), x)
    edges, values = monotone(general, x)
    np.testing.assert_allclose(values[np.searchsorted(edges, x)], exact[np.searchsorted(exact_edges, x)], atol=1e-8)


def test_the_sigmoid_of_any_loss_improves_on_its_start_and_finds_a_known_curve():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(4000)
    truth = -1 + 3 / (1 + np.exp(-(0.5 + 1.5 * x)))
    y = truth + rng.standard_normal(4000)
    loss = HingeLoss(y, np.ones(4000), np.full(4000, 0.5))
    intercept, slope = sigmoid(loss, x, -1.0, 2.0)
    assert (intercept, slope) == pytest.approx((0.5, 1.5), abs=0.25)
    assert sigmoid(loss, np.zeros(4000), -1.0, 2.0)[1] == 0


def test_a_spline_is_a_line_when_smoothed_and_a_curve_when_not():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=500)
    y = np.log1p(x) + 0.01 * rng.standard_normal(500)
    knots = spline_knots(x, 8)
    design, penalty = spline_design(x, knots), roughness(knots)
    for loss in (QuadraticLoss(y, np.ones(500)), HingeLoss(y, np.ones(500), np.full(500, 0.5))):
        smooth, rough = design @ spline(loss, design, 1e6 * penalty), design @ spline(loss, design, 1e-9 * penalty)
        line = np.polyfit(x, smooth, 1)
        np.testing.assert_allclose(smooth, np.polyval(line, x), atol=0.02)
        assert np.abs(rough - np.log1p(x)).mean() < 0.02
        order = np.argsort(x)
        assert (np.diff(rough[order]) >= -1e-9).all()


def test_a_spline_needs_a_convex_loss():
    x = np.linspace(0, 1, 50)
    loss = QuadraticLoss(np.ones(50), np.where(x < 0.5, -1.0, 1.2))
    knots = spline_knots(x, 4)
    with pytest.raises(OrthocalError, match="must be convex for a spline"):
        spline(loss, spline_design(x, knots), 1e-6 * roughness(knots))


def test_a_loss_to_be_searched_must_have_bounds():
    loss = ExpectileLoss(np.ones(3), np.ones(3), np.zeros(3), bounds=(-np.inf, np.inf))
    for solve in (lambda: constants(loss, np.zeros(3, int), 1), lambda: monotone(loss, np.arange(3.0))):
        with pytest.raises(OrthocalError, match="finite `bounds`"):
            solve()


def test_a_spline_rises_even_where_the_data_fall():
    x = np.linspace(0, 1, 200)
    knots = spline_knots(x, 8)
    design, penalty = spline_design(x, knots), roughness(knots)
    for loss in (QuadraticLoss(-x, np.ones(200)), HingeLoss(-x, np.ones(200), np.full(200, 0.5))):
        fitted = design @ spline(loss, design, 1e-6 * penalty)
        assert (np.diff(fitted) >= -1e-9).all()
        np.testing.assert_allclose(fitted, -0.5, atol=0.05)


def noisy(rng, n):
    """Numbers that rise, under noise."""
    return np.linspace(-1, 1, n) + 2 * rng.standard_normal(n)


ONE_MASS = {
    "noisy": noisy,
    "far from 0": lambda rng, n: 1e7 + noisy(rng, n),
    "whole": lambda rng, n: np.round(noisy(rng, n)),
    "rising": lambda rng, n: np.sort(rng.standard_normal(n)),
    "falling": lambda rng, n: -np.sort(rng.standard_normal(n)),
    "all alike": lambda _, n: np.full(n, 0.1),
    "steps": lambda _, n: np.repeat(np.arange(n // 100 + 1) / 3, 100)[:n],
    "heavy tails": lambda rng, n: rng.standard_t(1.5, n),
}


@pytest.mark.parametrize("numbers", ONE_MASS.values(), ids=ONE_MASS)
def test_rows_of_one_mass_are_pooled_as_if_each_had_its_own(numbers):
    """Spans of rows rule out most ends of blocks where all masses are one number; no end is lost by it."""
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 50, 5000, 70_000):
        level, values, mass = np.arange(float(n)), numbers(rng, n), np.broadcast_to(0.5, n)
        fast = blocks_of(level, values, mass, mass)
        slow = blocks_of(level, values, mass.copy(), mass.copy())
        np.testing.assert_array_equal(fast.level, slow.level)
        for one, other in zip(fast[1:], slow[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
