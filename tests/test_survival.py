"""Effects on censored times: events as data, time in cells, curves that are given, follow-up, and all that comes after."""

from typing import ClassVar

import numpy as np
import pytest
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from orthocal import (
    CATE,
    CausalCalibrator,
    CrossCalibratedModel,
    OrthocalError,
    OverlapWarning,
    RestrictedMeanTime,
    SurvivalProbability,
    assess,
    compare,
    orthogonal_loss,
)
from orthocal.datasets import simulate_survival
from orthocal.effects.check import mean_score
from orthocal.folds import draw_folds
from orthocal.nuisances import Fitted
from orthocal.nuisances.hazards import CensoringProcess, DiscreteHazard, EventProcess, SurvivalLearner, signed_times
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.time_grid import TimeGrid, event_grid
from orthocal.nuisances.wrapped import Coarse
from orthocal.observations import observe
from tests.contracts import populations
from tests.contracts.populations import CENSORING, HAZARD, POPULATIONS, TIMES

FAST = {"propensity": LogisticRegression(), "event": LogisticRegression(), "censoring": LogisticRegression()}
EFFECTS = {"survival": SurvivalProbability(0.8, grid=10), "rmst": RestrictedMeanTime(0.8, grid=10)}
both = pytest.mark.parametrize("name", EFFECTS)
TRUTH = {"survival": "effect", "rmst": "mean_time_effect"}


@pytest.fixture(scope="module")
def data():
    return simulate_survival(600, time=0.8, random_state=0)


def loss_of(effect, data, **settings):
    settings = {"treatment": data.treatment, "event": data.event, "learners": FAST, "random_state": 0, **settings}
    return orthogonal_loss(effect, data.X, data.y, **settings)


def known(effect, data, **settings):
    return loss_of(effect, data, **{"nuisances": data.nuisances, "learners": None, **settings})


# Events as data


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ([2, 1, 2, 1], "it is 2 and 1, as R's Surv codes them. Pass event == 2."),
        ([0, 1, 3, 1], "3 occurs. Recode the column: event == the value that stands for the event."),
        (["dead", "alive"] * 2, "'alive' occurs"),
        ([0.0, np.nan, 1, 1], "`event` must be finite in every row; row 1 is nan"),
        ([0, 1, 1], "`event` must have one value per row; it has 3 for 4 rows"),
        ([0, 0, 0, 0], "`event` must be 1 somewhere; every row is 0"),
    ],
)
def test_a_wrong_coding_of_events_gets_a_sentence(event, sentence):
    with pytest.raises(OrthocalError) as said:
        orthogonal_loss(SurvivalProbability(1.0), np.ones((4, 1)), [1.0, 2, 1, 2], treatment=[0, 0, 1, 1], event=event)
    assert sentence in str(said.value)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([1.0, -2, 1, 2], "must hold positive times where `event` is given; row 1 is -2"),
        ([1.0, 0, 1, 2], "row 1 is 0. Count time from treatment"),
        ([1.0, np.nan, 1, 2], "`y` must be finite in every row; row 1 is nan"),
    ],
)
def test_a_wrong_time_gets_a_sentence(y, sentence):
    with pytest.raises(OrthocalError, match=sentence):
        orthogonal_loss(SurvivalProbability(1.0), np.ones((4, 1)), y, treatment=[0, 0, 1, 1], event=[1, 0, 1, 1])


@both
def test_events_must_be_given_and_have_a_use(name, data):
    with pytest.raises(OrthocalError, match="must have an `event`.*all 1 if nothing is censored"):
        loss_of(EFFECTS[name], data, event=None)
    with pytest.raises(OrthocalError, match="`event` must go with an effect on censored times; CATE does not use it"):
        loss_of("cate", data)
    with pytest.raises(OrthocalError, match="CATE does not use it"):
        CausalCalibrator(scheme="split").fit(
            data.X, data.y, treatment=data.treatment, event=data.event, prediction=data.effect
        )


