import itertools
import json

import numpy as np
import pytest
from scipy.stats import f as f_law
from scipy.stats import ncx2

from orthocal import OrthocalError, QuadraticLoss, assess, compare
from orthocal.assessment.bins import cut, residual_moments
from orthocal.assessment.error import error_interval, quadratic_form, squared_error


def binned(prediction, loss, bins=10):
    return residual_moments(prediction, loss, *cut(prediction, loss, bins))


def twelve_rows():
    """Two bins of six: predictions 0 and 1; residuals by hand below."""
    prediction = np.repeat([0.0, 1.0], 6)
    target = np.array([1.0, 2, 3, 0, 1, 5, 0, 2, 1, 1, 0, 2])
    return prediction, QuadraticLoss(target, np.ones(12))


def test_twelve_rows_by_hand():
    # Bin 0: r = 1 2 3 0 1 5, sum 12, mean 2, sum of squares 40, s^2 = (40 - 6*4)/5 = 3.2, v = 3.2/6 = 0.53333
    # Bin 1: r = -1 1 0 0 -1 1, sum 0, mean 0, sum of squares 4, s^2 = 4/5 = 0.8, v = 0.13333
    # U_0 = 4 - 0.53333 = 3.46667, U_1 = -0.13333; error^2 = (3.46667 - 0.13333)/2 = 1.66667
    # V_deg = (1/4)(2*3.2^2/30 + 2*0.8^2/30) = (0.682667 + 0.042667)/4 = 0.181333 (ddof form)
    # V_lin = (1/4) 4 (3.46667*0.53333 - 0.13333*0.13333) + (1/12)(1/2)((1.8)^2 + (1.8)^2) = 1.831111 + 0.27
    prediction, loss = twelve_rows()
    verdict = assess(prediction, loss)
    assert verdict.error_squared == pytest.approx(5 / 3)
    assert verdict.error == pytest.approx(np.sqrt(5 / 3))
    degenerate = (2 * 0.53333333**2 + 2 * 0.13333333**2) / 4  # v^2 in place of s^4/(n(n-1)), as the general form has it
    assert verdict.standard_error**2 == pytest.approx(degenerate + 1.8311111 + 0.27, rel=1e-6)
    np.testing.assert_allclose(verdict.bins["residual"], [2, 0], atol=1e-15)
    np.testing.assert_allclose(verdict.bins["standard_error"] ** 2, [3.2 / 6, 0.8 / 6])
    np.testing.assert_allclose(verdict.bins["target"], [2, 1])
    np.testing.assert_allclose(verdict.bins["prediction"], [0, 1])
    np.testing.assert_array_equal(verdict.bins["n"], [6, 6])
    # Average: mean target 18/12 = 1.5, mean prediction 0.5
    assert verdict.average.effect == pytest.approx(1.5)
    assert verdict.average.prediction == pytest.approx(0.5)
    # L1 at no error: mean of se * sqrt(2/pi)
    assert verdict.l1.null == pytest.approx(np.sqrt([3.2 / 6, 0.8 / 6]).mean() * np.sqrt(2 / np.pi))
    assert verdict.linf.value == pytest.approx(2)
    # Mean loss: 1/2 v^2 - chi v = 0 in bin 0; in bin 1 it is 1/2 - chi with mean chi 1.
    assert verdict.risk == pytest.approx((0 * 6 + (0.5 - 1) * 6) / 12)


def test_the_squared_error_is_the_average_over_pairs_of_different_rows():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(60)
    weight = rng.uniform(0.5, 2, 60)
    loss = QuadraticLoss(weight * (prediction + 0.3 + rng.standard_normal(60)), weight)
    edges, index = cut(prediction, loss, 4)
    r, total = -loss.derivative(prediction), 0.0
    for b in range(len(edges) + 1):
        rows = np.flatnonzero(index == b)
        pairs = list(itertools.permutations(rows, 2))
        mean = sum(r[i] * r[j] for i, j in pairs) / sum(weight[i] * weight[j] for i, j in pairs)
        total += weight[rows].sum() / weight.sum() * mean
    assert assess(prediction, loss, bins=4).error_squared == pytest.approx(total)


