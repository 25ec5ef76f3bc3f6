"""With estimated nuisances and known truth: every effect's distorted prediction is mended."""

import numpy as np
import pytest
from scipy.stats import norm

from orthocal import LATE, CausalDerivative, OverlapCATE, QuantileUnderTreatment, orthogonal_loss
from orthocal.datasets import simulate_cate, simulate_derivative, simulate_late, simulate_quantile
from orthocal.refinement import fit_calibrator

N, SEEDS, METHODS = 5000, 20, ("linear", "isotonic")


def distorted(effect):
    return 1 + 2 * effect


def rms_over_levels(gap, prediction, cells=200):
    """Root mean square of mean gaps over fine cells of the prediction, whose functions the calibrated values are."""
    cell = np.empty(len(prediction), dtype=int)
    cell[np.argsort(prediction, kind="stable")] = np.arange(len(prediction)) * cells // len(prediction)
    return float(np.sqrt(np.mean((np.bincount(cell, gap) / np.bincount(cell)) ** 2)))


def effect_error(data, calibrated):
    return rms_over_levels(data.effect - calibrated, distorted(data.effect))


def quantile_error(quantile):
    def error(data, calibrated):
        below = norm.cdf((calibrated - data.nuisances["mean"]) / data.nuisances["deviation"])
        return rms_over_levels(below - quantile, distorted(data.effect))

    return error


def quantile_case(quantile):
    def simulate(n, random_state):
        return simulate_quantile(n, quantile=quantile, random_state=random_state)

    return QuantileUnderTreatment(quantile), simulate, quantile_error(quantile)


CASES = {
    "late, population": (LATE(), simulate_late, effect_error),
    "late, compliers": (LATE(target="compliers"), simulate_late, effect_error),
    "derivative, gaussian": (CausalDerivative("gaussian"), simulate_derivative, effect_error),
    "derivative, shift": (CausalDerivative("shift"), simulate_derivative, effect_error),
    "derivative, riesz": (CausalDerivative("riesz"), simulate_derivative, effect_error),
    "overlap": (OverlapCATE(), simulate_cate, effect_error),
    "quantile 0.5": quantile_case(0.5),
    "quantile 0.75": quantile_case(0.75),
    "quantile 0.9": quantile_case(0.9),
}


def errors(case, seeds, **given):
    """True error before, and mean true error after each method."""
    effect, simulate, error = CASES[case]
    large = simulate(100_000, random_state=10**6)
    after = {method: [] for method in METHODS}
    for seed in seeds:
        data = simulate(N, random_state=seed)
        prediction = distorted(data.effect)
        loss = orthogonal_loss(
            effect,
            data.X,
            data.y,
            treatment=data.treatment,
            instrument=data.instrument,
            prediction=prediction,
            random_state=seed,
            nuisances={name: value(data) for name, value in given.items()},
        )
        for method in METHODS:
            learnt = fit_calibrator(method, prediction, loss)
            after[method].append(error(large, learnt.predict(distorted(large.effect))))
    return error(large, distorted(large.effect)), {method: float(np.mean(e)) for method, e in after.items()}


@pytest.mark.parametrize("case", ["late, population", "overlap"])
def test_one_draw_is_mended(case):
    before, after = errors(case, range(1))
    assert max(after.values()) < 0.5 * before


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_true_error_falls_by_half_over_twenty_seeds(case):
    before, after = errors(case, range(SEEDS))
    print(f"{case}: true error {before:.3f} before, {after} after")
    assert max(after.values()) < 0.5 * before


@pytest.mark.slow
@pytest.mark.parametrize("case", ["quantile 0.5", "quantile 0.75", "quantile 0.9"])
def test_the_correction_helps_when_the_propensity_is_wrong(case):
    """Propensity taken to be a coin's; `below` equal to the quantile switches the correction off (MATH 6.1)."""
    quantile = CASES[case][0].quantile
    wrong = {"propensity": lambda data: 0.5}
    plain = {**wrong, "below": lambda data: np.full(len(data.y), quantile)}
    corrected, uncorrected = errors(case, range(SEEDS), **wrong)[1], errors(case, range(SEEDS), **plain)[1]
    print(f"{case}, wrong propensity: corrected {corrected}, uncorrected {uncorrected}")
    assert np.mean(list(corrected.values())) < np.mean(list(uncorrected.values()))
    for method in METHODS:
        assert corrected[method] <= uncorrected[method]
