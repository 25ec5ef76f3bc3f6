"""Multicalibration and its audit on populations whose truth is known: what is gained, what is left alone, size and power."""

from time import perf_counter

import numpy as np
import pytest

import orthocal
from orthocal import Isotonic, Multicalibrator, QuadraticLoss, audit
from tests.test_multicalibrator import opposite, worst_group


def binned_error(prediction, truth, bins=20):
    """Root mean square, over bins of equal size, of prediction less truth: the error of calibration over all rows."""
    order = np.argsort(prediction)
    gaps = [np.mean(part) for part in np.array_split((prediction - truth)[order], bins)]
    return float(np.sqrt(np.mean(np.square(gaps))))


@pytest.mark.parametrize(("n", "noise"), [(5000, 1.0), (20_000, 2.0)])
def test_groups_off_in_opposite_directions(n, noise):
    worst, error, after_all, scale = [], [], [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        prediction, _, loss, groups = opposite(rng, n, noise)
        fitted = Multicalibrator().fit(prediction, loss, groups)
        fresh, truth, _, own = opposite(rng, 50_000)
        after = fitted.predict(fresh, own)
        worst.append(worst_group(after, truth, own) / worst_group(fresh, truth, own))
        error.append(((after - truth) ** 2).mean() / ((fresh - truth) ** 2).mean())
        after_all.append(binned_error(after, truth) - binned_error(fresh, truth))
        scale.append(fresh.std())
        assert fitted.steps_ <= fitted.bound_
    print(np.mean(worst), np.mean(error), np.mean(after_all) / np.mean(scale))
    assert np.mean(worst) < 0.3
    assert np.mean(error) < 0.6
    assert np.mean(after_all) < 0.02 * np.mean(scale)


def test_overall_calibration_is_kept():
    """Predictions calibrated over all rows, .8 too low for women and .8 too high for men: E(effect | prediction) stays right."""

    def draw(rng, n):
        woman, prediction = rng.integers(0, 2, n), rng.standard_normal(n)
        truth = prediction + 0.8 * (2 * woman - 1)
        return prediction, truth, QuadraticLoss(truth + rng.standard_normal(n), np.ones(n)), {"woman": woman}

    left, error = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        prediction, _, loss, groups = draw(rng, 20_000)
        fitted = Multicalibrator().fit(prediction, loss, groups)
        fresh, truth, _, own = draw(rng, 50_000)
        after = fitted.predict(fresh, own)
        left.append(binned_error(after, truth) / after.std())
        error.append(((after - truth) ** 2).mean() / ((fresh - truth) ** 2).mean())
    print(np.mean(left), np.mean(error))
    assert np.mean(left) < 0.02
    assert np.mean(error) < 0.6


def null(rng, n, noise="normal", clustered=False):
    """Return a multicalibrated prediction, its loss, and two columns of groups with 7 groups together."""
    prediction = rng.standard_normal(n)
    if clustered:
        cluster = rng.integers(0, n // 5, n)
        rest = rng.standard_normal(n // 5)[cluster] + rng.standard_normal(n)
    else:
        cluster, rest = None, {"normal": rng.standard_normal(n), "heavy": rng.standard_t(5, n)}[noise]
    weight = rng.uniform(0.5, 1.5, n)
    loss = QuadraticLoss(weight * (prediction + 2 * rest), weight, groups=cluster)
    return prediction, loss, {"a": rng.integers(0, 5, n), "b": rng.random(n) < 0.2}


DESIGNS = [(2000, "normal", False), (2000, "heavy", False), (10_000, "normal", False), (5000, "normal", True)]


@pytest.mark.parametrize(("n", "noise", "clustered"), DESIGNS)
def test_a_multicalibrated_model_is_left_alone(n, noise, clustered):
    draws = [null(np.random.default_rng(seed), n, noise, clustered) for seed in range(400)]
    changed = np.mean([Multicalibrator().fit(*draw).steps_ > 0 for draw in draws])
    print(changed)
    assert changed <= 0.05


@pytest.mark.parametrize(("n", "noise", "clustered"), DESIGNS)
def test_the_size_of_the_audit(n, noise, clustered):
    rejected = [
        audit(*null(np.random.default_rng(seed), n, noise, clustered), draws=999, random_state=seed).p_value <= 0.05
        for seed in range(1000)
    ]
    print(np.mean(rejected))
    assert 0.03 < np.mean(rejected) < 0.07  # .035 to .065, and chance over 1000 draws


def test_the_power_of_the_audit():
    """One group of 10% is off by half a deviation of the effect; the scores' noise has twice that deviation."""
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        effect, group = rng.standard_normal(5000), rng.integers(0, 10, 5000)
        loss = QuadraticLoss(effect + 2 * rng.standard_normal(5000), np.ones(5000))
        result = audit(effect + 0.5 * (group == 3), loss, {"group": group}, draws=999)
        found.append(result.p_value <= 0.05)
    print(np.mean(found))
    assert np.mean(found) >= 0.8


def test_fifty_groups_of_a_million_rows():
    rng = np.random.default_rng(0)
    truth, groups = rng.standard_normal(10**6), {f"c{k}": rng.integers(0, 10, 10**6) for k in range(5)}
    prediction = truth + 0.5 * (groups["c0"] % 2 * 2 - 1)
    loss = orthocal.QuadraticLoss(truth + rng.standard_normal(10**6), np.ones(10**6))
    start = perf_counter()
    Isotonic().fit(prediction, loss)
    middle = perf_counter()
    Multicalibrator().fit(prediction, loss, groups)
    print((perf_counter() - middle) / (middle - start))
    assert perf_counter() - middle < 25 * (middle - start)