def test_clusters_enter_as_sums():
    rng = np.random.default_rng(0)
    prediction, groups = rng.standard_normal(60), np.arange(60) // 3
    loss = QuadraticLoss(prediction + rng.standard_normal(60), np.ones(60), groups=groups)
    edges, index = cut(prediction, loss, 3)
    moments = residual_moments(prediction, loss, edges, index)
    r = -loss.derivative(prediction)
    table = np.zeros((20, 3))
    size = np.zeros((20, 3))
    np.add.at(table, (groups, index), r)
    np.add.at(size, (groups, index), 1)
    mean = table.sum(0) / size.sum(0)
    np.testing.assert_allclose(moments.residual, mean)
    number = (size > 0).sum(0)
    scaled = (table - mean * size) * np.sqrt(number / (number - 1)) / size.sum(0)
    np.testing.assert_allclose(moments.covariance, scaled.T @ scaled)
    assert moments.clusters == 20
    estimate, error = squared_error(moments)
    assert np.isfinite([estimate, error]).all()


def test_clusters_of_one_row_equal_no_clusters():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(200)
    target = prediction + rng.standard_normal(200)
    plain = assess(prediction, QuadraticLoss(target, np.ones(200)), random_state=0)
    single = assess(prediction, QuadraticLoss(target, np.ones(200), groups=rng.permutation(200)), random_state=0)
    assert plain.error_squared == pytest.approx(single.error_squared)
    assert plain.standard_error == pytest.approx(single.standard_error)
    assert plain.interval == pytest.approx(single.interval)
    assert plain.tests["linear"].p_value == pytest.approx(single.tests["linear"].p_value)


def test_the_interval_inverts_the_noncentral_chi_square():
    prediction, loss = twelve_rows()
    moments = binned(prediction, loss)
    statistic, scale, freedom = quadratic_form(moments)
    # Hand: w = 1/2 each, v = .53333, .13333: g = sum w^2 v^2 / sum w v, k = (sum w v)^2 / sum w^2 v^2
    wv = np.array([0.5 * 3.2 / 6, 0.5 * 0.8 / 6])
    assert (statistic, scale, freedom) == pytest.approx((2, (wv**2).sum() / wv.sum(), wv.sum() ** 2 / (wv**2).sum()))
    low, high = error_interval(moments, 0.9)
    assert ncx2.cdf(statistic / scale, freedom, high**2 / scale) == pytest.approx(0.05, abs=1e-8)
    assert ncx2.cdf(statistic / scale, freedom, low**2 / scale) == pytest.approx(0.95, abs=1e-8)


def test_the_interval_starts_at_zero_when_the_error_may_be_zero():
    rng = np.random.default_rng(5)
    prediction = rng.standard_normal(500)
    verdict = assess(prediction, QuadraticLoss(prediction + rng.standard_normal(500), np.ones(500)))
    assert verdict.interval[0] == 0
    assert "No miscalibration was detected" in verdict.verdict


def test_a_large_error_in_large_data_has_a_tight_interval():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(200_000)
    verdict = assess(prediction + 50, QuadraticLoss(prediction + rng.standard_normal(200_000), np.ones(200_000)))
    assert verdict.interval[0] < 50 < verdict.interval[1]
    assert verdict.interval[1] - verdict.interval[0] < 0.02


def test_the_linear_test_is_hc3_with_an_f_law():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(40)
    target = 0.5 + 1.4 * prediction + rng.standard_normal(40)
    design = np.column_stack([np.ones(40), prediction])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ target
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residual = (target - design @ beta) / (1 - leverage)
    covariance = inverse @ (design * residual[:, None] ** 2).T @ design @ inverse * 39 / 40
    gap = beta - [0, 1]
    # The jackknife centres at the full estimate, as HC3 does; 39/40 is its usual factor.
    statistic = gap @ np.linalg.solve(covariance, gap) / 2
    test = assess(prediction, QuadraticLoss(target, np.ones(40))).tests["linear"]
    assert test.statistic == pytest.approx(statistic)
    assert test.p_value == pytest.approx(f_law.sf(statistic, 2, 39))


@pytest.mark.parametrize("levels", [1, 2, 3, 7, 20])
def test_ties_never_count_a_row_twice(levels):
    rng = np.random.default_rng(0)
    prediction = rng.integers(0, levels, 1000).astype(float)
    verdict = assess(prediction, QuadraticLoss(prediction + rng.standard_normal(1000), np.ones(1000)))
    assert verdict.bins["n"].sum() == 1000
    assert verdict.bins["mass"].sum() == pytest.approx(1000)
    assert len(verdict.bins["n"]) <= min(levels, 10)
    edges = verdict.bins["upper"][:-1]
    assert len(np.unique(edges)) == len(edges)


