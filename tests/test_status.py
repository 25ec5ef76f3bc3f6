"""Status, ranking and recommendation where it is hard, and sentences that never contradict."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from orthocal import Constant, HingeLoss, QuadraticLoss, Study, assess, compare
from orthocal.assessment.sentences import story
from orthocal.formats import estimate, off_by, whole
from orthocal.study.recommendation import gain_that_matters

NEVER = re.compile(
    r"(high|low|gaining|losing) (by )?-|from 0 to 0\b|does not fall|\(1 bins\)|On average they are right|\bnan\b|\binf\b|e-1[3-9]"
)
"""What no sentence may say."""


def draw(n=2000, truth=lambda t: t, noise=1.0, seed=0):
    """Predictions that are standard normal, and a loss whose effects are a function of them."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(n)
    return t, QuadraticLoss(truth(t) + noise * rng.standard_normal(n), np.ones(n))


def study(n=4000, truth=lambda t: t, shown=lambda t: t, noise=1.0, seed=0, **roles):
    """A study of a randomised experiment in which people differ by `t` alone."""
    rng = np.random.default_rng(seed)
    t, a = rng.standard_normal(n), rng.integers(0, 2, n)
    y = truth(t) * (a - 0.5) + noise * rng.standard_normal(n)
    table = pd.DataFrame({"t": t, "a": a, "y": y, "tau": shown(t), "sex": rng.integers(0, 2, n)})
    return Study(table, outcome="y", treatment="a", covariates=[], propensity=0.5, **roles)


def test_a_perfect_prediction_is_calibrated_and_used():
    done = study(8000).calibrate("tau")
    assert (done.before.status, done.before.ranking) == ("calibrated", "ranks")
    assert done.recommendation.action == "use the prediction"
    assert done.map is done.verified_map


def test_a_prediction_that_exaggerates_is_calibrated_and_then_used():
    done = study(shown=lambda t: 2 * t).calibrate("tau")
    assert (done.before.status, done.after.status) == ("miscalibrated", "calibrated")
    assert done.recommendation.action == "use the calibrated prediction"
    assert "It beats the average effect for everyone" in done.recommendation.reasons[1]


def test_a_prediction_no_better_than_the_average_gives_way_to_it():
    done = study(truth=lambda t: 1 + 0 * t).calibrate("tau")
    assert done.recommendation.action == "use the average effect"
    assert done.before.ranking == "no evidence that it ranks"


def test_a_ranking_that_is_reversed_is_not_used():
    done = study(truth=lambda t: -t).calibrate("tau")
    assert done.before.ranking == "ranks backwards"
    assert done.recommendation.action == "do not use it"
    assert [check.name for check in done.checks if check.result == "failed"] == ["ranking"]


def test_too_few_rows_for_the_effect_are_inconclusive_and_say_how_many_would_do():
    done = study(300, truth=lambda t: 0.3 * t, shown=lambda t: 0.3 * t, noise=2.0).calibrate("tau")
    assert done.before.minimum_detectable_error > 0.3
    assert done.before.status == "inconclusive"
    assert done.recommendation.action == "collect more data"
    assert done.recommendation.rows_needed > 3000
    assert f"About {whole(done.recommendation.rows_needed)} rows in all" in str(done.recommendation)


def test_subgroups_that_are_off_while_the_whole_is_on():
    t, loss = draw(4000)
    sex = np.where(np.random.default_rng(1).random(4000) < 0.5, "f", "m")
    apart = QuadraticLoss(loss.numerator + np.where(sex == "f", 0.8, -0.8), np.ones(4000))
    verdict = assess(t, apart, by={"sex": sex}, random_state=0)
    assert verdict.interval[0] == 0
    assert verdict.status == "miscalibrated"
    assert verdict.verdict.startswith("The predictions are miscalibrated in 2 of 2 subgroups (sex = f, sex = m).")
    assert assess(t, apart, random_state=0).status == "calibrated"
    lenient = assess(t, apart, by={"sex": sex}, tolerance=10.0, random_state=0)
    assert lenient.status == "calibrated"
    assert lenient.verdict.endswith(
        "In 2 of 2 subgroups (sex = f, sex = m) an error was detected, within the tolerance."
    )


