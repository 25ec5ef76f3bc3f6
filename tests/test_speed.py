"""Costs relative to the operations that must be done anyway, in processor time: twice what `make bench` asks for."""

import time
from statistics import median

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from orthocal import (
    Auto,
    CausalCalibrator,
    Histogram,
    Isotonic,
    Linear,
    QuadraticLoss,
    Spline,
    assess,
    orthogonal_loss,
)
from orthocal.arrays import FEW, step_of
from orthocal.datasets import simulate_cate
from orthocal.decisions.allocation import steps_of
from orthocal.decisions.budget import ladder_of, walked
from orthocal.decisions.people import people_of
from orthocal.folds import draw_folds
from orthocal.losses.arm_scores import ArmScores
from orthocal.nuisances.tree_tables import probability_table
from orthocal.observations import observe

ROWS = 200_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(ROWS)
    return prediction, QuadraticLoss(prediction + rng.standard_normal(ROWS), np.ones(ROWS))


def ratio(ours, floor, repeats=9, typical=min):
    """Least (or typical) processor time of ours over that of the floor, in turn."""
    times = ([], [])
    for _ in range(repeats):
        for record, work in zip(times, (ours, floor), strict=True):
            start = time.process_time()
            work()
            record.append(time.process_time() - start)
    return typical(times[0]) / typical(times[1])


def isotonic_floor(prediction, loss):
    order = np.argsort(prediction)
    level = prediction[order]
    fit = isotonic_regression(loss.target[order], weights=loss.denominator[order])
    starts = fit.blocks[:-1]
    return fit.x[starts][np.searchsorted(level[starts[1:] - 1], prediction)]


def test_isotonic(rows):
    prediction, _ = rows
    assert ratio(lambda: Isotonic().fit(*rows).predict(prediction), lambda: isotonic_floor(*rows)) < 3


def test_histogram(rows):
    prediction, loss = rows
    group = np.arange(ROWS) % 20
    floor = lambda: (np.argsort(prediction), np.bincount(group, loss.numerator))  # noqa: E731
    assert ratio(lambda: Histogram().fit(*rows), floor) < 3


def test_linear(rows):
    prediction, loss = rows
    assert ratio(lambda: Linear().fit(*rows), lambda: np.polyfit(prediction, loss.target, 1)) < 1


@pytest.mark.more
def test_auto(rows):
    """On 100,000 rows, against one isotonic and one spline fit."""
    prediction, loss = (part[np.arange(100_000)] for part in rows)
    floor = lambda: (Isotonic().fit(prediction, loss), Spline().fit(prediction, loss))  # noqa: E731
    assert ratio(lambda: Auto().fit(prediction, loss), floor, repeats=3) < 12


def test_assess(rows):
    prediction, _ = rows
    assert ratio(lambda: assess(*rows, draws=100, random_state=0), lambda: np.argsort(prediction)) < 25


@pytest.fixture(scope="module")
def study():
    """What a user calls, with every nuisance given: a method, and the prediction that is calibrated."""
    data = simulate_cate(ROWS, random_state=0)
    prediction = 1 + 2 * data.effect
    columns = {"treatment": data.treatment, "prediction": prediction, "nuisances": data.nuisances}
    return lambda method: CausalCalibrator(method=method).fit(data.X, data.y, **columns), prediction


def test_calibrating_with_all_nuisances_given_is_little_more_than_its_solver(study):
    fit, prediction = study
    loss = fit("linear").loss_
    assert ratio(lambda: fit("isotonic"), lambda: Isotonic().fit(prediction, loss)) < 4
    assert ratio(lambda: fit("linear"), lambda: np.argsort(prediction)) < 3


def test_folds():
    rng = np.random.default_rng(0)
    treatment, y = rng.integers(0, 2, ROWS), rng.standard_normal(ROWS)
    rows = observe(rng.standard_normal((ROWS, 10)), y, treatment=treatment)
    assert ratio(lambda: draw_folds(5, treatment, rows, 0), lambda: np.argsort(y)) < 8


@pytest.mark.parametrize("count", [0, 1, FEW, FEW + 1, 300])
def test_steps_are_found_alike_whichever_way_is_faster(count):
    rng = np.random.default_rng(count)
    edges = np.unique(rng.standard_normal(count))
    values = np.concatenate([rng.standard_normal(1000), edges, np.nextafter(edges, np.inf)])
    np.testing.assert_array_equal(step_of(values, edges), np.searchsorted(edges, values, side="left"))


@pytest.fixture(scope="module")
def arms():
    """People with five arms, and the work of ordering them and walking the curve over budgets once."""
    rng = np.random.default_rng(0)
    prediction, cost = rng.standard_normal((ROWS, 5)), rng.exponential(size=(ROWS, 5))
    values = np.column_stack([np.zeros(ROWS), prediction]) + rng.standard_normal((ROWS, 6))
    scores = ArmScores(arms=tuple(range(6)), values=values, weight=np.ones(ROWS))
    people = people_of(scores, {"tau": prediction}, {k + 1: cost[:, k] for k in range(5)})
    budgets = np.linspace(0, 0.5, 101)
    own = people.predictions["tau"]
    return people, lambda: ladder_of(steps_of(own, people.cost), people).at(people.weight, ROWS, budgets)


def test_curve_over_budgets(arms):
    people, curve = arms
    ratios = (people.predictions["tau"] / people.cost).ravel()
    assert ratio(curve, lambda: np.argsort(ratios)) < 6


def test_draws_of_the_curve_over_budgets(arms):
    people, curve = arms
    steps = {"tau": steps_of(people.predictions["tau"], people.cost)}
    assert ratio(lambda: walked(people, steps, 0.2, 20, 0), curve) < 12


def test_trees_at_many_values_at_once():
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    X, values = rng.standard_normal((2000, 5)), np.linspace(-2, 2, 41)
    value = rng.choice(values, 2000)
    model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, early_stopping=False)
    model.fit(np.column_stack([X, value]), X[:, 0] + rng.standard_normal(2000) <= value)
    one_by_one = lambda: [model.predict_proba(np.column_stack([X, np.full(2000, one)])) for one in values]  # noqa: E731
    assert ratio(lambda: probability_table(model, X, values), one_by_one, repeats=3) < 0.5


def nuisances_of(effect, data):
    """Return what learns the nuisances of an effect."""
    known = {"treatment": data.treatment, "prediction": data.effect, "random_state": 0, "n_jobs": 1}
    return lambda: orthogonal_loss(effect, data.X, data.y, **known)


@pytest.mark.more
def test_nuisances_of_a_quantile():
    data = simulate_cate(10_000, random_state=0)
    assert ratio(nuisances_of("quantile", data), nuisances_of("cate", data), repeats=2) < 6


@pytest.mark.slow
@pytest.mark.parametrize("n", [40_000, 100_000])
def test_nuisances_of_a_quantile_of_many_rows(n):
    """At most 4 times the time of the CATE's: what `make bench` asks for, not twice that."""
    data = simulate_cate(n, random_state=0)
    found = ratio(nuisances_of("quantile", data), nuisances_of("cate", data), repeats=3, typical=median)
    print(f"{n} rows: {found:.2f}")
    assert found <= 4
