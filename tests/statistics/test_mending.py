"""With estimated nuisances: the true error of a distorted prediction falls, and the verdict after it is honest."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from orthocal import Isotonic, assess, orthogonal_loss
from orthocal.calibrators import new_calibrator
from orthocal.datasets import simulate_cate
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe
from tests.pages import verified
from tests.simulation import true_error


def distorted(effect):
    return 1 + 2 * effect


def falls(seeds):
    """Return, per method, the mean share of the true error that calibration leaves."""
    large = simulate_cate(200_000, random_state=10**6)
    before = true_error(distorted(large.effect), large.effect)
    left = {"linear": [], "isotonic": []}
    for seed in seeds:
        data = simulate_cate(4000, random_state=seed)
        loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, random_state=seed)
        for method, shares in left.items():
            learnt = new_calibrator(method).fit(distorted(data.effect), loss)
            shares.append(true_error(learnt.predict(distorted(large.effect)), large.effect) / before)
    return {method: float(np.mean(shares)) for method, shares in left.items()}


def test_the_true_error_falls():
    left = falls(range(3))
    print(left)
    assert max(left.values()) < 0.3


@pytest.mark.slow
def test_the_true_error_falls_by_seventy_percent_over_twenty_seeds():
    left = falls(range(20))
    print(f"share of the true error left after calibration: {left}")
    assert max(left.values()) < 0.3


LEARNERS = {
    "propensity": LogisticRegression(),
    "outcome": make_pipeline(PolynomialFeatures(2, include_bias=False), LinearRegression()),
}


@pytest.mark.slow
def test_the_verdict_on_held_out_rows_rejects_as_often_as_on_fresh_ones():
    held_out, fresh_rows = [], []
    for seed in range(1500):
        data = simulate_cate(2000, random_state=seed)
        rows = observe(data.X, data.y, treatment=data.treatment, prediction=distorted(data.effect))
        done = verified(
            "cate", Isotonic(), rows, data.X, recipe=Recipe(learners=LEARNERS, random_state=seed), redraws=0
        )
        held_out.append(done.after.tests["linear"].p_value < 0.05)
        fresh = simulate_cate(600, random_state=10**6 + seed)
        loss = orthogonal_loss(
            "cate", fresh.X, fresh.y, treatment=fresh.treatment, learners=LEARNERS, random_state=seed
        )
        verdict = assess(done.map.predict(distorted(fresh.effect)), loss, draws=1)
        fresh_rows.append(verdict.tests["linear"].p_value < 0.05)
    print(f"rejected on held-out rows {np.mean(held_out):.4f}, on fresh rows {np.mean(fresh_rows):.4f}")
    assert abs(np.mean(held_out) - np.mean(fresh_rows)) < 0.03
