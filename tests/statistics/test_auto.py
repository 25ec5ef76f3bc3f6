"""The automatic choice leaves a right model alone and mends a wrong one about as well as the best method would."""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone

from orthocal import Auto, QuadraticLoss
from orthocal.calibrators.auto import CANDIDATES
from tests.simulation import EFFECT_SD, oracle_draw


@pytest.mark.parametrize("draws", [100, pytest.param(600, marks=pytest.mark.slow)])
def test_a_calibrated_prediction_is_left_alone(draws):
    choices = Counter()
    for seed in range(draws):
        data, loss = oracle_draw(2000, seed, confounding=0.0, noise=EFFECT_SD)
        choices[Auto().fit(data.effect, loss).choice_] += 1
    print(f"choices in {draws} draws: {dict(choices)}")
    assert choices["identity"] >= 0.95 * draws


def distorted(kind, n, rng):
    """Prediction, effect and loss with noise twice the effect's deviation."""
    prediction = rng.standard_normal(n)
    effect = {
        "affine": (prediction - 1) / 2,
        "curved": np.arcsinh(prediction) * 0.8,
        "steps": np.select([prediction < -0.5, prediction < 0.7], [-1.0, 0.0], 1.2),
    }[kind]
    return prediction, effect, QuadraticLoss(effect + 2 * effect.std() * rng.standard_normal(n), np.ones(n))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["affine", "curved", "steps"])
def test_the_choice_is_nearly_as_good_as_the_best_single_method(kind):
    rng = np.random.default_rng(0)
    fresh, truth, _ = distorted(kind, 20_000, rng)
    gap = {name: [] for name in (*CANDIDATES, "auto")}
    for _ in range(100):
        prediction, _, loss = distorted(kind, 4000, rng)
        for name, candidate in {**CANDIDATES, "auto": Auto()}.items():
            fitted = clone(candidate).fit(prediction, loss)
            gap[name].append(np.sqrt(np.mean((fitted.predict(fresh) - truth) ** 2)))
    mean = {name: float(np.mean(values)) for name, values in gap.items()}
    print(f"{kind}: root excess risk { {name: round(value, 4) for name, value in mean.items()} }")
    assert mean["auto"] <= 1.2 * min(value for name, value in mean.items() if name != "auto")
