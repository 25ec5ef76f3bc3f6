"""With estimated nuisances and known truth: every effect's distorted prediction is mended."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from orthocal import LATE, CausalCalibrator, CausalDerivative, OverlapCATE, QuantileUnderTreatment
from orthocal.datasets import simulate_cate, simulate_derivative, simulate_late, simulate_quantile

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


def errors(case, seeds):
    """True error before, and mean true error after each method; nuisances learnt once per draw."""
    effect, simulate, error = CASES[case]
    large = simulate(100_000, random_state=10**6)
    after = {method: [] for method in METHODS}
    for seed in seeds:
        data, learnt, folds = simulate(N, random_state=seed), None, 5
        for method in METHODS:
            calibrator = CausalCalibrator(effect, method, folds=folds, random_state=seed)
            columns = {"treatment": data.treatment, "instrument": data.instrument, "nuisances": learnt}
            calibrator.fit(data.X, data.y, prediction=distorted(data.effect), **columns)
            learnt, folds = calibrator.nuisances_, calibrator.learnt_.fold
            after[method].append(error(large, calibrator.calibrate(distorted(large.effect))))
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


def coarse(data):
    """A prediction that knows one covariate only, so that people with similar predictions differ in their quantiles."""
    return 1 + 2 * data.X[:, 1]


@pytest.mark.slow
def test_the_correction_helps_when_the_propensity_is_wrong():
    """The propensity given has half the true slope in one covariate and forgets another.

    `below` equal to the quantile switches the correction off (mathematics 3.10).
    """
    gain = []
    for quantile in (0.5, 0.75, 0.9):
        large = simulate_quantile(100_000, quantile=quantile, random_state=10**6)
        found = {(kind, method): [] for kind in ("corrected", "uncorrected") for method in METHODS}
        for seed in range(SEEDS):
            data = simulate_quantile(N, quantile=quantile, random_state=seed)
            wrong = {"propensity": expit(data.X[:, 0] / 2)}
            known = {"corrected": wrong, "uncorrected": {**wrong, "below": np.full(N, quantile)}}
            for (kind, method), values in found.items():
                calibrator = CausalCalibrator(QuantileUnderTreatment(quantile), method, random_state=seed)
                columns = {"treatment": data.treatment, "prediction": coarse(data), "nuisances": known[kind]}
                calibrator.fit(data.X, data.y, **columns)
                known[kind] = calibrator.nuisances_
                below = norm.cdf(
                    (calibrator.calibrate(coarse(large)) - large.nuisances["mean"]) / large.nuisances["deviation"]
                )
                values.append(rms_over_levels(below - quantile, coarse(large)))
        mean = {key: float(np.mean(values)) for key, values in found.items()}
        print(f"quantile {quantile}, wrong propensity: {mean}")
        for method in METHODS:
            assert mean["corrected", method] <= 1.05 * mean["uncorrected", method]
            gain.append(mean["uncorrected", method] - mean["corrected", method])
    assert np.mean(gain) > 0
