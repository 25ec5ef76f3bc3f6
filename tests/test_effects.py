"""Effects with nuisances learnt from data, and their bad input."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import (
    LATE,
    CausalCalibrator,
    CausalDerivative,
    CVaRUnderTreatment,
    ExpectileUnderTreatment,
    Histogram,
    OrthocalError,
    OverlapWarning,
    PseudoOutcome,
    QuantileUnderTreatment,
    assess,
    compare,
    orthogonal_loss,
)
from orthocal.datasets import simulate_cate, simulate_derivative, simulate_late, simulate_quantile
from orthocal.nuisances import Nuisance

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression(), "treatment": LogisticRegression()}
FAST_ARMS = {"propensity": LogisticRegression(), "outcome": LinearRegression()}
FAST_LAW = {"propensity": LogisticRegression(), "below": LogisticRegression()}


@pytest.fixture(scope="module")
def late():
    return simulate_late(3000, random_state=0)


@pytest.fixture(scope="module")
def quantile():
    return simulate_quantile(3000, quantile=0.75, random_state=0)


def of_late(data, effect="late", **changes):
    columns = {
        "treatment": data.treatment,
        "instrument": data.instrument,
        "learners": FAST,
        "random_state": 0,
        **changes,
    }
    return orthogonal_loss(effect, data.X, data.y, **columns)


@pytest.mark.parametrize("target", ["population", "compliers"])
def test_late_finds_the_average_effect_of_compliers(late, target):
    verdict = assess(late.effect, of_late(late, LATE(target=target)))
    low, high = verdict.average.interval
    assert low < late.effect.mean() < high
    assert "compliers, F =" in verdict.summary()


def test_one_sided_non_compliance_is_used(late):
    data = simulate_late(2000, one_sided=True, random_state=0)
    loss = of_late(data)
    assert "nobody is treated without the instrument, which was used" in loss.overlap.notes
    assert "nobody" not in " ".join(of_late(late).overlap.notes)


def test_a_weak_instrument_is_warned_of_and_kept_finite(late):
    weak = {"treatment_z0": 0.2, "treatment_z1": np.where(late.X[:, 0] > 0, 0.2 + 1e-9, 0.8)}
    with pytest.warns(
        OverlapWarning, match=r"fewer than 5% of people in (49|50|51).\d% of rows \(first stage: 0\.\d+ of people"
    ):
        loss = of_late(late, nuisances=weak)
    assert np.isfinite(loss.numerator).all()
    assert np.abs(loss.numerator).max() < 1e3


@pytest.mark.parametrize("correction", ["gaussian", "shift", "riesz"])
def test_derivative_finds_the_average_slope(correction):
    data = simulate_derivative(3000, random_state=0)
    learners = {"outcome": LinearRegression()}
    effect = CausalDerivative(correction)
    loss = orthogonal_loss(effect, data.X, data.y, treatment=data.treatment, learners=learners, random_state=0)
    assert loss.target.mean() == pytest.approx(data.effect.mean(), abs=0.15)


def test_derivative_takes_known_nuisances_as_functions_of_treatment_too():
    data = simulate_derivative(500, random_state=0)
    given = {
        "outcome": lambda X, a: data.nuisances["outcome"],
        "outcome_derivative": data.nuisances["outcome_derivative"],
        "score_correction": lambda X, a: np.zeros(len(a)),
    }
    with pytest.warns(OverlapWarning, match="times the treatment must be 1; it is 0.00"):
        loss = orthogonal_loss("derivative", data.X, data.y, treatment=data.treatment, nuisances=given)
    np.testing.assert_array_equal(loss.target, data.nuisances["outcome_derivative"])
    with pytest.raises(OrthocalError, match="`outcome` and `outcome_derivative` must be given together"):
        orthogonal_loss("derivative", data.X, data.y, treatment=data.treatment, nuisances={"outcome": 0})


def test_a_treatment_with_hard_ends_is_warned_of():
    rng = np.random.default_rng(0)
    X, a = rng.standard_normal((300, 1)), rng.random(300)
    given = {"outcome": 0, "outcome_derivative": 0, "score_correction": 12 * (a - 0.5)}
    with pytest.warns(OverlapWarning, match="density does not vanish"):
        orthogonal_loss("derivative", X, a, treatment=a, nuisances=given)


def true_law(data):
    mean, deviation = data.nuisances["mean"], data.nuisances["deviation"]
    return {"propensity": data.nuisances["propensity"], "below": lambda X, v: norm.cdf((v - mean) / deviation)}


def of_quantile(data, effect, prediction=None, **changes):
    prediction = data.effect if prediction is None else prediction
    columns = {"treatment": data.treatment, "prediction": prediction, "random_state": 0, **changes}
    return orthogonal_loss(effect, data.X, data.y, **columns)


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_a_true_quantile_covers_as_often_as_it_says(quantile):
    loss = of_quantile(quantile, QuantileUnderTreatment(0.75), nuisances=true_law(quantile))
    verdict = assess(quantile.effect, loss)
    assert verdict.unit == "probability"
    assert verdict.tests["linear"].p_value > 0.01
    assert assess(quantile.effect + 0.5, loss).error > 0.1
    assert compare(quantile.effect + 0.5, quantile.effect, loss).verdict == "improved"


def test_quantiles_are_calibrated_with_learnt_nuisances(quantile):
    effect = QuantileUnderTreatment(0.75)
    fit = {"treatment": quantile.treatment, "prediction": 1 + 2 * quantile.effect}
    calibrator = CausalCalibrator(effect, "linear", learners=FAST_LAW, random_state=0)
    calibrator.fit(quantile.X, quantile.y, **fit)
    gap = calibrator.calibrate(1 + 2 * quantile.effect) - quantile.effect
    assert np.sqrt(np.mean(gap**2)) < 0.35
    assert calibrator.boxed_ < 0.05
    again = CausalCalibrator(effect, "linear", random_state=0)
    again.fit(quantile.X, quantile.y, nuisances=calibrator.nuisances_, **fit)
    # Nothing is learnt, so that no folds are drawn: inverse propensities are normalised over all rows at once.
    assert (again.map_.intercept, again.map_.slope) == pytest.approx(
        (calibrator.map_.intercept, calibrator.map_.slope), abs=0.01
    )


def test_refinements_move_the_level_and_none_stays_at_the_prediction(quantile):
    fit = {"treatment": quantile.treatment, "prediction": 1 + 2 * quantile.effect, "nuisances": true_law(quantile)}
    maps = [
        CausalCalibrator(QuantileUnderTreatment(0.75), "linear", refinements=r, random_state=0)
        .fit(quantile.X, quantile.y, **fit)
        .map_
        for r in (0, 2)
    ]
    assert maps[0] != maps[1]


def test_a_level_given_as_an_array_is_final(quantile):
    given = {"propensity": quantile.nuisances["propensity"], "below": np.full(3000, 0.75)}
    loss = of_quantile(quantile, QuantileUnderTreatment(0.75), nuisances=given)
    assert loss.at(np.zeros(3000)) is loss


def test_hajek_weights_average_one_in_every_fold(quantile):
    fold = np.arange(3000) % 3
    loss = of_quantile(quantile, QuantileUnderTreatment(0.75), nuisances=true_law(quantile), folds=fold)
    for k in range(3):
        assert loss.slope[fold == k].mean() == pytest.approx(1)


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
@pytest.mark.parametrize(
    ("effect", "truth", "learners"),
    [
        (CVaRUnderTreatment(tail=0.25), lambda m, s: m + s * norm.pdf(norm.ppf(0.75)) / 0.25, FAST_ARMS),
        (ExpectileUnderTreatment(0.5), lambda m, s: m, FAST_LAW),
    ],
)
def test_cvar_and_expectile_accept_the_truth_and_reject_a_shift(quantile, effect, truth, learners):
    prediction = truth(quantile.nuisances["mean"], quantile.nuisances["deviation"])
    loss = of_quantile(quantile, effect, prediction, learners=learners)
    assert assess(prediction, loss).tests["linear"].p_value > 1e-3
    assert assess(prediction + 0.5, loss).tests["linear"].p_value < 1e-6


def test_three_way_binning_uses_a_third_of_the_rows_for_the_values():
    data = simulate_cate(3000, random_state=0)
    calibrator = CausalCalibrator(method=Histogram(bins=5), scheme="three-way", learners=FAST_ARMS, random_state=0)
    calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=1 + 2 * data.effect)
    assert len(calibrator.rows_) == pytest.approx(1000, abs=3)
    bins = np.searchsorted(calibrator.map_.edges, 1 + 2 * data.effect[calibrator.rows_])
    means = np.bincount(bins, calibrator.loss_.numerator) / np.bincount(bins)
    np.testing.assert_allclose(calibrator.map_.values, means)


def test_three_way_binning_of_a_quantile(quantile):
    effect = QuantileUnderTreatment(0.75)
    calibrator = CausalCalibrator(effect, Histogram(bins=5), scheme="three-way", learners=FAST_LAW, random_state=0)
    calibrator.fit(quantile.X, quantile.y, treatment=quantile.treatment, prediction=1 + 2 * quantile.effect)
    calibrated = calibrator.calibrate(1 + 2 * quantile.effect)
    below = norm.cdf((calibrated - quantile.nuisances["mean"]) / quantile.nuisances["deviation"])
    assert abs(below.mean() - 0.75) < 0.06


def test_three_way_binning_is_for_histograms():
    data = simulate_cate(300, random_state=0)
    with pytest.raises(OrthocalError, match="must have method='histogram'; it is Linear"):
        CausalCalibrator(method="linear", scheme="three-way").fit(
            data.X, data.y, treatment=data.treatment, prediction=data.effect
        )


class Refuses(LogisticRegression):
    """A learner that must not be asked."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("what is given must not be learnt")