def test_one_number_for_everyone_has_no_bins_slope_ranking_or_curve():
    t, loss = draw()
    for prediction in (np.full(2000, 0.3), 0.3 + 1e-12 * t):
        verdict = assess(prediction, loss, cost=0.1, random_state=0)
        assert verdict.is_constant
        assert (verdict.rate, verdict.ranking, verdict.linear_predictor, verdict.curve) == (None,) * 4
        assert len(verdict.bins["n"]) == 1
        text = verdict.summary()
        for word in ("slope", "AUTOC", " bins", "bins test", "range test", "largest in a bin"):
            assert word not in text
        assert "The prediction is the same for everyone, 0.3; the average effect is" in text
        assert not NEVER.search(text)
    assert assess(np.full(2000, 3.0), loss).status == "miscalibrated"


def test_a_map_that_makes_one_number_of_everything_is_not_called_fixed():
    done = study(truth=lambda t: 1 + 0 * t).calibrate("tau", Constant())
    assert done.after.is_constant
    assert done.recommendation.action == "use the average effect"
    assert "The prediction does not beat a constant effect for everyone" in str(done.recommendation)
    every = done.study.assess("tau").average  # of all rows, not of those that the map was fitted on
    assert done.recommendation.reasons[0] == f"Over all rows it is {estimate(every.effect, every.interval)}."
    assert not NEVER.search(done.summary())


def test_a_constant_prediction_is_studied_in_sentences():
    for method in ("auto", "constant", "identity"):
        done = study(shown=lambda t: 0.3 + 0 * t).calibrate("tau", method)
        assert done.after.is_constant
        assert not NEVER.search(done.summary()), done.summary()


def test_subgroups_beyond_the_tolerance_are_not_recommended():
    """The effect is t with +-.8 by sex; the prediction 2 t is calibrated to t, which is off in both subgroups."""
    rng = np.random.default_rng(0)
    t, a, sex = rng.standard_normal(6000), rng.integers(0, 2, 6000), rng.integers(0, 2, 6000)
    y = (t + np.where(sex == 1, 0.8, -0.8)) * (a - 0.5) + rng.standard_normal(6000)
    table = pd.DataFrame({"a": a, "y": y, "tau": 2 * t, "sex": sex})
    done = Study(table, outcome="y", treatment="a", covariates=[], propensity=0.5).calibrate("tau", by="sex")
    assert done.after.status == "miscalibrated"
    assert done.recommendation.action == "collect more data"
    assert "iscalibrated in 2 of 2 subgroups" in str(done.recommendation)