def test_a_constant_prediction_is_judged_by_its_mean_and_the_test_says_so():
    rng = np.random.default_rng(0)
    verdict = assess(np.full(300, 2.0), QuadraticLoss(rng.normal(1, 1, 300), np.ones(300)))
    assert len(verdict.bins["n"]) == 1
    assert verdict.error == pytest.approx(1, abs=0.2)
    assert "the prediction is constant" in verdict.tests["linear"].note
    assert verdict.tests["linear"].p_value < 1e-6
    assert "too high" in verdict.verdict


def test_bins_of_a_single_row_join_a_neighbour():
    weight = np.array([100.0, 1, 1, 1, 1, 100.0])
    prediction = np.arange(6.0)
    verdict = assess(prediction, QuadraticLoss(weight * prediction, weight), bins=3)
    assert (verdict.bins["n"] >= 2).all()
    assert verdict.bins["n"].sum() == 6


def test_no_noise_needs_no_interval():
    prediction = np.arange(6.0)
    verdict = assess(prediction, QuadraticLoss(prediction + 1, np.ones(6)), bins=2)
    assert verdict.error == pytest.approx(1)
    assert verdict.interval == pytest.approx((1, 1))
    assert verdict.tests["linear"].p_value is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bins": 0}, "`bins` must be at least 1"),
        ({"level": 1.0}, "`level` must lie strictly between 0 and 1"),
        ({"draws": 0}, "`draws` must be at least 1"),
    ],
)
def test_settings_are_checked(arguments, message):
    with pytest.raises(OrthocalError, match=message):
        assess(*twelve_rows(), **arguments)


def test_too_little_to_judge_is_an_error():
    with pytest.raises(OrthocalError, match="at least two rows"):
        assess([1.0], QuadraticLoss(np.ones(1), np.ones(1)))
    with pytest.raises(OrthocalError, match="`prediction` must have one value per row"):
        assess([1.0], QuadraticLoss(np.ones(3), np.ones(3)))
    with pytest.raises(OrthocalError, match="Every bin must have positive mass"):
        assess(np.arange(6.0), QuadraticLoss(np.ones(6), np.array([-1.0, -1, -1, 4, 4, 4])), bins=2)


def test_several_predictions_get_a_verdict_each_and_numbers_become_json():
    prediction, loss = twelve_rows()
    verdicts = assess({"a": prediction, "b": prediction + 1}, loss)
    assert set(verdicts) == {"a", "b"}
    record = json.loads(json.dumps(verdicts["a"].to_dict()))
    assert record["bins"]["n"] == [6, 6]
    assert record["tests"]["linear"]["note"] == "intercept 0 and slope 1"
    assert "predictions" not in record
    assert "calibration error" in verdicts["a"].summary()


def test_compare_by_hand():
    # chi = 1, 3; before 0, after 1: loss difference (1/2 - 1), (1/2 - 3): mean -1.5, sd sqrt(2), se 1
    comparison = compare([0, 0], [1, 1], QuadraticLoss(np.array([1.0, 3.0]), np.ones(2)))
    assert comparison.risk_difference == pytest.approx(-1.5)
    assert comparison.standard_error == pytest.approx(1)
    assert comparison.interval == pytest.approx((-1.5 - 1.959964, -1.5 + 1.959964), rel=1e-5)
    assert comparison.p_value_harm == pytest.approx(0.9331928)
    assert comparison.verdict == "no detectable change"
    assert json.dumps(comparison.to_dict())


def test_compare_names_good_and_harm_and_nothing():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(2000)
    loss = QuadraticLoss(truth + rng.standard_normal(2000), np.ones(2000), groups=np.arange(2000) // 2)
    assert compare(truth + 1, truth, loss).verdict == "improved"
    assert compare(truth, truth + 1, loss).verdict == "harmed"
    assert compare(truth, truth + 1, loss).p_value_harm < 1e-6
    same = compare(truth, truth, loss)
    assert (same.verdict, same.p_value_harm, same.interval) == ("no detectable change", 1.0, (0.0, 0.0))