@pytest.mark.parametrize(
    ("effect", "sentence"),
    [
        ("survival", "`time` must be given, in the unit of y; it is None. Pass time="),
        ("rmst", "`horizon` must be given"),
        (SurvivalProbability(-1.0), "`time` must be positive; it is -1"),
        (
            RestrictedMeanTime(1e6),
            "`horizon` must be a time to which some row is followed; it is 1e.06, and the longest",
        ),
        (SurvivalProbability(1e-9), "There must be events up to the time 1e-09"),
        (SurvivalProbability(0.8, grid=0), "`grid` must be a whole number of at least 1"),
        (SurvivalProbability(0.8, grid=(-1.0, 0.8)), "`grid` must be a whole number or positive times"),
        (SurvivalProbability(0.8, min_followed=0.0), "`min_followed` must lie strictly between 0 and 1"),
        (SurvivalProbability(0.8, arm=2), "`arm`=2 must occur in the treatment column"),
    ],
)
def test_a_wrong_setting_gets_a_sentence(effect, sentence, data):
    with pytest.raises(OrthocalError, match=sentence):
        loss_of(effect, data)


def test_structured_arrays_and_every_coding_of_events_mean_the_same(data):
    expected = known(EFFECTS["rmst"], data).numerator
    pair = np.array(list(zip(data.event, data.y, strict=True)), dtype=[("cens", "?"), ("time", "<f8")])
    structured = orthogonal_loss(
        EFFECTS["rmst"], data.X, pair, treatment=data.treatment, nuisances=data.nuisances
    ).numerator
    np.testing.assert_array_equal(structured, expected)
    for event in (data.event.astype(int), data.event.astype(float), data.event.tolist()):
        np.testing.assert_array_equal(known(EFFECTS["rmst"], data, event=event).numerator, expected)
    with pytest.raises(OrthocalError, match="`event` must be given once"):
        orthogonal_loss("rmst", data.X, pair, treatment=data.treatment, event=data.event)
    with pytest.raises(OrthocalError, match="must have two fields.*it has a, b"):
        orthogonal_loss("rmst", data.X, np.zeros(600, dtype=[("a", "f8"), ("b", "f8")]), treatment=data.treatment)


# Time in cells


def test_histories_by_hand():
    # Cells (0, 1], (1, 3], (3, 4] with middles 0.5, 2, 3.5. Events count where they fall; censoring at the nearer end.
    grid = TimeGrid(np.array([1.0, 3.0, 4.0]))
    time = np.array([0.3, 1.0, 1.1, 4.0, 4.1, 0.3, 0.7, 1.0, 1.9, 2.0, 3.4, 4.0, 9.0])
    event = np.arange(13) < 5
    entered, died = grid.histories(time, event)
    assert entered.tolist() == [1, 1, 2, 3, 3, 0, 1, 1, 1, 2, 2, 3, 3]
    assert died.tolist() == [True] * 4 + [False] * 9


def test_the_grid_ends_cells_at_events_and_at_the_horizon():
    time, event = np.arange(1.0, 11.0), np.arange(10) % 2 == 0  # events at 1, 3, 5, 7, 9
    assert event_grid(time, event, 8.0, 5).times.tolist() == [1, 3, 5, 7, 8]
    assert event_grid(time, event, 8.0, 3).times.tolist() == [3, 7, 8]
    assert event_grid(time, event, 7.0, 3).times.tolist() == [3, 7]
    assert event_grid(time, event, 8.0, 1).times.tolist() == [8]
    assert event_grid(time, event, 4.0, (3.0, 2.0, 9.0)).times.tolist() == [2, 3, 4]


def test_the_risk_sets_of_event_and_censoring_give_the_true_hazards():
    """Events come first: rows with an event in a period are not at risk of censoring at its end."""
    x, a, y, event, probability = populations.survival_rows()
    for process, truth in ((EventProcess, HAZARD), (CensoringProcess, CENSORING)):
        count, happened = process(TimeGrid(np.array(TIMES))).periods(y, event)
        assert count.max() == 3
        for period in range(3):
            for arm in (0, 1):
                for cell in range(3):
                    own = (x == cell) & (a == arm) & (count > period)
                    share = probability[own & happened & (count == period + 1)].sum() / probability[own].sum()
                    assert share == pytest.approx(truth[arm, cell, period], abs=1e-14)


def test_a_classifier_of_person_periods_finds_the_hazards_of_two_groups():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 40_000)
    hazard = np.array([[0.1, 0.3], [0.4, 0.2]])
    dies = rng.random((40_000, 2)) < hazard[x]
    time = np.where(dies[:, 0], 1.0, np.where(dies[:, 1], 2.0, 3.0))
    process = EventProcess(TimeGrid(np.array([1.0, 2.0])))
    model = DiscreteHazard(DecisionTreeClassifier(), process).fit(x[:, None], signed_times(time, time < 3))
    expected = np.cumprod(1 - hazard, axis=1)
    np.testing.assert_allclose(model.predict(np.array([[0.0], [1.0]])), expected, atol=0.01)