def test_three_way_binning_learns_nothing_that_is_given(quantile):
    effect = QuantileUnderTreatment(0.75)
    learners = {"propensity": Refuses(), "below": Refuses()}
    calibrator = CausalCalibrator(effect, Histogram(bins=5), scheme="three-way", learners=learners, random_state=0)
    prediction = 1 + 2 * quantile.effect
    calibrator.fit(
        quantile.X, quantile.y, treatment=quantile.treatment, prediction=prediction, nuisances=true_law(quantile)
    )
    below = norm.cdf((calibrator.calibrate(prediction) - quantile.nuisances["mean"]) / quantile.nuisances["deviation"])
    assert abs(below.mean() - 0.75) < 0.06


@pytest.mark.parametrize("effect", ["overlap", "catt", "relative"])
def test_other_effects_judge_the_truth_kindly(effect):
    data = simulate_cate(4000, random_state=1)
    y, truth = data.y, data.effect
    if effect == "relative":
        y = data.y + 20
        truth = (data.nuisances["outcome_treated"] + 20) / (data.nuisances["outcome_control"] + 20)
    loss = orthogonal_loss(effect, data.X, y, treatment=data.treatment, random_state=0)
    assert assess(truth, loss).tests["linear"].p_value > 0.001
    assert assess(truth + truth.std(), loss).tests["linear"].p_value < 1e-6


