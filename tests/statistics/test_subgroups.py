"""Subgroups in a study, with nuisances that are estimated; discovery; and boosting: what is gained, left alone, and found."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from orthocal import BoostedMulticalibrator, QuadraticLoss, Study
from tests.statistics.test_multicalibration import binned_error

pytestmark = pytest.mark.slow


def observed(rng, n, off=0.0):
    """Return an observational table: treatment depends on x and age, effect 1 + x/2.

    Predictions are too high by `off` for women and too low by it for men, and once more too high for women over 60.
    """
    x, age, sex = rng.standard_normal(n), rng.integers(20, 90, n), rng.choice(["f", "m"], n)
    effect = 1 + x / 2
    treated = rng.random(n) < 1 / (1 + np.exp(-0.5 * x - 0.01 * (age - 55)))
    y = x + 0.01 * age + treated * effect + rng.standard_normal(n)
    gap = off * (np.where(sex == "f", 1.0, -1.0) + ((sex == "f") & (age > 60)))
    columns = {"x": x, "age": age, "sex": sex, "a": treated.astype(int), "y": y, "tau": effect + gap}
    return pd.DataFrame(columns), effect


def study_of(table, seed):
    return Study(
        table, outcome="y", treatment="a", covariates=["x", "age", "sex"], learners="linear", random_state=seed
    )


def test_the_study_door():
    """Worst subgroup and mean squared error fall, and all rows stay calibrated, with estimated nuisances."""
    worst, squares, left, ships = [], [], [], []
    for seed in range(20):
        table, _ = observed(np.random.default_rng(seed), 6000, 0.5)
        done = study_of(table, seed).calibrate("tau", within=["sex", "age", ["sex", "age"]])
        fresh, effect = observed(np.random.default_rng(1000 + seed), 20_000, 0.5)
        after = done.map.predict(fresh["tau"], fresh)
        groups = [fresh["sex"], fresh["age"] > 60]
        gaps = [(values - effect).groupby(groups).mean().abs().max() for values in (fresh["tau"], pd.Series(after))]
        worst.append(gaps[1] / gaps[0])
        squares.append(((after - effect) ** 2).mean() / ((fresh["tau"] - effect) ** 2).mean())
        left.append([binned_error(values, effect) / effect.std() for values in (fresh["tau"].to_numpy(), after)])
        ships.append(done.recommendation.action)
    overall = np.mean(left, axis=0)
    print("worst", np.mean(worst), "mse", np.mean(squares), "overall before, after", overall, Counter(ships))
    assert overall[1] < overall[0] + 0.02
    assert np.mean(worst) < 0.3
    assert np.mean(squares) < 0.6


def test_the_study_door_leaves_a_right_model_alone():
    changed = 0
    for seed in range(100):
        table, _ = observed(np.random.default_rng(seed), 3000)
        done = study_of(table, seed).calibrate("tau", "identity", within=["sex", "age", ["sex", "age"]], draws=1)
        changed += hasattr(done.verified_map, "rounds")
    print("changed", changed / 100)
    assert binomtest(changed, 100).proportion_ci(0.99).low <= 0.05


def test_the_size_of_discovery():
    """No subgroup is off: any is found in 5% at most."""
    found = 0
    for seed in range(200):
        table, _ = observed(np.random.default_rng(seed), 3000)
        found += study_of(table, seed).audit("tau", discover=True, draws=999).p_value <= 0.05
    print("found", found / 200)
    assert binomtest(found, 200).proportion_ci(0.99).low <= 0.05


def test_the_power_of_discovery():
    """Women over 60, a fifth of the rows, are off by half: they are found, and called what they are."""
    found = named = 0
    for seed in range(40):
        table, effect = observed(np.random.default_rng(seed), 5000)
        table["tau"] = effect + 0.5 * ((table["sex"] == "f") & (table["age"] > 60))
        cells = study_of(table, seed).audit("tau", discover=True, draws=999).found
        found += bool(cells)
        named += any("sex = f" in cell.group and "age" in cell.group for cell in cells)
    print("found", found / 40, "named", named / 40)
    assert found / 40 >= 0.8


def test_boosting_leaves_a_right_model_alone():
    changed = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, prediction = rng.standard_normal((2000, 4)), rng.standard_normal(2000)
        loss = QuadraticLoss(prediction + 2 * rng.standard_normal(2000), np.ones(2000))
        changed += BoostedMulticalibrator(max_steps=100).fit(prediction, loss, X).steps_ > 0
    print("changed", changed / 100)
    assert binomtest(changed, 100).proportion_ci(0.99).low <= 0.05


def test_boosting_puts_right_what_it_can_see():
    squares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, effect = rng.standard_normal((12_000, 4)), rng.standard_normal(12_000)
        prediction = effect + 0.8 * np.sign(X[:, 0]) * (X[:, 1] > 0)
        loss = QuadraticLoss(effect + rng.standard_normal(12_000), np.ones(12_000))
        half = np.arange(6000)
        fitted = BoostedMulticalibrator().fit(prediction[half], loss[half], X[half])
        after = fitted.predict(prediction[6000:], X[6000:])
        squares.append(((after - effect[6000:]) ** 2).mean() / ((prediction - effect)[6000:] ** 2).mean())
    print("mse", np.mean(squares))
    assert np.mean(squares) < 0.6