@pytest.mark.parametrize("weight", [None, np.full(40_000, 2.0)])
def test_periods_that_are_not_shown_do_not_show(weight):
    """A fifth of the periods without an event give the same hazards, but for chance."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 40_000)
    hazard = np.array([[0.02, 0.04], [0.05, 0.01]])
    dies = rng.random((40_000, 2)) < hazard[x]
    y = signed_times(np.where(dies[:, 0], 1.0, np.where(dies[:, 1], 2.0, 3.0)), dies.any(axis=1))
    process = EventProcess(TimeGrid(np.array([1.0, 2.0])))
    model = DiscreteHazard(DecisionTreeClassifier(), process, most=15_000, random_state=0).fit(x[:, None], y, weight)
    assert model.share_ == pytest.approx(
        10 * dies.any(axis=1).sum() / (80_000 - dies[:, 0].sum() - dies.any(axis=1).sum())
    )
    expected = np.cumprod(1 - hazard, axis=1)
    np.testing.assert_allclose(model.predict(np.array([[0.0], [1.0]])), expected, atol=0.004)


@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
def test_an_arm_without_events_has_none(data):
    event = data.event & (data.treatment == 1)
    learnt = CausalCalibrator(EFFECTS["survival"], "linear", learners=FAST, random_state=0).fit(
        data.X, data.y, treatment=data.treatment, event=event, prediction=data.effect
    )
    np.testing.assert_array_equal(learnt.nuisances_["event_survival_control"].table, 1.0)


def test_own_trees_of_hazards_have_leaves_of_people(data):
    """In a leaf of 20 person-periods there could be one person."""
    rows = observe(data.X, data.y, treatment=data.treatment, event=data.event)
    wanted = EFFECTS["survival"].nuisances(rows)
    plain, weighted = (choose_learners(wanted, None, weighted=one)["event_survival_treated"] for one in (False, True))
    assert plain.min_samples_leaf == 10 * 10
    assert isinstance(
        weighted[0], Coarse
    )  # with weights scikit-learn would take longer for its bins than for its trees
    assert weighted[-1].min_samples_leaf == 10 * 10


def test_a_regressor_of_hazards_is_a_learner_too(data):
    learners = {"propensity": LogisticRegression(), "event": LinearRegression(), "censoring": LinearRegression()}
    assert np.isfinite(loss_of(EFFECTS["survival"], data, learners=learners).target).all()


# The formulas


def errors_of(population, *wrong):
    """How far these nuisances are off where their hazards, or the propensity, are half of what they are."""
    halved = {
        f"{role}_survival_{arm}": np.cumprod(1 - chance[k] / 2, axis=1)[population.cell]
        for k, arm in enumerate(("control", "treated"))
        for role, chance in (("event", HAZARD), ("censoring", CENSORING))
    } | {"propensity": population.nuisances["propensity"] / 2}
    return {name: halved[name] - population.nuisances[name] for name in halved if name.startswith(wrong)}


@both
@pytest.mark.parametrize("wrong", [("event",), ("censoring", "propensity")])
def test_it_is_doubly_robust_exactly(name, wrong):
    """Either the curves of the event are wrong, by a lot, or propensity and the curves of censoring are."""
    effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
    errors = errors_of(population, *wrong)
    np.testing.assert_allclose(mean_score(effect, population, population.truth, errors), 0, atol=1e-14)
    assert len(errors) == 1 + len(wrong)
    assert min(np.abs(error).max() for error in errors.values()) > 0.1


def test_the_bias_is_the_sum_of_products_the_formula_sheet_gives():
    """Mathematics 3.13."""
    effect, population = POPULATIONS["survival"][0], POPULATIONS["survival"][1]()
    errors = errors_of(population, "event", "censoring", "propensity")
    bias = np.zeros(3)
    for arm, sign in ((1, 1), (0, -1)):
        true, used = HAZARD[arm], HAZARD[arm] / 2
        entered = np.column_stack([np.ones(3), np.cumprod(1 - true, axis=1)[:, :-1]])
        to_come = np.column_stack([np.prod(1 - used[:, k + 1 :], axis=1) for k in range(3)])
        followed = np.cumprod(1 - CENSORING[arm], axis=1) / np.cumprod(1 - CENSORING[arm] / 2, axis=1)
        chance = [1 - populations.PI, populations.PI][arm] / [1 - populations.PI / 2, populations.PI / 2][arm]
        bias += sign * (entered * (true - used) * to_come * (1 - chance[:, None] * followed)).sum(axis=1)
    np.testing.assert_allclose(-mean_score(effect, population, population.truth, errors), bias, atol=1e-14)


@both
def test_both_wrong_is_wrong(name):
    effect, population = POPULATIONS[name][0], POPULATIONS[name][1]()
    errors = errors_of(population, "event", "censoring", "propensity")
    assert np.abs(mean_score(effect, population, population.truth, errors)).max() > 0.1


@pytest.fixture(scope="module")
def uncensored():
    return simulate_survival(500, time=0.8, censoring_rate=0.0, random_state=3)


@both
def test_without_censoring_it_is_the_cate_of_what_is_asked(name, uncensored):
    """The outcome's nuisance is what the event curve says: the chance at the time, or the area under the curve."""
    data, effect = uncensored, EFFECTS[name]
    learnt = CausalCalibrator(effect, "linear", learners=FAST, random_state=0).fit(
        data.X, data.y, treatment=data.treatment, event=data.event, prediction=data.effect
    )
    found = learnt.nuisances_
    grid = found["event_survival_treated"].grid
    starts, widths = grid.starts, np.diff(grid.times, prepend=0.0)
    means = {}
    for arm in ("control", "treated"):
        curve = found[f"event_survival_{arm}"].table.astype(float)
        before = np.column_stack([np.ones(len(curve)), curve[:, :-1]])
        area = widths * (before - curve) / np.log(before / curve)  # of an exponential between two heights
        means[f"outcome_{arm}"] = {"survival": curve[:, -1], "rmst": area.sum(axis=1)}[name]
    outcome = {"survival": (data.event_time > 0.8).astype(float), "rmst": np.minimum(data.event_time, 0.8)}[name]
    expected = orthogonal_loss(
        CATE(), data.X, outcome, treatment=data.treatment, nuisances={"propensity": found["propensity"], **means}
    )
    assert starts[0] == 0
    np.testing.assert_allclose(learnt.loss_.target, expected.target, atol=1e-12)


