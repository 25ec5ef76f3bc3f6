"""Several arms on populations whose truth is known: size of the joint status, errors of every contrast, the winner's curse."""

import numpy as np
import pytest
from scipy.stats import binomtest

from orthocal import ArmScores, JointCalibrator
from orthocal.assessment.records import Settings
from orthocal.study.arms_assessment import assess_arms, contrasts_of, predicted_contrast

ARMS = (0, 1, 2)


def scores_of(truth, rng, noise, groups=None):
    values = np.column_stack([np.zeros(len(truth)), truth])
    values = values + noise * rng.standard_normal(values.shape)
    return ArmScores(arms=tuple(range(truth.shape[1] + 1)), values=values, weight=np.ones(len(truth)), groups=groups)


def distorted(truth):
    """Arm 1 exaggerated and shifted; arm 2 shrunk, and mixed with arm 1: all is known of the truth, nothing is calibrated."""
    return np.column_stack([0.3 + 1.8 * truth[:, 0], 0.4 * truth[:, 1] + 0.5 * truth[:, 0] - 0.2])


def errors_of(predictions, truth, arms=ARMS):
    """Root mean square distance of every predicted contrast from the true one, which the predictions determine."""
    return np.array(
        [
            np.sqrt(
                np.mean((predicted_contrast(predictions, arms, *pair) - predicted_contrast(truth, arms, *pair)) ** 2)
            )
            for pair in contrasts_of(arms)
        ]
    )


def fallen(n, draws, method="auto", noise=2.0):
    """By how much the error of every contrast falls, on average over draws."""
    after, before = [], []
    for draw in range(draws):
        rng = np.random.default_rng([draw, n, 5])
        truth, fresh = rng.standard_normal((n, 2)), rng.standard_normal((4000, 2))
        fitted = JointCalibrator(method).fit(distorted(truth), scores_of(truth, rng, noise))
        after.append(errors_of(fitted.predict(distorted(fresh)), fresh))
        before.append(errors_of(distorted(fresh), fresh))
    return 1 - np.mean(after, axis=0) / np.mean(before, axis=0)


def cursed(n, rng, arms=4):
    """Predictions that are each calibrated in themselves, while the largest of them promises too much."""
    shared = rng.standard_normal((n, 1))
    truth = 0.3 * shared + 0.1 * rng.standard_normal((n, arms))
    return truth, 0.5 * (truth + 0.3 * rng.standard_normal((n, arms)))


def promised_beyond_delivered(values, truth):
    winner, value = values.argmax(axis=1), values.max(axis=1)
    return np.mean(np.where(value > 0, value - truth[np.arange(len(truth)), winner], 0.0))


def gaps(n, draws):
    """Return, over draws: gap before, gap after, true squared errors without and with decision calibration."""
    found = []
    for draw in range(draws):
        rng = np.random.default_rng([draw, n, 6])
        truth, predictions = cursed(n, rng)
        scores = scores_of(truth, rng, 2.0)
        fresh, shown = cursed(20_000, rng)
        plain = JointCalibrator().fit(predictions, scores).predict(shown)
        decided = JointCalibrator(decisions=True).fit(predictions, scores).predict(shown)
        found.append(
            [
                promised_beyond_delivered(shown, fresh),
                promised_beyond_delivered(decided, fresh),
                np.mean((plain - fresh) ** 2),
                np.mean((decided - fresh) ** 2),
            ]
        )
    return np.mean(found, axis=0)


def rejected(n, draws, clusters=False):
    """How often all contrasts together are called miscalibrated, where none is."""
    count = 0
    for draw in range(draws):
        rng = np.random.default_rng([draw, n, 7])
        truth = rng.standard_normal((n, 2))
        groups = rng.integers(0, n // 10, n) if clusters else None
        verdict = assess_arms(truth, scores_of(truth, rng, 2.0, groups), Settings(draws=100, random_state=0))
        count += verdict.status == "miscalibrated"
    return count


def test_errors_fall_in_short():
    assert (fallen(4000, 3) > 0.5).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 4000])
def test_the_error_of_every_contrast_falls_by_half(n):
    found = fallen(n, 100)
    print(f"{n} rows: the errors of the contrasts fall by {np.round(found, 3)}")
    assert (found >= 0.5).all()


@pytest.mark.slow
def test_decision_calibration_lifts_the_winners_curse():
    before, after, plain, decided = gaps(10_000, 100)
    print(f"promised beyond delivered {before:.4f}, after {after:.4f}; true squared error {plain:.5f}, {decided:.5f}")
    assert after <= 0.2 * before
    assert decided <= 1.01 * plain


@pytest.mark.slow
@pytest.mark.parametrize(("n", "clusters"), [(1000, False), (4000, False), (1000, True)])
def test_the_joint_status_keeps_its_size(n, clusters):
    count = rejected(n, 1000, clusters)
    print(f"{n} rows{', clusters' * clusters}: {count / 1000:.3f} of right predictions are called miscalibrated")
    assert binomtest(count, 1000).proportion_ci(0.99).low <= 0.05