def spend(n, seed):
    """What customers spend: mostly nothing, sometimes much."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.1, rng.lognormal(3, 1.2, n), 0.0)


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_skewed_spend_is_no_reason_to_reject():
    rejected = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 1])
        a, t = rng.integers(0, 2, 2000), rng.standard_normal(2000)
        y = spend(2000, seed)
        loss = QuadraticLoss(np.where(a == 1, 2.0, -2.0) * (y - y.mean()) + t, np.ones(2000))
        verdict = assess(t, loss, by={"t": t}, draws=100, random_state=0)
        rejected += verdict.status == "miscalibrated"
    assert rejected <= 7  # 3 expected of 60 at 5%; more than 7 have a chance of 0.6%


def test_few_clusters_are_said_to_be_few():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 8, 2000)
    table = pd.DataFrame({"y": rng.standard_normal(2000), "a": rng.integers(0, 2, 2000), "g": groups})
    table = table.assign(tau=0.3 * rng.standard_normal(2000))
    found = Study(table, outcome="y", treatment="a", covariates=[], propensity=0.5, groups="g").assess("tau")
    (check,) = [check for check in found.checks if check.name == "clusters"]
    assert (check.result, check.figure) == ("warning", "effective number of clusters 8")


def test_a_quantile_has_a_tolerance_in_probability():
    rng = np.random.default_rng(0)
    outcome = rng.standard_normal(6000)
    loss = HingeLoss(outcome, np.ones(6000), np.full(6000, 0.9))
    spread = norm.ppf(0.9) + 0.001 * rng.standard_normal(6000)
    right = assess(spread, loss, bins=3, random_state=0)
    assert (right.status, right.tolerance, right.ranking) == ("calibrated", 0.05, None)
    wrong = assess(spread - 0.5, loss, bins=3, random_state=0)
    assert wrong.status == "miscalibrated"
    assert "On average they are too low by 0.1" in wrong.verdict


def test_the_tolerance_is_half_the_smaller_of_spread_and_effects():
    t, loss = draw(5000, truth=lambda t: 0.5 * t)
    wide = assess(4 * t, loss, random_state=0)
    # Effects 0.5 t have a root mean square of 0.5 over fine bins; ten bins keep about 95% of its square.
    assert wide.tolerance == pytest.approx(0.25, abs=0.03)
    assert wide.tolerance_note == "half the root mean square of the effects of the bins"
    inflated = assess(1000 * t, loss, random_state=0)
    assert inflated.tolerance == pytest.approx(wide.tolerance, rel=1e-9)
    narrow = assess(0.1 * t, loss, random_state=0)
    assert narrow.tolerance == pytest.approx(0.05, rel=0.05)
    assert narrow.tolerance_note == "half the standard deviation of the predictions"
    assert assess(t, loss, tolerance=0.7).tolerance == 0.7
    flat = assess(np.full(5000, 1.0), loss)
    assert flat.tolerance == pytest.approx(flat.average.standard_error / 2)


def test_at_many_rows_what_is_detected_may_be_negligible():
    t, loss = draw(400_000, noise=0.2)
    verdict = assess(t + 0.005, loss, draws=50, random_state=0)
    assert verdict.tests["linear"].p_value < 1e-10
    assert verdict.status == "calibrated"
    assert "The predictions are calibrated in practice: an error was detected" in verdict.verdict


def test_sentences_never_contradict():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        t, loss = draw(400, noise=float(rng.choice([0.3, 3.0])), seed=seed)
        change = rng.normal(size=2) * rng.choice([0.0, 0.3, 3.0])
        after = change[0] + (1 + change[1]) * t
        by = {"half": t > 0}
        one, two = (assess(values, loss, by=by, draws=50, random_state=0) for values in (t, after))
        comparison = compare(t, after, loss, cost=0.4)
        for text in (one.summary(), two.summary(), story(one, two, comparison), str(comparison)):
            assert not NEVER.search(text), text
        for verdict in (one, two):
            assert (verdict.status == "inconclusive") == verdict.verdict.startswith("Inconclusive")
            assert (verdict.status == "miscalibrated") == verdict.verdict.startswith(
                "The predictions are miscalibrated"
            )


def test_printing_a_record_prints_its_summary():
    t, loss = draw(200)
    verdict, comparison = assess(t, loss, random_state=0), compare(t, 2 * t, loss, rivals=("a", "b"))
    assert str(verdict) == verdict.summary()
    assert str(comparison) == comparison.summary()
    assert str(comparison).startswith("a has the lower loss.")


def test_numbers_in_words():
    assert off_by(-0.96, (-1.4, -0.5)) == "too low by 0.96 (interval 0.5 to 1.4)"
    assert off_by(0.2, (-0.1, 0.5), " in probability") == "too high by 0.2 in probability (interval -0.1 to 0.5)"
    assert [whole(count) for count in (7, 98, 1234, 70904)] == ["7", "98", "1,200", "71,000"]


def test_the_tolerance_after_a_map_is_that_before_it():
    """A map that makes one number of everything would be measured by a smaller one of its own."""
    done = study().calibrate("tau", "constant")
    assert done.after.is_constant
    assert done.after.tolerance == done.before.tolerance
    assert done.after.tolerance > 2 * done.after.average.standard_error


def test_a_gain_that_matters_is_in_units_of_the_loss():
    t, loss = draw(500)
    twice = QuadraticLoss(2 * loss.numerator, 2 * loss.denominator, np.ones(500))
    one, two = (assess(t, each, tolerance=0.3, random_state=0) for each in (loss, twice))
    assert (one.mass, two.mass) == pytest.approx((1.0, 2.0))
    assert gain_that_matters(one) == pytest.approx(0.3**2 / 2)
    assert gain_that_matters(two) == pytest.approx(0.3**2)