@both
def test_the_average_is_that_of_the_simulation(name, data):
    many = simulate_survival(20_000, time=0.8, random_state=1)
    target = known(EFFECTS[name], many).target
    truth = getattr(many, TRUTH[name])
    assert abs(target.mean() - truth.mean()) < 3 * target.std() / np.sqrt(len(target))


@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
def test_censoring_inside_wide_cells_costs_little():
    """Ten cells, half of the times censored: off by about 0.001; by 0.004 if all were at risk to the end of their cell."""
    settings = {"time": 1.0, "hazards": "crossing", "random_state": 0}
    some, every = (simulate_survival(200_000, censoring_rate=rate, **settings) for rate in (1.0, 0.0))
    found, expected = (known(RestrictedMeanTime(1.0, grid=10), one).target.mean() for one in (some, every))
    assert abs(found - expected) < 0.0025


@both
def test_a_weight_is_a_row_repeated_and_clusters_reach_the_loss(name, data):
    weight = np.arange(600) % 3 + 1.0
    clusters = np.arange(600) // 4
    weighted = known(EFFECTS[name], data, sample_weight=weight, groups=clusters)
    np.testing.assert_allclose(weighted.numerator, weight * known(EFFECTS[name], data).target)
    assert len(np.unique(weighted.groups)) == 150


