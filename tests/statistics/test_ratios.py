"""Ratio effects with known truth: no number is infinite, tests have their size, errors their spread."""

import numpy as np
import pytest

from orthocal import QuadraticLoss, assess
from orthocal.assessment.bin_edges import cut
from orthocal.assessment.bin_table import shown_bins
from orthocal.assessment.bins import residual_moments
from orthocal.assessment.bins_test import bins_test
from orthocal.assessment.error import squared_error
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.range_test import range_test
from orthocal.assessment.ratios import against_all, mean_mass
from orthocal.assessment.sweeps import SortedRows, answer, answered
from orthocal.effects.late import arm_contrast
from tests.small_samples import CASES, infinite_numbers, known_nuisances, small_sample

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::orthocal.errors.SkewWarning", "ignore::orthocal.OverlapWarning"),
]


def sample(case, seed):
    """Twenty of 500 have learnt nuisances, the others known ones, which cost nothing."""
    return small_sample(case, seed, nuisances=None if seed % 25 == 0 else known_nuisances(case, seed))


@pytest.mark.parametrize("case", CASES)
def test_no_number_is_infinite_on_500_small_samples(case):
    judged = without_mass = 0
    for seed in range(500):
        drawn = sample(case, seed)
        if drawn is None:  # an arm with fewer rows than folds, refused with a sentence
            continue
        if drawn[1].mass.sum() <= 0:  # no compliers at all by the data: the effect is not defined
            assert case == "late, compliers"
            without_mass += 1
            continue
        assert infinite_numbers(assess(*drawn, draws=100, random_state=0)) == [], seed
        judged += 1
    print(f"{case}: {judged} of 500 judged, all finite; {without_mass} without any mass")
    assert judged > 450


def weak_instrument(n, compliers, rng):
    """LATE of compliers: an instrument that moves few, types that differ in their level, effect x on everybody."""
    x, z = rng.uniform(-1, 1, n), (rng.random(n) < 0.5).astype(int)
    kind = np.searchsorted([0.3, 0.3 + compliers], rng.random(n))  # always, complier, never
    treatment = np.where(kind == 0, 1, np.where(kind == 1, z, 0))
    level = np.array([1.0, 0.0, -1.0])
    y = level[kind] + treatment * x + rng.standard_normal(n)
    mean = float(np.array([0.3, compliers, 0.7 - compliers]) @ level)
    taken = {z: 0.3 + compliers * z for z in (0, 1)}
    psi_y = arm_contrast(y, z == 1, 0.5, mean + taken[1] * x, mean + taken[0] * x)
    psi_a = arm_contrast(treatment, z == 1, 0.5, taken[1], taken[0])
    return x, QuadraticLoss(psi_y, psi_a, is_ratio=True)


def p_values(prediction, loss, rng):
    """Of the three tests, without the rest of the verdict."""
    order = np.argsort(prediction)
    rows = SortedRows(prediction[order], loss[order])
    mass = answer(rows, mean_mass(rows))

    def bins():
        edges = yield from cut(10)
        moments = yield from against_all(residual_moments(rows, edges), mass)
        return (yield from against_all(bins_test(rows, moments), mass))[0]

    stages = {"linear": against_all(linear_test(rows, 0.95), mass), "bins": bins(), "range": range_test(rows, 100, rng)}
    found = answered(rows, stages)
    return [found["linear"][0].p_value, found["bins"].p_value, found["range"].p_value]


@pytest.mark.parametrize(("strength", "compliers"), [(12, 0.1), (47, 0.2)])
def test_sizes_with_weak_instruments(strength, compliers):
    rng, draws, strengths, found, refused = np.random.default_rng(strength), 2000, [], [], 0
    for draw in range(draws):
        prediction, loss = weak_instrument(1000, compliers, rng)
        strengths.append(
            (loss.mass.mean() / (loss.mass.std() / np.sqrt(1000))) ** 2 - 1
        )  # the mean of F exceeds it by 1
        if loss.mass.sum() <= 0:  # no compliers by the data: once in 2,000 at F = 11 the effect is not defined
            refused += 1
            continue
        found.append(p_values(prediction, loss, rng))
        if draw % 20 == 0:
            assert infinite_numbers(assess(prediction, loss, draws=50, random_state=0)) == []
    sizes = (np.array(found, dtype=float) < 0.05).mean(axis=0)
    words = ", ".join(f"{name} {size:.1%}" for name, size in zip(("linear", "bins", "range"), sizes, strict=True))
    print(f"F = {np.mean(strengths):.1f}: sizes {words}; {draws} draws, {refused} without any mass")
    assert np.mean(strengths) == pytest.approx(strength, rel=0.15)
    assert refused <= 5
    reach = 2.576 * np.sqrt(0.05 * 0.95 / draws)
    assert (sizes >= 0.03 - reach).all()
    assert (sizes <= 0.08 + reach).all()


@pytest.mark.parametrize("strength", [20, 47, 200])
def test_the_standard_error_of_the_squared_error_knows_the_noise_of_the_mean_mass(strength):
    n, q, gap, draws = 1000, 0.3, 2.0, 1000
    rng, found = np.random.default_rng(strength), []
    for _ in range(draws):
        prediction = np.sort(rng.uniform(-1, 1, n))
        noise, other = rng.standard_normal((2, n)) * q * np.sqrt(n / strength)
        mass = q + noise
        numerator = mass * prediction + q * gap + 0.5 * noise + np.sqrt(0.75) * other
        rows = SortedRows(prediction, QuadraticLoss(numerator, mass, np.ones(n), is_ratio=True))
        mean = answer(rows, mean_mass(rows))
        tested = answer(rows, against_all(residual_moments(rows, answer(rows, cut(10))), mean))
        sized = answer(rows, shown_bins(rows, tested, mean))[1]
        found.append([*squared_error(sized), squared_error(tested)[1]])
    estimate, error, without = np.array(found).T
    middle = np.subtract(*np.quantile(estimate, [0.84, 0.16])) / 2  # with weak masses a ratio has no moments
    ratio, too_small = np.median(error) / middle, np.median(without) / middle
    print(f"F = {strength}: SE / sd {ratio:.2f}, without the noise of the mean mass {too_small:.2f}")
    assert 0.85 < ratio < 1.15
    assert too_small < 0.8
