"""Coverage of the interval and size of the test, over 2,000 draws with known nuisances."""

import numpy as np
import pytest

from orthocal import assess
from orthocal.datasets import simulate_cate
from tests.simulation import oracle_draw, true_binned_error

DRAWS = 2000
DISTORTIONS = {
    "calibrated": lambda effect: effect,
    "shifted": lambda effect: effect + 0.2,
    "sloped": lambda effect: 1.3 * effect,
}


def run(distortion, n, first_seed=0):
    """Return per draw whether the interval covers the binned error, and the linear test's p-value."""
    large = simulate_cate(400_000, random_state=10**6)
    covered, p_values, plug_in = [], [], []
    for seed in range(first_seed, first_seed + DRAWS):
        data, loss = oracle_draw(n, seed)
        verdict = assess(distortion(data.effect), loss, draws=1, random_state=0)
        truth = true_binned_error(distortion(large.effect), large.effect, verdict.bins["upper"][:-1])
        low, high = verdict.interval
        # An error of 0 is covered by an interval that starts there.
        covered.append(low <= truth + 1e-12 and truth <= high)
        p_values.append(verdict.tests["linear"].p_value)
        plug_in.append((verdict.bins["residual"] ** 2).mean() - verdict.error_squared)
    return np.mean(covered), np.array(p_values), np.mean(plug_in)


def test_on_a_calibrated_prediction_the_interval_covers_and_the_test_keeps_its_size():
    coverage, p_values, gap = run(DISTORTIONS["calibrated"], 1000)
    print(f"coverage {coverage:.4f}, size {np.mean(p_values < 0.05):.4f}, plug-in minus debiased {gap:.4f}")
    assert 0.93 <= coverage <= 0.99
    assert 0.035 <= np.mean(p_values < 0.05) <= 0.07
    assert gap > 0.02  # what is reported is not the plug-in error, whose bias is (1/n) sum of the bin variances


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 4000])
@pytest.mark.parametrize("name", DISTORTIONS)
def test_the_interval_covers_the_binned_error_whatever_the_distortion(name, n):
    coverage, p_values, _ = run(DISTORTIONS[name], n, first_seed=10_000)
    print(f"{name}, n = {n}: coverage {coverage:.4f}, linear test rejects {np.mean(p_values < 0.05):.4f}")
    assert 0.93 <= coverage <= 0.99
    if name == "calibrated":
        assert 0.035 <= np.mean(p_values < 0.05) <= 0.07