@pytest.mark.parametrize("process", [EventProcess, CensoringProcess])
def test_a_weight_is_a_row_repeated_in_its_periods(process, data):
    weight, y = np.arange(600) % 3 + 1, signed_times(data.y, data.event)
    own = process(TimeGrid(np.linspace(0.2, 0.8, 4)))
    weighted = DiscreteHazard(DecisionTreeClassifier(max_depth=3), own).fit(data.X, y, weight.astype(float))
    repeated = DiscreteHazard(DecisionTreeClassifier(max_depth=3), own).fit(
        np.repeat(data.X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.predict(data.X), repeated.predict(data.X), atol=1e-12)


@both
def test_rows_of_other_arms_are_kept(name, data):
    third = np.where(np.arange(600) % 3 == 0, 2, data.treatment)
    share = {"propensity": np.full(600, 1 / 3), "propensity_control": np.full(600, 1 / 3)}
    loss = known(EFFECTS[name], data, treatment=third, nuisances={**data.nuisances, **share})
    assert len(loss) == 600
    truth = getattr(data, TRUTH[name])  # nothing is seen of an arm in these rows: the curves alone speak
    np.testing.assert_allclose(loss.target[third == 2], truth[third == 2], atol=0.002)


# Curves that are given, and other learners


@both
def test_curves_as_functions_and_as_tables_agree(name, data):
    effect = EFFECTS[name]
    times = tuple(np.linspace(0.1, 0.8, 8))
    effect = type(effect)(0.8, grid=times)
    middles = TimeGrid(np.array(times)).middles
    tables = {
        curve: np.column_stack([function(data.X, t) for t in (times if curve.startswith("event") else middles)])
        for curve, function in data.nuisances.items()
        if curve != "propensity"
    }
    by_table = known(effect, data, nuisances={**data.nuisances, **tables}).target
    np.testing.assert_allclose(by_table, known(effect, data).target, atol=1e-14)


@both
def test_nuisances_can_be_passed_back(name, data):
    columns = {"treatment": data.treatment, "event": data.event, "prediction": data.effect}
    first = CausalCalibrator(EFFECTS[name], "linear", learners=FAST, random_state=0).fit(data.X, data.y, **columns)
    again = CausalCalibrator(EFFECTS[name], "linear").fit(data.X, data.y, **columns, nuisances=first.nuisances_)
    np.testing.assert_array_equal(first.loss_.numerator, again.loss_.numerator)


@both
def test_the_loss_is_that_of_the_difference_of_the_arms_scores(name, data):
    columns = {"treatment": data.treatment, "event": data.event}
    found = CausalCalibrator(EFFECTS[name], "linear", learners=FAST, random_state=0).fit(
        data.X, data.y, **columns, prediction=data.effect
    )
    rows = observe(data.X, data.y, **columns)
    scores = EFFECTS[name].scores(rows, Fitted(found.nuisances_, clip=0.01))
    np.testing.assert_allclose(scores.contrast(1).target, found.loss_.target, atol=1e-12)
    control = data.treatment == 0
    curves = found.nuisances_["event_survival_treated"].table
    if name == "survival":  # a row of the control arm has nothing to say of the other but what the curve does
        np.testing.assert_allclose(scores.values[control, 1], curves[control, -1], atol=1e-7)


def test_the_curves_of_the_arms_end_at_the_effect(data):
    """At the last time the difference of the average curves is the average effect on survival; bands hold the truth."""
    loss = known(EFFECTS["survival"], data)
    curves = loss.overlap.curves
    (treated, error), (control, _) = curves.arms["treated"], curves.arms["control"]
    assert treated[-1] - control[-1] == pytest.approx(loss.target.mean(), abs=1e-12)
    truth = [data.nuisances["event_survival_treated"](data.X, time).mean() for time in curves.times]
    low, high = curves.band("treated", 0.999)
    assert ((low < truth) & (truth < high)).all()
    assert 0.01 < error[-1] < 0.06
    assert known(EFFECTS["rmst"], data)[:10].overlap.curves.times[-1] == 0.8  # of all rows, whichever are looked at


def test_a_row_that_is_there_twice_in_one_cluster_tells_nothing_new(data):
    twice = np.tile(np.arange(600), 2)
    columns = {"treatment": data.treatment[twice], "event": data.event[twice], "groups": twice}
    nuisances = {**data.nuisances, "propensity": data.nuisances["propensity"][twice]}
    doubled = orthogonal_loss(EFFECTS["survival"], data.X[twice], data.y[twice], **columns, nuisances=nuisances)
    found, expected = (loss.overlap.curves.arms["treated"] for loss in (doubled, known(EFFECTS["survival"], data)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_curves_by_hand():
    """Ten rows of either arm, nothing censored, curves of 1/2 whoever one is: the mean is that of 1{T > t} in the arm."""
    time, arm = np.tile(np.arange(1.0, 11.0), 2), np.repeat([0, 1], 10)
    half = {f"event_survival_{name}": np.full((20, 2), 0.5) for name in ("control", "treated")}
    free = {f"censoring_survival_{name}": np.ones((20, 2)) for name in ("control", "treated")}
    loss = orthogonal_loss(
        SurvivalProbability(6.0, grid=(4.0, 6.0)),
        np.ones((20, 1)),
        time,
        treatment=arm,
        event=np.ones(20),
        nuisances={"propensity": 0.5, **half, **free},
    )
    mean, error = loss.overlap.curves.arms["control"]
    np.testing.assert_allclose(mean, [0.6, 0.4], atol=1e-12)  # 6 and 4 of 10 live longer than 4 and 6
    # Scores at 6: 1.5 for 4 rows, -0.5 for 6, 0.5 for the 10 others; squares about 0.4 add to 4.84 + 4.86 + 0.1.
    assert error[-1] == pytest.approx(np.sqrt(9.8) / 20, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "curve", "sentence"),
    [
        ("event_survival_treated", np.full((600, 3), 0.5), "one column for each of the 2 grid times; its shape is"),
        ("event_survival_treated", np.tile([0.5, 0.6], (600, 1)), "do not rise over time; row 0 is not so"),
        ("censoring_survival_control", np.tile([0.5, 0.0], (600, 1)), "must be probabilities above 0"),
        ("event_survival_treated", np.tile([1.5, 0.5], (600, 1)), "must be probabilities of at least 0"),
        ("event_survival_treated", np.full((5, 2), 0.5), "must cover the 600 rows; it covers 5"),
        (
            "survival_treated",
            0.5,
            "`nuisances` does not know 'survival_treated'; this effect has propensity, event_surv",
        ),
    ],
)
def test_a_wrong_curve_gets_a_sentence(name, curve, sentence, data):
    with pytest.raises(OrthocalError, match=sentence):
        loss_of(SurvivalProbability(0.8, grid=(0.4, 0.8)), data, nuisances={name: curve})


def test_a_table_must_come_with_its_times(data):
    table = np.full((600, 10), 0.5)
    with pytest.raises(OrthocalError, match="as an array must come with the times of its columns"):
        loss_of(EFFECTS["survival"], data, nuisances={"event_survival_treated": table})


def test_curves_on_two_grids_are_refused(data):
    columns = {"treatment": data.treatment, "event": data.event, "prediction": data.effect}
    first = CausalCalibrator(EFFECTS["rmst"], "linear", learners=FAST, random_state=0).fit(data.X, data.y, **columns)
    other = {"event_survival_treated": first.nuisances_["event_survival_treated"]}
    with pytest.raises(OrthocalError, match="All curves must have the same grid times"):
        loss_of(RestrictedMeanTime(0.8, grid=5), data, nuisances=other)


class Step:
    """As scikit-survival's StepFunction: values `y` at times `x`."""

    def __init__(self, x, y):
        self.x, self.y = x, y


class KaplanMeier(BaseEstimator):
    """A survival learner by the convention of scikit-survival: every row has the curve of all rows."""

    def __init__(self, as_table=False):
        self.as_table = as_table

    def fit(self, X, y):
        assert y.dtype.names == ("event", "time")
        self.unique_times_ = np.unique(y["time"])
        at_risk = (y["time"] >= self.unique_times_[:, None]).sum(axis=1)
        events = ((y["time"] == self.unique_times_[:, None]) & y["event"]).sum(axis=1)
        self.curve_ = np.cumprod(1 - events / at_risk)
        return self

    def predict_survival_function(self, X):
        if self.as_table:
            return np.tile(self.curve_, (len(X), 1))
        return np.array([Step(self.unique_times_, self.curve_) for _ in X], dtype=object)


@pytest.mark.parametrize("as_table", [False, True])
def test_a_survival_learner_is_asked_for_its_curves(as_table):
    data = simulate_survival(4000, time=0.8, randomised=True, random_state=0)
    learners = {"propensity": LogisticRegression(), "event": KaplanMeier(as_table), "censoring": KaplanMeier(as_table)}
    found = CausalCalibrator(SurvivalProbability(0.8), "constant", learners=learners, random_state=0).fit(
        data.X, data.y, treatment=data.treatment, event=data.event, prediction=data.effect
    )
    curves = found.nuisances_
    control = data.treatment == 0
    expected = KaplanMeier().fit(data.X[control], structured(data.y, data.event)[control])
    late = np.searchsorted(expected.unique_times_, 0.8, side="right") - 1
    assert curves["event_survival_control"].table[:, -1].mean() == pytest.approx(expected.curve_[late], abs=0.01)
    # Censoring has rate 0.35 whoever one is: at the middle of the last cell.
    middle = curves["censoring_survival_treated"].grid.middles[-1]
    assert curves["censoring_survival_treated"].table[:, -1].mean() == pytest.approx(np.exp(-0.35 * middle), abs=0.03)
    assert found.calibrate([0.0])[0] == pytest.approx(data.effect.mean(), abs=0.05)


@pytest.mark.parametrize("as_table", [False, True])
def test_step_functions_are_read_by_hand(as_table):
    # Events at 1 and 3 of four rows, censored at 2 and 4: 3/4 from 1 on, 3/8 from 3 on. Censoring: 2/3 from 2 on, 0 from 4 on.
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, False])
    grid = TimeGrid(np.array([0.5, 1.0, 2.9, 3.0, 9.0]))  # its middles are 0.25, 0.75, 1.95, 2.95, 6
    for process, expected in ((EventProcess, [1, 0.75, 0.75, 0.375, 0.375]), (CensoringProcess, [1, 1, 1, 2 / 3, 0])):
        learner = SurvivalLearner(KaplanMeier(as_table), process(grid)).fit(np.ones((4, 1)), signed_times(time, event))
        np.testing.assert_allclose(learner.predict(np.ones((2, 1))), [expected, expected], atol=1e-15)


