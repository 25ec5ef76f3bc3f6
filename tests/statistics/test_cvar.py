"""The mean of the largest outcomes at 1,500 rows, with default learners and known truth: bias and coverage."""

import warnings

import numpy as np
import pytest

from orthocal import CVaRUnderTreatment, OverlapWarning, orthogonal_loss
from tests.simulation import TAILS, simulate_tail

DRAWS, ROWS = 200, 1500


TRUE = ("propensity", "tail_quantile", "tail_mean")


@pytest.mark.slow
@pytest.mark.parametrize("shape", TAILS)
def test_the_average_has_no_bias_to_speak_of_and_its_interval_covers(shape):
    average = simulate_tail(1, shape, 0)[1]
    # Three columns: the average found, its standard error, and the average that true nuisances find in the same rows.
    found = np.array([_found(shape, seed) for seed in range(DRAWS)])
    gained = found[:, 0] - found[:, 2]  # the bias, without the noise that true nuisances have as well
    bias, noise = gained.mean(), gained.std(ddof=1) / np.sqrt(DRAWS)
    covered = float(np.mean(np.abs(found[:, 0] - average) < 1.96 * found[:, 1]))
    print(f"{shape}: bias {bias:.3f} (standard error {noise:.3f}), average covered {covered:.3f}")
    assert abs(bias) - 2.576 * noise < 0.05
    assert covered + 2.576 * np.sqrt(0.9 * 0.1 / DRAWS) >= 0.90


def _found(shape, seed):
    data, _ = simulate_tail(ROWS, shape, seed)
    effect, columns = CVaRUnderTreatment(tail=0.1), {"treatment": data.treatment, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        learnt = orthogonal_loss(effect, data.X, data.y, **columns).target
    known = {name: data.nuisances[name] for name in TRUE}
    truth = orthogonal_loss(effect, data.X, data.y, nuisances=known, **columns).target
    return learnt.mean(), learnt.std(ddof=1) / np.sqrt(ROWS), truth.mean()