def test_an_own_effect_by_its_formula():
    data = simulate_cate(2000, random_state=0)
    mean = PseudoOutcome(
        nuisances=lambda rows: [
            Nuisance("propensity", "propensity", rows.treatment.astype(float), is_probability=True, is_divisor=True),
            Nuisance("outcome", "outcome", rows.outcome, rows.treatment == 1),
        ],
        m=lambda rows, g: g["outcome"],
        correction=lambda rows, g: rows.treatment / g["propensity"] * (rows.outcome - g["outcome"]),
        stratify=lambda rows: rows.treatment,
    )
    loss = orthogonal_loss(mean, data.X, data.y, treatment=data.treatment, learners=FAST_ARMS, random_state=0)
    assert loss.target.mean() == pytest.approx(data.nuisances["outcome_treated"].mean(), abs=0.15)


@pytest.mark.parametrize(
    ("effect", "changes", "message"),
    [
        ("late", {"instrument": None}, "must have an `instrument`"),
        ("late", {"instrument": np.ones(400)}, "`instrument` must take both 0 and 1"),
        (
            "late",
            {"instrument": np.arange(400) % 3},
            "`instrument` must be 0 or 1 in every row for this effect; 2 occurs",
        ),
        ("late", {"treatment": np.arange(400) % 3}, "`treatment` must be 0 or 1"),
        (LATE(target="everyone"), {}, "`target` must be one of 'population', 'compliers'"),
        (LATE(min_first_stage=0), {}, "`min_first_stage` must lie strictly between 0 and 1"),
        ("derivative", {}, "must be continuous for a derivative; it has 2 distinct values"),
        ("derivative", {"treatment": ["a", "b"] * 200}, "The treatment must be a number for a derivative"),
        (CausalDerivative("beta"), {}, "`correction` must be one of"),
        (QuantileUnderTreatment(1.0), {}, "`quantile` must lie strictly between 0 and 1"),
        (QuantileUnderTreatment(0.5, arm=9), {}, "`arm`=9 must occur"),
        ("quantile", {"prediction": None}, "Effect 'quantile' must have a `prediction`"),
        (CVaRUnderTreatment(tail=0), {}, "`tail` must lie strictly between 0 and 1"),
        (ExpectileUnderTreatment(2), {}, "`expectile` must lie strictly between 0 and 1"),
        ("overlap", {"treatment": np.arange(400) % 3}, "`treatment` must be 0 or 1"),
    ],
)
def test_bad_input_gets_one_sentence(effect, changes, message):
    data = simulate_late(400, random_state=0)
    columns = {"treatment": data.treatment, "instrument": data.instrument, "prediction": data.effect, **changes}
    with pytest.raises(OrthocalError) as caught:
        orthogonal_loss(effect, data.X, data.y, learners=None, **columns)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
