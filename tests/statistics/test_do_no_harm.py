"""A perfectly calibrated prediction is hardly harmed, and its calibration is not called an improvement."""

import numpy as np

from orthocal import Isotonic, compare
from orthocal.datasets import simulate_cate
from tests.simulation import EFFECT_SD, oracle_draw, true_error

DESIGN = {"confounding": 0.0, "noise": EFFECT_SD}


def test_isotonic_leaves_a_calibrated_prediction_nearly_calibrated():
    large = simulate_cate(200_000, random_state=10**6, **DESIGN)
    errors, gaps = [], []
    for seed in range(100):
        data, loss = oracle_draw(4000, seed, **DESIGN)
        calibrated = Isotonic().fit(data.effect, loss).predict(large.effect)
        errors.append(true_error(calibrated, large.effect) / EFFECT_SD)
        gaps.append(np.sqrt(np.mean((calibrated - large.effect) ** 2)) / EFFECT_SD)
    print(
        f"mean true calibration error {np.mean(errors):.4f} of the effect's deviation, root mean square {np.mean(gaps):.4f}"
    )
    assert np.mean(errors) < 0.15
    assert np.mean(gaps) < 0.155  # plain pooling: 0.153


def test_compare_does_not_praise_a_change_that_was_not_needed():
    praised = []
    for seed in range(500):
        data, loss = oracle_draw(4000, seed, **DESIGN)
        fresh, fresh_loss = oracle_draw(4000, 100_000 + seed, **DESIGN)
        learnt = Isotonic().fit(data.effect, loss)
        praised.append(compare(fresh.effect, learnt.predict(fresh.effect), fresh_loss).verdict == "improved")
    print(f"called an improvement in {np.mean(praised):.4f} of 500 draws")
    assert np.mean(praised) <= 0.05
