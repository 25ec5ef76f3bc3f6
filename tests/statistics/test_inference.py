"""Size, power and coverage of the verdict's parts, with known nuisances unless said otherwise."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from orthocal import Isotonic, QuadraticLoss, assess, compare, orthogonal_loss
from orthocal.datasets import simulate_cate
from tests.simulation import oracle_draw, reaches

TESTS = ("linear", "bins", "range")


def residual_draw(kind, n, rng):
    """A perfectly calibrated prediction whose residuals are of one kind; returns (prediction, loss)."""
    prediction = rng.standard_normal(n)
    noise, weight, groups = rng.standard_normal(n), np.ones(n), None
    if kind == "t3":
        noise = rng.standard_t(3, n)
    elif kind == "heteroskedastic":
        noise *= 0.3 + np.abs(prediction)
    elif kind.endswith("levels"):
        levels = int(kind.split()[0])
        prediction = np.floor(levels * rng.random(n)) / levels
    elif kind == "weights":
        weight = rng.exponential(size=n) + 0.1
    elif kind == "clusters":
        groups = rng.integers(0, 50, n)
        noise = 0.7 * noise + 0.7 * rng.standard_normal(50)[groups]
    return prediction, QuadraticLoss(weight * (prediction + noise), weight, groups=groups)


KINDS = ("normal", "t3", "heteroskedastic", "10 levels", "20 levels", "50 levels", "weights", "clusters")


def rejections(kind, n, draws):
    """Share of draws in which each test rejects at .05, in which the interval misses 0, and the band the curve."""
    rng = np.random.default_rng(0)
    found = dict.fromkeys((*TESTS, "interval", "band"), 0)
    for _ in range(draws):
        prediction, loss = residual_draw(kind, n, rng)
        verdict = assess(prediction, loss, draws=300, random_state=rng)
        for name in TESTS:
            found[name] += verdict.tests[name].p_value < 0.05
        found["interval"] += verdict.interval[0] > 0
        inside = np.abs(verdict.bins["residual"]) <= verdict.linf.band * verdict.bins["standard_error"]
        found["band"] += not inside.all()
    return {name: count / draws for name, count in found.items()}


def within(share, draws, low=0.035, high=0.07, nominal=0.05):
    """Whether a rejection rate lies in the band asked for, or in the 99.9% binomial band of the nominal one."""
    ends = binom.interval(0.999, draws, nominal)
    return low <= share <= high or ends[0] <= share * draws <= ends[1]


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
@pytest.mark.parametrize("kind", ["normal", "10 levels", "clusters"])
def test_sizes_in_short(kind):
    found = rejections(kind, 1000, 300)
    print(f"{kind}: {found}")
    for name in TESTS:
        assert within(found[name], 300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
@pytest.mark.parametrize("n", [1000, 4000])
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_and_coverage(kind, n):
    draws = 2000
    found = rejections(kind, n, draws)
    print(f"{kind}, n = {n}: {found}")
    for name in TESTS:
        assert within(found[name], draws), name
    assert 0.93 <= 1 - found["interval"] <= 0.99
    assert 0.93 <= 1 - found["band"] <= 0.98


@pytest.mark.slow
def test_the_band_covers_the_whole_curve_of_a_distorted_prediction():
    large = simulate_cate(400_000, random_state=10**6)
    for n in (1000, 4000):
        covered = []
        for seed in range(1000):
            data, loss = oracle_draw(n, seed)
            verdict = assess(1.3 * data.effect, loss, draws=300, random_state=seed)
            index = np.searchsorted(verdict.bins["upper"][:-1], 1.3 * large.effect)
            truth = np.bincount(index, -0.3 * large.effect) / np.bincount(index)
            reach = verdict.linf.band * verdict.bins["standard_error"]
            covered.append((np.abs(verdict.bins["residual"] - truth) <= reach).all())
        print(f"band, n = {n}: {np.mean(covered):.4f}")
        assert 0.93 <= np.mean(covered) <= 0.98


def test_power_of_the_joint_linear_test():
    # Cal^2 = 0.03: a shift of 0.1225 and a slope whose part is 0.148^2 * 0.826^2 = 0.015.
    rejected = []
    for seed in range(200):
        data, loss = oracle_draw(4000, seed, confounding=0.0)
        verdict = assess(0.1225 + 1.148 * data.effect, loss, draws=1)
        rejected.append(verdict.tests["linear"].p_value < 0.05)
    print(f"power at n = 4000: {np.mean(rejected):.3f}")
    assert np.mean(rejected) >= 0.95


@pytest.mark.slow
def test_size_and_power_of_the_three_tests():
    """Size at no error, and power at Cal^2 = 0.03 (shift and slope as above): the table of docs/verdict.md."""
    for n, draws in ((1000, 2000), (4000, 500)):
        found = {"size": [], "power": []}
        for seed in range(draws):
            data, loss = oracle_draw(n, seed, confounding=0.0)
            for name, prediction in (("size", data.effect), ("power", 0.1225 + 1.148 * data.effect)):
                tests = assess(prediction, loss, draws=1).tests
                found[name].append([tests[test].p_value < 0.05 for test in TESTS])
        size, power = (np.mean(found[name], axis=0) for name in ("size", "power"))
        print(f"n = {n}: size {size.round(4)}, power {power.round(3)} (linear, bins, range)")
        assert all(reaches(share, draws, 0.035, 0.065) for share in size)
        assert power[0] > power[1:].max()


def test_a_strong_distortion_is_called_improved():
    improved = []
    for seed in range(100):
        data, loss = oracle_draw(4000, seed)
        fresh, fresh_loss = oracle_draw(4000, 10**5 + seed)
        learnt = Isotonic().fit(1 + 2 * data.effect, loss)
        after = learnt.predict(1 + 2 * fresh.effect)
        improved.append(compare(1 + 2 * fresh.effect, after, fresh_loss).verdict == "improved")
    assert np.mean(improved) >= 0.99


@pytest.mark.slow
def test_sizes_with_estimated_nuisances():
    """Mild confounding: simulate_cate with confounding 0.5, default learners, n = 4000."""
    found = {name: [] for name in TESTS}
    for seed in range(150):
        data = simulate_cate(4000, random_state=seed)
        loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, random_state=seed)
        verdict = assess(data.effect, loss, draws=300, random_state=seed)
        for name in TESTS:
            found[name].append(verdict.tests[name].p_value < 0.05)
    sizes = {name: float(np.mean(values)) for name, values in found.items()}
    print(f"sizes with estimated nuisances: {sizes}")
    assert max(sizes.values()) < 0.12


def binary_trial(n, seed):
    """Covariates, a confounded treatment, a binary outcome, and the true effect on its probability."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    treatment = (rng.random(n) < expit(0.5 * X[:, 0])).astype(int)
    control = 0.7 * X[:, 0] + 0.5 * X[:, 1]
    treated = control + 0.5 + 0.6 * X[:, 2]
    y = (rng.random(n) < expit(np.where(treatment == 1, treated, control))).astype(float)
    return X, treatment, y, expit(treated) - expit(control)