def structured(time, event):
    return np.array(list(zip(event, time, strict=True)), dtype=[("event", "?"), ("time", "<f8")])


class Recorder(LogisticRegression):
    """A classifier that remembers which rows it saw, by the first covariate."""

    seen: ClassVar = []

    def fit(self, X, y, sample_weight=None):
        Recorder.seen.append(set(X[:, 0].tolist()))
        return super().fit(X, y, sample_weight)


def test_folds_are_by_person():
    data = simulate_survival(200, time=0.8, random_state=0)
    X, fold = np.column_stack([np.arange(200.0), data.X]), np.arange(200) % 4
    Recorder.seen.clear()
    orthogonal_loss(
        EFFECTS["survival"],
        X,
        data.y,
        treatment=data.treatment,
        event=data.event,
        folds=fold,
        learners={**FAST, "event": Recorder(max_iter=5000)},
    )
    assert len(Recorder.seen) == 8
    for place, rows in enumerate(Recorder.seen):
        assert {int(row) % 4 for row in rows} == {0, 1, 2, 3} - {place % 4}


def test_folds_hold_equal_shares_of_events_in_either_arm():
    data = simulate_survival(1000, random_state=0)
    rows = observe(data.X, data.y, treatment=data.treatment, event=data.event)
    fold = draw_folds(5, SurvivalProbability(1.0).strata(rows), rows, 0)
    for arm in (0, 1):
        for event in (False, True):
            counts = np.bincount(fold[(data.treatment == arm) & (data.event == event)], minlength=5)
            assert np.ptp(counts) <= 1
    few = observe(data.X, data.y, treatment=data.treatment, event=np.arange(1000) > 2)
    assert set(np.unique(SurvivalProbability(1.0).strata(few))) == {0, 1}


