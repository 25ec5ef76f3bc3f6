"""The verdict's further parts against hand arithmetic, other formulas and brute force."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, norm
from scipy.stats import t as t_distribution

from orthocal import HingeLoss, OrthocalError, QuadraticLoss, SkewWarning, assess, compare
from orthocal.assessment import rate as rate_module
from orthocal.assessment.range_test import brownian_range_tail
from orthocal.assessment.sentences import story
from orthocal.assessment.status import rejections, status_of
from orthocal.assessment.subgroups import holm


def draw(n=400, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    effect = rng.standard_normal(n)
    return effect * slope, QuadraticLoss(effect + rng.standard_normal(n), np.ones(n))


def test_the_bins_test_sums_squared_normal_scores():
    prediction, loss = draw()
    verdict = assess(prediction, loss, bins=4)
    t = verdict.bins["residual"] / verdict.bins["standard_error"]
    z = norm.ppf(t_distribution.cdf(t, verdict.bins["n"] - 1))
    assert verdict.tests["bins"].statistic == pytest.approx((z**2).sum())
    assert verdict.tests["bins"].p_value == pytest.approx(chi2.sf((z**2).sum(), 4))


def test_the_range_test_by_hand():
    # Residuals 1, -2, 1, 3 in order of prediction: walk 0, 1, -1, 0, 3: range 4; noise from differences 3, 3, 2.
    prediction = np.array([0.3, 0.1, 0.4, 0.2])
    target = prediction + np.array([1.0, 1.0, 3.0, -2.0])
    test = assess(prediction, QuadraticLoss(target, np.ones(4)), bins=1, random_state=0).tests["range"]
    sigma = np.sqrt((9 + 9 + 4) / 2 * 4 / 3)
    assert test.statistic == pytest.approx(4 / sigma)
    assert "4 distinct predictions simulated" in test.note


def test_the_law_of_the_range_is_that_of_brownian_motion():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal((4000, 2000)) / np.sqrt(2000), axis=1)
    ranges = np.maximum(walk.max(1), 0) - np.minimum(walk.min(1), 0)
    for x in (1.0, 1.5, 2.0, 2.5):
        assert brownian_range_tail(x) == pytest.approx(np.mean(ranges > x), abs=0.03)
    assert brownian_range_tail(0.05) == 1


def test_the_range_test_falls_as_evidence_grows():
    """Down to 1e-300, where a series that converges slowly used to rise again; at large x the first term is all."""
    x = np.concatenate([np.linspace(0.3, 4, 400), np.geomspace(4.05, 36.9, 200)])
    tail = np.array([brownian_range_tail(one) for one in x])
    assert (np.diff(tail[tail < 1]) < 0).all()
    assert 1e-300 < tail[-1] < 1e-290
    np.testing.assert_allclose(tail[x > 6], 8 * norm.sf(x[x > 6]), rtol=1e-12)
    both = [brownian_range_tail(np.nextafter(2.0, end)) for end in (0, 3)]  # where the two series meet
    assert both[0] == pytest.approx(both[1], rel=1e-13)
    prediction, loss = draw(2000)
    p_values = [assess(prediction + shift, loss, draws=1).tests["range"].p_value for shift in (0.1, 0.3, 0.8, 1.0)]
    assert (np.diff(p_values) < 0).all()
    assert p_values[-1] < 1e-200


def test_the_linear_predictor_is_a_regression_of_the_pseudo_outcome():
    prediction, loss = draw(slope=1.5)
    found = assess(prediction, loss).linear_predictor
    slope, intercept = np.polyfit(prediction, loss.target, 1)
    assert found.intercept.value == pytest.approx(intercept)
    assert found.slope.value == pytest.approx(slope)
    residual = loss.target - intercept - slope * prediction
    centred = prediction - prediction.mean()
    hc0 = np.sqrt((centred**2 * residual**2).sum()) / (centred**2).sum()
    assert found.slope.standard_error == pytest.approx(hc0, rel=0.02)
    assert found.slope.interval[1] < 1


def test_rates_are_averages_of_the_gain_of_the_top():
    prediction, loss = draw(300)
    found = assess(prediction, loss).rate
    chi = loss.target[np.argsort(-prediction)]
    top = np.cumsum(chi) / np.arange(1, 301) - chi.mean()
    assert found.autoc.value == pytest.approx(top.mean(), abs=0.02)
    assert found.qini.value == pytest.approx((np.arange(1, 301) / 300 * top).mean(), abs=0.005)


def test_rates_do_not_change_under_a_monotone_map_and_vanish_for_a_constant():
    prediction, loss = draw(300)
    one, two = assess(prediction, loss).rate, assess(np.exp(prediction), loss).rate
    assert one == two
    assert assess(np.ones(300), loss).rate is None


def test_errors_of_rates_are_those_of_the_bootstrap():
    prediction, loss = draw(500)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(300):
        rows = rng.integers(0, 500, 500)
        rate = assess(prediction[rows], loss[rows], draws=1).rate
        draws.append([rate.autoc.value, rate.qini.value])
    found = assess(prediction, loss).rate
    wanted = np.std(draws, axis=0)
    assert [found.autoc.standard_error, found.qini.standard_error] == pytest.approx(wanted, rel=0.15)


def test_the_decomposition_adds_up_and_names_miscalibration():
    prediction, loss = draw(4000, slope=2.0)
    wrong, right = (assess(p, loss, random_state=0).decomposition for p in (prediction, prediction / 2))
    # Squared loss: half of (2 - 1)^2 Var = 0.5; the effect's variance is 1, the noise's 1.
    assert wrong.miscalibration == pytest.approx(0.5, abs=0.06)
    assert right.miscalibration == pytest.approx(0, abs=0.03)
    assert wrong.discrimination == pytest.approx(0.5, abs=0.06)
    assert wrong.uncertainty == pytest.approx(1.0, abs=0.06)
    mean_loss = 0.5 * np.mean((prediction - loss.target) ** 2)
    total = wrong.miscalibration - wrong.discrimination + wrong.uncertainty
    assert total == pytest.approx(mean_loss, rel=1e-12)


def test_mean_loss_and_uncertainty_leave_out_the_same_constant_where_a_mass_can_be_zero():
    loss = QuadraticLoss(np.arange(6.0), np.array([1.0, 0, 1, 1, 0, 1]), np.ones(6))
    verdict = assess(np.arange(6.0), loss, bins=1)
    parts = verdict.decomposition
    # 1/2 d v^2 - n v at v = n: -n^2 / 2 where d is 1, -n^2 where it is 0, of 0 to 5: -(4 + 9 + 25) / 2 - 1 - 16
    assert verdict.risk == pytest.approx(-36 / 6)
    assert parts.miscalibration - parts.discrimination + parts.uncertainty == pytest.approx(verdict.risk)


def test_decision_value_by_hand():
    # Predictions 0, 1, 2, 3; effects 1, -1, 4, 2; cost 1.5: treat rows 2 and 3, gains 2.5 and 0.5: 3 / 4 a row.
    loss = QuadraticLoss(np.array([1.0, -1, 4, 2]), np.ones(4))
    value = assess(np.arange(4.0), loss, bins=1, cost=1.5).value
    assert (value.value, value.share_treated) == pytest.approx((0.75, 0.5))
    assert value.treating_everyone == pytest.approx(6 / 4 - 1.5)
    assert value.standard_error == pytest.approx(np.std([0, 0, 2.5, 0.5], ddof=1) / 2)
    # After: 2, 1, 0, 3: row 0 is now treated (gain -0.5), row 2 no longer (loses 2.5): (-0.5 - 2.5) / 4
    decision = compare(np.arange(4.0), [2.0, 1, 0, 3], loss, cost=1.5).decision
    assert (decision.share_flipped, decision.gain) == pytest.approx((0.5, -0.75))


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_a_quantile_has_no_cost():
    loss = HingeLoss(np.arange(20.0), np.ones(20), np.full(20, 0.5))
    with pytest.raises(OrthocalError, match="`cost` must go with an effect that can be weighed"):
        assess(np.arange(20.0), loss, cost=1.0)
    verdict = assess(np.arange(20.0), loss, bins=2)
    assert verdict.rate is None
    assert verdict.curve is None
    assert (
        "share of outcomes below"
        in assess(np.full(200, 5.0), HingeLoss(np.arange(200.0), np.ones(200), np.full(200, 0.5))).verdict
    )


def test_groups_are_judged_apart_with_adjusted_p_values():
    prediction, loss = draw(2000)
    sex = np.where(np.arange(2000) % 2 == 0, "f", "m")
    biased = prediction + 0.5 * (sex == "m")
    verdict = assess(biased, loss, by={"sex": sex, "age": np.arange(2000.0)}, random_state=0)
    groups = {(g.column, g.value): g for g in verdict.subgroups}
    assert groups["sex", "m"].excess == pytest.approx(0.5, abs=0.1)
    assert groups["sex", "m"].p_value_adjusted < 1e-6
    assert groups["sex", "f"].p_value_adjusted > 0.01
    assert len(groups) == 6
    assert sum(g.rows for g in verdict.subgroups if g.column == "age") == 2000
    assert "sex = m" in verdict.verdict
    alone = assess(biased[sex == "m"], loss[np.flatnonzero(sex == "m")])
    assert groups["sex", "m"].error == pytest.approx(alone.error)
    assert groups["sex", "m"].p_value == pytest.approx(alone.tests["linear"].p_value)
    assert (
        "No miscalibration was detected in any of 2 subgroups"
        in assess(prediction, loss, by={"sex": sex}, random_state=0).verdict
    )


def test_small_groups_say_nothing_and_many_levels_are_refused():
    prediction, loss = draw(100)
    verdict = assess(prediction, loss, by={"rare": np.arange(100) < 5})
    assert verdict.subgroups[1].error is None
    assert "none" in verdict.summary()
    with pytest.raises(OrthocalError, match="at most 12 values; it has 100"):
        assess(prediction, loss, by={"name": [f"p{i}" for i in range(100)]})
    with pytest.raises(OrthocalError, match="one value per row"):
        assess(prediction, loss, by={"short": [1, 2]})


def test_holm_by_hand():
    # Sorted .01 .02 .04: times 3, 2, 1 gives .03 .04 .04
    np.testing.assert_allclose(holm(np.array([0.02, 0.01, 0.04])), [0.04, 0.03, 0.04])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])


def test_skewed_residuals_are_warned_of():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(1000)
    with pytest.warns(SkewWarning, match="strongly skewed"):
        assess(prediction, QuadraticLoss(prediction + rng.lognormal(size=1000) - np.exp(0.5), np.ones(1000)))
    assess(prediction, QuadraticLoss(prediction + rng.standard_t(3, 1000), np.ones(1000)))  # heavy, not skewed


def test_tests_that_do_not_apply_say_so():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(60)
    few = QuadraticLoss(rng.standard_normal(60), np.ones(60), groups=np.arange(60) % 6)
    assert "6 clusters are too few for 10 bins" in assess(prediction, few).tests["bins"].note
    exact = assess(np.arange(6.0), QuadraticLoss(np.arange(6.0) + 1, np.ones(6)), bins=2)
    assert exact.tests["bins"].p_value is None
    assert exact.tests["range"].p_value is None


@pytest.mark.parametrize("levels", [30, 2000])
def test_clusters_enter_the_range_test_by_a_wild_bootstrap(levels):
    rng = np.random.default_rng(0)
    groups = np.arange(2000) // 40
    prediction = np.round(rng.random(2000) * levels) / levels
    shock = rng.standard_normal(50)[groups]
    loss = QuadraticLoss(prediction + shock + 0.1 * rng.standard_normal(2000), np.ones(2000), groups=groups)
    test = assess(prediction, loss, random_state=0).tests["range"]
    assert "wild bootstrap" in test.note
    assert test.p_value > 0.01
    assert assess(prediction + 1, loss, random_state=0).tests["range"].p_value < 0.01


def test_hidden_bias_that_would_overturn_the_verdict():
    prediction, loss = draw(4000)
    wrong, right = assess(prediction + 0.5, loss), assess(prediction, loss)
    assert wrong.sensitivity.bias == wrong.interval[0]
    assert "could explain all of this error" in wrong.summary()
    assert right.sensitivity.bias == right.interval[1]
    # A bias of that size, built in, does overturn it.
    shifted = QuadraticLoss(loss.numerator + wrong.sensitivity.bias, np.ones(4000))
    assert assess(prediction + 0.5, shifted).error < wrong.error - 0.9 * wrong.sensitivity.bias


def test_the_verdict_names_where_and_the_story_what_changed():
    prediction, loss = draw(4000, slope=1.6)
    before, after = (assess(p, loss, random_state=0) for p in (prediction, prediction / 1.6))
    assert "Those above " in before.verdict
    assert "are too high by" in before.verdict
    assert "are too low by" in before.verdict
    text = story(before, after, compare(prediction, prediction / 1.6, loss, cost=0.2))
    assert text.startswith("Calibration: improved. On rows the map never saw the error falls from 0.5")
    assert "it changes the decision for" in text


def test_the_curve_rises_and_lies_in_its_band():
    prediction, loss = draw(600)
    curve = assess(prediction, loss, random_state=0).curve
    assert (np.diff(curve.target) >= 0).all()
    assert (curve.lower <= curve.target).all()
    assert (curve.upper >= curve.target).all()
    assert (np.diff(curve.lower) >= 0).all()


def test_small_bins_widen_the_band_as_in_a_t_law():
    prediction, loss = draw(60)
    few, many = assess(prediction, loss, random_state=0).linf.band, assess(*draw(20_000), random_state=0).linf.band
    # Largest of ten: about 2.8 for normal bins, more than 4.5 for t with five degrees of freedom.
    assert many == pytest.approx(2.8, abs=0.15)
    assert few > 4


def test_the_bins_test_of_clusters_is_that_of_flipped_signs():
    rng = np.random.default_rng(0)
    size = np.ceil(np.exp(1.2 * rng.standard_normal(30))).astype(int)  # 1 to 20 rows
    groups = np.repeat(np.arange(30), size)
    prediction = rng.standard_normal(len(groups))
    shock = 1.2 * rng.standard_normal(30)[groups]
    loss = QuadraticLoss(prediction + shock + rng.standard_normal(len(groups)), np.ones(len(groups)), groups=groups)
    test = assess(prediction, loss, bins=3).tests["bins"]
    index = np.searchsorted(np.quantile(prediction, [1 / 3, 2 / 3]), prediction)
    sums = np.zeros((30, 3))
    np.add.at(sums, (groups, index), -loss.derivative(prediction))
    inverse = np.linalg.inv(sums.T @ sums)
    flipped = rng.choice([-1.0, 1.0], (20_000, 30)) @ sums
    beyond = np.einsum("di,ij,dj->d", flipped, inverse, flipped)
    assert test.statistic == pytest.approx(sums.sum(0) @ inverse @ sums.sum(0))
    assert test.p_value == pytest.approx(np.mean(beyond >= test.statistic), abs=0.02)
    assert 0.05 < test.p_value < 0.95
    assert "effective number of clusters" in test.note


def test_small_bins_between_ties_are_joined():
    # An equal bin of ten has 100 rows, so fewer than 25 are not judged by themselves.
    for size, wanted in (((195, 5, 800), (195, 805)), ((175, 25, 800), (175, 25, 800)), ((480, 505, 15), (480, 520))):
        prediction = np.repeat(np.arange(3.0), size)
        loss = QuadraticLoss(prediction + np.random.default_rng(0).standard_normal(1000), np.ones(1000))
        np.testing.assert_array_equal(assess(prediction, loss, draws=1).bins["n"], wanted)


def test_the_verdict_uses_the_bins_test():
    # Two narrow bins among wide ones are far off: linear, range and the interval of the error see the noise of the wide.
    rng = np.random.default_rng(0)
    prediction = np.arange(2000.0)
    noise = np.where(np.abs(prediction - 1000) < 200, 0.02, 5.0) * rng.standard_normal(2000)
    wiggle = 0.02 * np.sign(prediction - 1000) * (np.abs(prediction - 1000) < 200)
    verdict = assess(prediction, QuadraticLoss(prediction + wiggle + noise, np.ones(2000)), random_state=0)
    assert verdict.interval[0] == 0
    assert verdict.tests["linear"].p_value > 0.01
    assert verdict.tests["range"].p_value > 0.01
    assert verdict.verdict.startswith("The predictions are calibrated in practice: an error was detected")
    strict = replace(verdict, tolerance=0.5)
    assert status_of(vars(strict)) == "miscalibrated"
    assert rejections(vars(strict)).keys() == {"bins"}


def test_a_walk_that_never_leaves_its_place_is_no_evidence():
    """Two rows of each of 600 predictions, one as much above it as the other is below."""
    prediction = np.repeat(np.arange(600.0), 2)
    loss = QuadraticLoss(prediction + np.tile([1.0, -1.0], 600), np.ones(1200))
    found = assess(prediction, loss, draws=10, random_state=0).tests["range"]
    assert (found.statistic, found.p_value) == (0.0, 1.0)


def test_narrow_blocks_of_the_ranking_weigh_as_their_middles():
    """Where blocks are narrow the series is used for all of them at once; beside a wide block the same numbers come out."""
    shares = np.linspace(0.9, 0.1, 2_000_001)  # widths of 4e-7, below a hundred-thousandth of every share
    bottom, top = shares[:-1], shares[1:]
    narrow = rate_module._autoc_weights(top, bottom)
    beside = rate_module._autoc_weights(np.append(top, 0.05), np.append(bottom, 0.1))
    exact = (top * np.log(top) - bottom * np.log(bottom)) / (bottom - top)
    np.testing.assert_allclose(narrow.weight, exact, atol=1e-9)
    np.testing.assert_allclose(narrow.weight, beside.weight[:-1], atol=1e-10)
    np.testing.assert_allclose(narrow.pull, np.asarray(beside.pull)[:-1], rtol=1e-9)
    np.testing.assert_allclose(narrow.by_top, np.asarray(beside.by_top)[:-1], rtol=1e-5)


def test_weights_of_the_ranking_have_the_derivatives_they_say():
    """By differences, of wide blocks: both ends move together, the top alone, or both grow in proportion."""
    top, bottom, h = np.array([0.3, 0.1]), np.array([0.6, 0.3]), 1e-6
    for measure in rate_module.MEASURES:
        weight, pull, by_top, lean = measure(top, bottom)
        np.testing.assert_allclose((measure(top + h, bottom + h).weight - weight) / h, pull, rtol=1e-4)
        np.testing.assert_allclose((measure(top + h, bottom).weight - weight) / h, by_top, rtol=1e-4)
        np.testing.assert_allclose((measure(top * (1 + h), bottom * (1 + h)).weight - weight) / h, lean, rtol=1e-4)
