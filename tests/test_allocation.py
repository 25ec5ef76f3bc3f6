"""The knapsack: steps along each row's hull, bought in the order of gain per cost."""

import numpy as np
import pytest
from scipy.optimize import linprog

from orthocal.decisions.allocation import allocation, at_arm, step_values, steps_of, unlimited


def problem(seed):
    """Return gains, costs, weights and a budget: plain, with ties, with the same costs for all, or with costs of 0."""
    rng = np.random.default_rng(seed)
    n, arms = rng.integers(1, 9), rng.integers(1, 5)
    gain, cost, weight = rng.standard_normal((n, arms)), rng.exponential(size=(n, arms)), rng.exponential(size=n)
    if seed % 4 == 1:
        gain, cost, weight = np.round(gain), np.round(cost), np.round(weight) + 1
    elif seed % 4 == 2:
        cost = np.broadcast_to(rng.integers(0, 3, arms).astype(float), (n, arms))
    elif seed % 4 == 3:
        gain, cost = gain + 0.5, np.where(rng.random((n, arms)) < 0.4, 0.0, cost)
    return gain, cost, weight, rng.random() * float(weight @ cost.max(axis=1) / weight.sum())


def best_by_linear_program(gain, cost, weight, budget):
    """Return the largest summed gain: shares of each arm in each row add up to at most 1, and cost at most the budget."""
    rows, arms = gain.shape
    own = weight[:, None]
    limits = np.vstack([(own * cost).ravel(), np.kron(np.eye(rows), np.ones(arms))])
    found = linprog(-(own * gain).ravel(), limits, np.append(budget * weight.sum(), np.ones(rows)), method="highs")
    return -found.fun


@pytest.mark.parametrize("seed", range(200))
def test_it_is_the_optimum_of_the_linear_program(seed):
    gain, cost, weight, budget = problem(seed)
    steps = steps_of(gain, cost)
    found = allocation(steps, weight, budget)
    spent = weight @ found.expected(cost) / weight.sum()
    best = best_by_linear_program(gain, cost, weight, budget)
    assert weight @ found.expected(gain) == pytest.approx(best, rel=1e-9, abs=1e-9)
    everything = weight[steps.row] @ steps.cost / weight.sum()
    assert spent == pytest.approx(min(budget, everything), rel=1e-9, abs=1e-12)


def test_by_hand():
    """Row 0 goes to arm 1 (3 per unit), then to arm 2 (1 more for 2); row 1 to arm 2 (4 for 2), past arm 1 below its hull."""
    gain, cost = np.array([[3.0, 4.0], [1.0, 4.0]]), np.array([[1.0, 3.0], [1.0, 2.0]])
    steps = steps_of(gain, cost)
    assert steps.row.tolist() == [0, 1, 0]
    assert steps.arm.tolist() == [1, 2, 2]
    assert steps.previous.tolist() == [0, 0, 1]
    np.testing.assert_allclose(steps.ratio, [3.0, 2.0, 0.5])
    found = allocation(steps, np.ones(2), 1.0)  # two units in all: one for row 0, the other buys half of row 1's step
    assert (found.arm.tolist(), found.before.tolist(), found.share) == ([1, 2], [1, 0], 0.5)
    np.testing.assert_allclose(found.expected(gain), [3.0, 2.0])
    np.testing.assert_allclose(found.shares(np.ones(2), 2), [0.5, 0.25])
    assert allocation(steps, np.ones(2), 9.0).arm.tolist() == [2, 2]
    assert allocation(steps, np.ones(2), 0.0).before.tolist() == [0, 0]


def test_what_costs_nothing_is_bought_first_and_losses_never():
    steps = steps_of(np.array([[1.0], [5.0], [-1.0]]), np.array([[0.0], [1.0], [0.0]]))
    assert (steps.free, steps.row.tolist()) == (1, [0, 1])
    found = allocation(steps, np.ones(3), 0.0)
    assert found.before.tolist() == [1, 0, 0]
    assert found.expected(np.ones((3, 1))).tolist() == [1.0, 0.0, 0.0]


def test_nothing_to_gain_buys_nothing():
    steps = steps_of(np.full((3, 2), -1.0), np.ones((3, 2)))
    assert len(steps.row) == 0
    assert allocation(steps, np.ones(3), 1.0).arm.tolist() == [0, 0, 0]


def test_tied_rows_are_treated_alike():
    """Four people gain 2 per unit; a budget for one of the four treats each with a chance of a quarter."""
    found = allocation(steps_of(np.full((4, 1), 2.0), np.ones((4, 1))), np.ones(4), 0.25)
    np.testing.assert_allclose(found.expected(np.ones((4, 1))), 0.25)


def rounded_rows(rng, n=40):
    return np.round(rng.standard_normal((n, 3)), 1), np.round(rng.exponential(size=(n, 3)), 1), rng.integers(1, 4, n)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_rows_has_no_say(seed):
    rng = np.random.default_rng(seed)
    gain, cost, weight = rounded_rows(rng)
    order = rng.permutation(len(gain))
    one = allocation(steps_of(gain, cost), weight.astype(float), 0.2)
    two = allocation(steps_of(gain[order], cost[order]), weight[order].astype(float), 0.2)
    np.testing.assert_allclose(two.expected(cost[order]), one.expected(cost)[order], atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_a_weight_is_that_many_rows(seed):
    gain, cost, weight = rounded_rows(np.random.default_rng(seed))
    one = allocation(steps_of(gain, cost), weight.astype(float), 0.2)
    many = [np.repeat(columns, weight, axis=0) for columns in (gain, cost)]
    two = allocation(steps_of(*many), np.ones(weight.sum()), 0.2)
    np.testing.assert_allclose(two.expected(many[1]), np.repeat(one.expected(cost), weight), atol=1e-12)


@pytest.mark.parametrize("rows", [1, 100, 20_000])
def test_steps_are_those_of_the_hull(rows):
    """Bought in full, every row ends at its largest gain; a row's steps come in their order and never get steeper."""
    rng = np.random.default_rng(rows)
    gain, cost = rng.standard_normal((rows, 4)), rng.exponential(size=(rows, 4))
    steps = steps_of(gain, cost)
    found = allocation(steps, np.ones(rows), np.inf)
    np.testing.assert_allclose(at_arm(gain, found.arm), np.maximum(gain.max(axis=1), 0))
    assert (np.diff(steps.ratio) <= 0).all()
    held = np.zeros(rows, dtype=int)
    for row, arm, previous in zip(steps.row, steps.arm, steps.previous, strict=True):
        assert held[row] == previous
        held[row] = arm
    np.testing.assert_allclose(step_values(gain, steps), steps.gain, atol=1e-12)


def test_arms_on_one_line_are_one_step():
    """Gains of 0.1, 0.2 and 0.3 for costs of 1, 2 and 3 are one line but for rounding."""
    steps = steps_of(np.array([[0.1, 0.2, 0.3]] * 2), np.array([[1.0, 2.0, 3.0]] * 2))
    found = allocation(steps, np.ones(2), 1.5)
    np.testing.assert_allclose(found.expected(np.array([[1.0, 2.0, 3.0]] * 2)), 1.5)
    assert (np.diff(steps.ratio) <= 0).all()


def test_without_a_limit_the_largest_net_gain_is_chosen():
    gain, cost = np.array([[2.0, 3.0], [0.5, 0.4], [1.0, 5.0]]), np.array([[1.0, 2.5], [1.0, 1.0], [1.0, 5.0]])
    assert unlimited(gain, cost).arm.tolist() == [1, 0, 0]  # a net gain of 0 treats no one