# Follow-up


def test_short_follow_up_warns_and_names_a_time_that_would_do():
    data = simulate_survival(3000, time=1.0, censoring_rate=1.5, random_state=0)
    effect = SurvivalProbability(1.0)
    with pytest.warns(
        OverlapWarning, match=r"followed to time=1 is below 0.2 in \d+.\d% of rows.*; time=(0.\d+) would do"
    ) as said:
        loss = known(effect, data)
    assert "below 0.2 of being followed to 1" in loss.overlap.notes[0]
    enough = float(str(said[0].message).split("; time=")[1].split(" ")[0])
    known(SurvivalProbability(enough), data)  # which warns of nothing, or this would be an error
    share = np.mean(data.nuisances["censoring_survival_control"](data.X, enough) < 0.2)
    assert 0.02 < share < 0.06


def test_where_no_time_would_do_it_says_so(data):
    nobody = {f"censoring_survival_{arm}": lambda X, t: np.full(len(X), 0.1) for arm in ("control", "treated")}
    with pytest.warns(OverlapWarning, match="no time on the grid would do: get longer follow-up"):
        known(EFFECTS["rmst"], data, nuisances={**data.nuisances, **nobody})


@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
def test_fitted_chances_of_follow_up_are_kept_from_zero_and_the_share_is_reported():
    data = simulate_survival(600, time=1.0, censoring_rate=1.5, random_state=0)
    found = CausalCalibrator(SurvivalProbability(1.0, min_followed=0.3), "linear", learners=FAST, random_state=0).fit(
        data.X, data.y, treatment=data.treatment, event=data.event, prediction=data.effect
    )
    curve = found.nuisances_["censoring_survival_control"]
    assert curve.table.min() == np.float32(0.3)
    moved = float(np.mean((curve.table == np.float32(0.3)).any(axis=1)))
    assert 0.1 < moved == found.overlap_.clipped["censoring_survival_control"]
    assert f"censoring_survival_control was kept at 0.3 or more in {moved:.1%} of rows" in found.overlap_.notes
    given = known(SurvivalProbability(1.0, min_followed=0.3), data)
    assert "censoring_survival_control" not in given.overlap.clipped