@pytest.mark.slow
def test_sizes_with_binary_outcomes_and_estimated_nuisances():
    """Default learners, n = 1000: the bins test and the band are as good as with known nuisances."""
    found, draws = [], 150
    for seed in range(draws):
        X, treatment, y, effect = binary_trial(1000, seed)
        loss = orthogonal_loss("cate", X, y, treatment=treatment, random_state=seed)
        verdict = assess(effect, loss, draws=300, random_state=seed)
        beyond = np.abs(verdict.bins["residual"]) > verdict.linf.band * verdict.bins["standard_error"]
        found.append((verdict.tests["bins"].p_value < 0.05, beyond.any()))
    size, missed = np.mean(found, axis=0)
    print(f"binary outcomes, default learners, n = 1000: bins test {size:.4f}, band covers {1 - missed:.4f}")
    assert reaches(size, draws, 0.025, 0.065)
    assert reaches(1 - missed, draws, 0.935, 0.98)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_sizes_under_strong_skew_are_what_the_docs_say():
    sizes = {}
    for n in (1000, 4000):
        rng, rejected = np.random.default_rng(0), []
        for _ in range(1000):
            prediction = rng.standard_normal(n)
            noise = rng.lognormal(size=n) - np.exp(0.5)
            verdict = assess(prediction, QuadraticLoss(prediction + noise, np.ones(n)), draws=1)
            rejected.append([verdict.tests[name].p_value < 0.05 for name in TESTS])
        sizes[n] = dict(zip(TESTS, np.mean(rejected, axis=0).tolist(), strict=True))
    print(f"sizes under lognormal residuals: {sizes}")
    assert 0.1 < sizes[1000]["bins"] < 0.3
    assert sizes[4000]["bins"] < sizes[1000]["bins"]
