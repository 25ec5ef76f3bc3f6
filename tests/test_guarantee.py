"""The guarantee of three-way binning: what it must know, what it counts, and that it holds."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CausalCalibrator, Histogram, OrthocalError
from orthocal.calibration.guarantee import deviation_bound
from orthocal.datasets import simulate_cate

LEARNERS = {"propensity": LogisticRegression(), "outcome": LinearRegression()}


def fitted(data, y, effect="cate", learners=LEARNERS, **columns):
    calibrator = CausalCalibrator(effect, Histogram(bins=5), scheme="three-way", learners=learners, random_state=0)
    return calibrator.fit(data.X, y, treatment=data.treatment, prediction=data.effect, **columns)


@pytest.fixture(scope="module")
def data():
    return simulate_cate(3000, random_state=0)


@pytest.fixture(scope="module")
def binary(data):
    return (data.y > 0).astype(float)


def test_an_observed_range_is_no_bound(data, binary):
    calibrator = fitted(data, data.y)
    with pytest.raises(OrthocalError, match="must know the range that the outcome cannot leave; outcomes from"):
        calibrator.guarantee()
    for wrong in ((0, 1), (-np.inf, np.inf), (50, -50)):
        with pytest.raises(OrthocalError, match="`outcome_range` must be two finite numbers around every outcome"):
            calibrator.guarantee(outcome_range=wrong)
    wide, narrow = (calibrator.guarantee(outcome_range=(-end, end)).bound for end in (40, 20))
    assert wide == pytest.approx(2 * narrow, rel=0.05)
    assert fitted(data, binary).guarantee().bound == fitted(data, binary).guarantee(outcome_range=(0, 1)).bound


def test_the_bound_is_hoeffdings(data, binary):
    # Known propensity 1/2 and outcome models 1/2: chi = 2 (y - 1/2) or -2 (y - 1/2), in [-1, 1]: a width of 2, as the effect's.
    known = {"propensity": 0.5, "outcome_control": 0.5, "outcome_treated": 0.5}
    calibrator = fitted(data, binary, nuisances=known)
    promise = calibrator.guarantee(delta=0.1)
    count = np.bincount(np.searchsorted(calibrator.map_.edges, data.effect[calibrator.rows_]))
    assert promise.smallest_bin == pytest.approx(count.min())
    assert promise.bound == pytest.approx((2 + 2) * np.sqrt(np.log(4 * 5 / 0.1) / (2 * count.min())))
    assert promise.probability == 0.9
    assert not promise.is_vacuous
    assert "against 1 without data" in promise.text
    assert calibrator.guarantee(delta=0.5).bound < promise.bound


def test_a_bound_that_says_nothing_says_so():
    few = simulate_cate(300, random_state=0)
    promise = fitted(few, few.y).guarantee(outcome_range=(-20, 20))
    assert promise.is_vacuous
    assert "is vacuous" in promise.text


def test_weights_count_by_kish_and_clusters_as_one(data, binary):
    known = {"propensity": 0.5, "outcome_control": 0.5, "outcome_treated": 0.5}
    weight = np.where(np.arange(3000) % 10 == 0, 10.0, 1.0)
    weighted = fitted(data, binary, nuisances=known, sample_weight=weight).guarantee()
    # Nine rows of weight 1 and one of weight 10: (19)^2 / 109 rows in ten.
    assert weighted.smallest_bin == pytest.approx(200 * 19**2 / 1090, rel=0.25)
    groups = np.arange(3000) // 100
    calibrator = fitted(data, binary, nuisances=known, groups=groups)
    clusters = calibrator.guarantee()
    assert 8 < clusters.smallest_bin <= len(np.unique(groups[calibrator.rows_])) < 15
    assert clusters.bound > fitted(data, binary, nuisances=known).guarantee().bound


@pytest.mark.parametrize("effect", ["overlap", "catt", "quantile", "expectile"])
def test_effects_without_a_guarantee(data, binary, effect):
    learners = {"propensity": LogisticRegression()}
    with pytest.raises(OrthocalError, match="no guarantee for .*: the range of the outcome does not bound its score"):
        fitted(data, binary, effect, learners).guarantee()


def test_the_tail_mean_has_a_guarantee(data):
    known = {"propensity": 0.5, "tail_quantile": 0.0, "tail_mean": 0.0}
    promise = fitted(data, np.clip(data.y, -9, 9), "cvar", nuisances=known).guarantee(outcome_range=(-10, 10))
    # chi = 0 or 2 H, H = y_+ / 0.1 in [0, 100]: width 200; the effect's 20.
    expected = (200 + 20) * np.sqrt(np.log(4 * 5 / 0.05) / (2 * promise.smallest_bin))
    assert promise.bound == pytest.approx(expected)


def test_other_schemes_have_none(data):
    calibrator = CausalCalibrator(method="linear", learners=LEARNERS, random_state=0)
    calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=data.effect)
    with pytest.raises(OrthocalError, match="`guarantee` must have scheme='three-way'"):
        calibrator.guarantee()


DRAWS, DELTA = 1000, 0.05


def violated(means, bound):
    return float(np.mean(np.abs(means) > bound))


def test_rare_large_outcomes_violate_an_observed_range_and_not_a_true_one():
    # Of 100 rows in the bin none or one is 100, in 37% of samples none: their observed range is that of the noise.
    rng = np.random.default_rng(0)
    outcome = 100.0 * (rng.random((DRAWS, 100)) < 0.01) + rng.uniform(-0.5, 0.5, (DRAWS, 100))
    off, bins = outcome.mean(axis=1) - 1.0, np.zeros(100, dtype=int)
    observed = [deviation_bound(np.full(100, np.ptp(y)), 0.0, np.ones(100), bins, None, DELTA)[0] for y in outcome]
    assert violated(off, np.array(observed)) > 0.3
    known = deviation_bound(np.full(100, 101.0), 0.0, np.ones(100), bins, None, DELTA)[0]
    assert violated(off, known) <= DELTA


def test_clusters_violate_a_count_of_rows_and_not_of_clusters():
    rng = np.random.default_rng(0)
    groups = np.arange(300) // 30
    means = rng.choice([-1.0, 1.0], (DRAWS, 10)).mean(axis=1)  # what the ten clusters share, at its worst
    rows, clusters = (
        deviation_bound(np.zeros(300), 2.0, np.ones(300), np.zeros(300, dtype=int), one, DELTA)[0]
        for one in (None, groups)
    )
    assert violated(means, rows) > 0.3
    assert violated(means, clusters) <= DELTA


def test_weights_violate_a_count_of_rows_and_not_kishs():
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(300) < 5, 100.0, 1.0)
    means = rng.choice([-1.0, 1.0], (DRAWS, 300)) @ weight / weight.sum()
    rows, kish = (
        deviation_bound(np.zeros(300), 2.0, one, np.zeros(300, dtype=int), None, DELTA)[0]
        for one in (np.ones(300), weight)
    )
    assert violated(means, rows) > 0.3
    assert violated(means, kish) <= DELTA