# Downstream


@both
def test_verdict_comparison_and_map_work(name, data):
    truth = getattr(data, TRUTH[name])
    loss = loss_of(EFFECTS[name], data)
    assert loss.origin.effect.startswith(type(EFFECTS[name]).__name__)
    assert "competing risks" in loss.origin.assumption
    verdict = assess(truth + 0.5, loss, random_state=0)
    assert verdict.status == "miscalibrated"
    found = CausalCalibrator(EFFECTS[name], "shift", learners=FAST, random_state=0).fit(
        data.X, data.y, treatment=data.treatment, event=data.event, prediction=truth + 0.5
    )
    assert compare(truth + 0.5, found.honest_prediction_, found.loss_).verdict == "improved"
    assert abs(found.calibrate([0.5])[0]) < 0.2
    score = found.score(data.X, data.y, treatment=data.treatment, event=data.event, prediction=truth + 0.5)
    assert np.isfinite(score)


def test_a_model_is_trained_by_folds_on_pseudo_outcomes_or_by_a_function_that_sees_events(data):
    columns = {"treatment": data.treatment, "event": data.event}
    settings = {"effect": EFFECTS["survival"], "method": "linear", "learners": FAST, "random_state": 0, "repeats": 1}
    trained = CrossCalibratedModel(LinearRegression(), **settings).fit(data.X, data.y, **columns)
    assert trained.predict(data.X).shape == (600,)
    seen = []

    def train(X, y, treatment, event):
        seen.append(event.mean())
        return LinearRegression().fit(X, y * event)

    CrossCalibratedModel(train, **settings).fit(data.X, data.y, **columns)
    assert len(seen) == 5


class Uplift:
    """A model of a library that knows nothing of events."""

    def fit(self, X, treatment, y):
        raise AssertionError("trained on censored times")

    def predict(self, X):
        raise AssertionError("asked")


def test_a_model_that_would_take_censored_times_for_outcomes_is_refused(data):
    model = CrossCalibratedModel(Uplift(), EFFECTS["survival"])
    with pytest.raises(OrthocalError, match="must accept `event`; Uplift would take censored times"):
        model.fit(data.X, data.y, treatment=data.treatment, event=data.event)


# Another library


def test_with_curves_of_kaplan_and_meier_it_is_the_difference_of_lifelines():
    """A trial: without covariates to learn from, both average the areas under the two curves; 30 cells are close to none."""
    data = simulate_survival(3000, time=0.8, randomised=True, censoring_rate=0.8, random_state=0)
    theirs = [
        restricted_mean_survival_time(
            KaplanMeierFitter().fit(data.y[data.treatment == arm], data.event[data.treatment == arm]), t=0.8
        )
        for arm in (0, 1)
    ]
    loss = loss_of(
        RestrictedMeanTime(0.8),
        data,
        nuisances={"propensity": np.full(3000, data.treatment.mean())},
        learners={"event": KaplanMeier(), "censoring": KaplanMeier()},
    )
    assert loss.target.mean() == pytest.approx(theirs[1] - theirs[0], abs=0.001)
    assert loss.target.std() / np.sqrt(3000) > 0.01  # the agreement is not that of two noisy numbers
