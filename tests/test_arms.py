"""Several arms: one set of nuisances, contrasts that add up, joint maps, decision calibration, and what a study makes of them."""

import json
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import orthocal
from orthocal import ArmScores, JointCalibrator, Linear, OrthocalError, Study
from orthocal.calibrators.decision_shifts import decision_shifts
from orthocal.calibrators.joint import FAMILIES
from orthocal.datasets import simulate_arms
from orthocal.effects import CATE
from orthocal.effects.arm_means import ArmMeans
from orthocal.joint_maps import DecisionShifts, JointMap
from orthocal.mapfile import about
from orthocal.nuisances.class_shares import ClassShares, kept_apart
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe
from orthocal.orthogonal import learn_cross

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}
LABELS = np.array(["none", "mail", "call"])


@pytest.fixture(scope="module")
def data():
    return simulate_arms(6000, confounding=0.5, random_state=0)


@pytest.fixture(scope="module")
def trial(data):
    """Three arms by name; `mail` exaggerated, `call` shifted."""
    table = pd.DataFrame(data.X, columns=[f"x{k}" for k in range(5)])
    return table.assign(
        y=data.y, a=LABELS[data.treatment], mail=1 + 2 * data.effect[:, 0], call=data.effect[:, 1] - 0.5
    )


ROLES = {
    "outcome": "y",
    "treatment": "a",
    "arms": "all",
    "control": "none",
    "covariates": [f"x{k}" for k in range(5)],
    "learners": FAST,
}
COLUMNS = {"mail": "mail", "call": "call"}


def scores_of(truth, rng, noise=1.0, groups=None):
    values = np.column_stack([np.zeros(len(truth)), truth]) + noise * rng.standard_normal(
        (len(truth), truth.shape[1] + 1)
    )
    return ArmScores(arms=tuple(range(truth.shape[1] + 1)), values=values, weight=np.ones(len(truth)), groups=groups)


def test_every_contrast_is_that_of_two_arms_with_the_same_nuisances(data):
    rows = observe(data.X, data.y, treatment=data.treatment)
    arms = learn_cross(ArmMeans((0, 1, 2)), rows, data.X, data.nuisances, 5, Recipe()).loss
    for one, other in ((1, 0), (2, 0), (2, 1)):
        given = {
            "propensity": data.nuisances[f"propensity_{one}"],
            "propensity_control": data.nuisances[f"propensity_{other}"],
            "outcome_treated": data.nuisances[f"outcome_{one}"],
            "outcome_control": data.nuisances[f"outcome_{other}"],
        }
        wanted = learn_cross(CATE(one, other), rows, data.X, given, 5, Recipe()).loss
        np.testing.assert_allclose(arms.contrast(one, other).numerator, wanted.numerator, atol=1e-12)
    gap = arms.contrast(2, 0).numerator - arms.contrast(1, 0).numerator
    np.testing.assert_allclose(arms.contrast(2, 1).numerator, gap, atol=1e-12)


def test_scores_are_orthogonal_in_all_nuisances_at_once():
    """One cell: pi = (.2, .3, .5), mu = (1, 2, 4); errors h in all of them move the mean score of arm k by h_pi h_mu / pi."""
    pi, mu, h = np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 4.0]), 0.01
    wrong_pi, wrong_mu = pi + h * np.array([1, 1, -2]), mu + h
    mean = wrong_mu + pi / wrong_pi * (mu - wrong_mu)
    np.testing.assert_allclose(mean - mu, h * (wrong_pi - pi) / wrong_pi, atol=1e-15)
    rows = observe(np.zeros((3, 1)), mu, treatment=np.arange(3))
    given = {f"propensity_{k}": wrong_pi[k] for k in range(3)} | {f"outcome_{k}": wrong_mu[k] for k in range(3)}
    scores = learn_cross(ArmMeans((0, 1, 2)), rows, np.zeros((3, 1)), given, 5, Recipe()).loss
    np.testing.assert_allclose(pi @ scores.values, mean, atol=1e-12)


def test_learnt_propensities_add_up_to_one_and_keep_away_from_zero(data):
    rows = observe(data.X, data.y, treatment=data.treatment)
    found = learn_cross(ArmMeans((0, 1, 2)), rows, data.X, None, 5, Recipe(FAST, clip=0.12, random_state=0))
    chances = np.column_stack([found.nuisances[f"propensity_{k}"] for k in range(3)])
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-12)
    assert chances.min() == pytest.approx(0.12)
    assert 0 < found.loss.overlap.clipped["propensity_0"] < 1


def test_two_chances_are_kept_apart_as_one_is_clipped():
    p = np.linspace(0, 1, 101)
    kept = kept_apart(np.column_stack([p, 1 - p]), 0.05)
    np.testing.assert_allclose(kept[:, 0], np.clip(p, 0.05, 0.95), atol=1e-15)
    three = kept_apart(np.array([[0.0, 0.001, 0.999], [0.3, 0.3, 0.4]]), 0.01)
    np.testing.assert_allclose(three.sum(axis=1), 1)
    np.testing.assert_allclose(three, [[0.01, 0.01, 0.98], [0.3, 0.3, 0.4]], atol=1e-12)


def test_rows_of_no_arm_of_the_study_are_kept(data):
    rows = observe(data.X, data.y, treatment=data.treatment)
    found = learn_cross(ArmMeans((0, 1)), rows, data.X, None, 5, Recipe(FAST, random_state=0))
    assert len(found.loss) == 6000
    total = found.nuisances["propensity_0"] + found.nuisances["propensity_1"]
    assert 0.3 < total.mean() < 0.75
    assert found.loss.contrast(1).target.mean() == pytest.approx(data.effect[:, 0].mean(), abs=0.12)


def test_shares_without_covariates_and_of_rare_classes():
    y = np.repeat([0.0, 1.0, 2.0], [50, 30, 20])
    np.testing.assert_allclose(
        ClassShares(None, 3).fit(np.empty((100, 0)), y).predict(np.empty((2, 0)))[1], [0.5, 0.3, 0.2]
    )
    from sklearn.ensemble import HistGradientBoostingClassifier

    rare = np.repeat([0.0, 1.0, 2.0], [97, 2, 1])
    learner = HistGradientBoostingClassifier(early_stopping=True, max_iter=5)
    found = ClassShares(learner, 4).fit(np.arange(100.0)[:, None], rare).predict(np.arange(3.0)[:, None])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found[:, 3] == 0).all()
    with pytest.raises(OrthocalError, match="must be learnt by a classifier; LinearRegression is none"):
        ClassShares(LinearRegression(), 3).fit(np.ones((100, 1)), y)


def test_the_joint_line_leaves_nothing_of_any_contrast():
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((3000, 3))
    predictions = truth @ rng.standard_normal((3, 3)) + 0.5
    scores = scores_of(truth, rng)
    after = JointCalibrator("linear").fit(predictions, scores).predict(predictions)
    design = np.column_stack([np.ones(3000), predictions])
    for one, other in ((1, 0), (2, 0), (3, 0), (2, 1), (3, 2)):
        full = np.column_stack([np.zeros(3000), after])
        rest = scores.contrast(one, other).target - (full[:, one] - full[:, other])
        np.testing.assert_allclose(design.T @ rest / 3000, 0, atol=1e-10)


def test_one_arm_is_the_line_of_one_contrast():
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((2000, 1))
    scores, prediction = scores_of(truth, rng), 1 + 2 * truth
    wanted = Linear().fit(prediction[:, 0], scores.contrast(1)).map_
    for method in ("linear", "separate", "common"):
        found = JointCalibrator(method).fit(prediction, scores).map_
        assert found.intercept[0] == pytest.approx(wanted.intercept, abs=1e-10)
        assert found.slopes[0, 0] == pytest.approx(wanted.slope, abs=1e-10)


@pytest.mark.parametrize("method", ["auto", *FAMILIES])
@pytest.mark.parametrize("decisions", [False, True])
def test_laws_of_joint_maps(method, decisions):
    """Row order does not matter, weight 2 is a row twice (in the map itself), a joint map survives its file."""
    rng = np.random.default_rng(3)
    truth = 0.5 * rng.standard_normal((1500, 2))
    scores, predictions = scores_of(truth, rng), truth + 0.5 * rng.standard_normal((1500, 2))
    found = JointCalibrator(method, decisions=decisions).fit(predictions, scores)
    order = rng.permutation(1500)
    again = JointCalibrator(method, decisions=decisions).fit(predictions[order], scores[order])
    np.testing.assert_allclose(found.predict(predictions), again.predict(predictions), atol=1e-9)
    if method != "auto" and not decisions:
        twice = np.concatenate([np.arange(1500), np.arange(700)])
        weight = np.where(np.arange(1500) < 700, 2.0, 1.0)
        heavy = ArmScores(arms=scores.arms, values=scores.values, weight=weight)
        one = JointCalibrator(method).fit(predictions, heavy).map_
        two = JointCalibrator(method).fit(predictions[twice], scores[twice]).map_
        np.testing.assert_allclose(one.slopes, two.slopes, atol=1e-10)
        np.testing.assert_allclose(one.intercept, two.intercept, atol=1e-10)


def test_a_right_model_is_left_nearly_alone_and_a_wrong_one_is_not():
    rng = np.random.default_rng(4)
    truth = rng.standard_normal((4000, 3))
    scores = scores_of(truth, rng, noise=2.0)
    assert JointCalibrator().fit(truth, scores).weights_["identity"] > 0.5
    wrong = JointCalibrator().fit(0.5 + 2 * truth, scores)
    assert wrong.weights_["identity"] < 1e-6
    np.testing.assert_allclose(wrong.predict(0.5 + 2 * truth), truth, atol=0.35)


def test_shifts_of_decisions_by_hand():
    """Costs 0 and 1: (3, 3.5) nets (3, 2.5), arm 0 wins by 3; (1, 3) nets (1, 2), arm 1 wins by 2; (-1, .5) has no winner."""
    shifts = DecisionShifts([0.0, 1.0], [[2.0], [2.0]], [[9, 9], [1, 2], [3, 4], [5, 6], [7, 8]])
    np.testing.assert_array_equal(shifts.cell_of(np.array([[3, 3.5], [1, 3], [-1, 0.5], [2, 0]])), [2, 3, 0, 1])
    np.testing.assert_array_equal(shifts.predict(np.array([[3, 3.5], [-1, 0.5]])), [[6, 7.5], [8, 9.5]])


def test_the_winner_is_brought_down_to_what_it_delivers():
    """Two arms without any effect, predicted by noise: the winner promises more than nothing, and delivers nothing."""
    rng = np.random.default_rng(5)
    values = rng.standard_normal((20_000, 2))
    scores = scores_of(np.zeros((20_000, 2)), rng)
    step = decision_shifts(values, scores, np.zeros(2))
    after = step.predict(values)
    promised = [np.maximum(one.max(axis=1), 0).mean() for one in (values, after)]
    assert promised[1] < 0.6 * promised[0]
    assert (step.shifts[0] == 0).all()


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize("bins", [1, 3])
def test_every_form_of_a_joint_map_gives_the_same_numbers(tmp_path, rounds, bins):
    rng = np.random.default_rng(6)
    decisions = tuple(
        DecisionShifts(rng.random(3) / 5, np.sort(rng.random((3, bins - 1))), rng.standard_normal((1 + 3 * bins, 3)))
        for _ in range(rounds)
    )
    fitted = JointMap(rng.standard_normal(3), rng.standard_normal((3, 3)), decisions)
    names, predictions = ["a", "b c", "select"], rng.standard_normal((300, 3))
    wanted, table = fitted.predict(predictions), pd.DataFrame(predictions, columns=names)
    sql = orthocal.to_sql(fitted, names, quote='"')
    found = duckdb.from_df(table).project(sql).df()
    np.testing.assert_allclose(found.to_numpy(), wanted, atol=1e-12)
    assert list(found.columns) == ["a_calibrated", "b c_calibrated", "select_calibrated"]
    lite = sqlite3.connect(":memory:")
    table.to_sql("t", lite, index=False)
    np.testing.assert_allclose(lite.execute(f"SELECT {sql} FROM t").fetchall(), wanted, atol=1e-12)
    space = {}
    exec(orthocal.to_python(fitted), space)
    np.testing.assert_allclose([space["calibrate"](list(row)) for row in predictions], wanted, atol=1e-12)
    assert space["calibrate"]([None, 1.0, 2.0]) is None
    orthocal.save(fitted, tmp_path / "map.json")
    np.testing.assert_array_equal(orthocal.load(tmp_path / "map.json").predict(predictions), wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slopes": [[1.0, 0.0]]}, "one intercept for each arm"),
        ({"slopes": [[1.0, "a"], [0.0, 1.0]]}, "`slopes` of a map file must hold numbers; it holds 'a'"),
        ({"decisions": [{"shape": "affine", "intercept": 1.0, "slope": 1.0}]}, "`shape` must be one of 'shifts'"),
        ({"intercept": [1.0, None]}, "must hold numbers; it holds None"),
    ],
)
def test_a_bad_file_of_a_joint_map_gets_one_sentence(tmp_path, change, message):
    record = {"format": "orthocal-map", "version": 1, "shape": "joint", "intercept": [0.0, 0.0]}
    record |= {"slopes": [[1.0, 0.0], [0.0, 1.0]], "decisions": []}
    (tmp_path / "map.json").write_text(json.dumps(record | change))
    with pytest.raises(OrthocalError, match=message):
        orthocal.load(tmp_path / "map.json")


def test_a_study_of_several_arms(trial, data, tmp_path, monkeypatch):
    learnt = []
    fit = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", lambda self, *a, **k: learnt.append(1) or fit(self, *a, **k))
    study = Study(trial, **ROLES, predictions=COLUMNS)
    assert "arms=('none', 'call', 'mail')" in repr(study)
    verdict = study.assess()
    assert list(verdict.contrasts) == ["call vs none", "mail vs none", "mail vs call"]
    assert verdict.status == "miscalibrated"
    assert verdict.of("mail").status == "miscalibrated"
    assert max(verdict.p_values.values()) < 0.05
    done = study.calibrate(decisions=True)
    assert len(learnt) == 5  # one propensity for all arms, once in each fold
    assert done.recommendation.action == "use the calibrated prediction"
    assert done.before.status == "miscalibrated" != done.status
    assert done.comparison.verdict == "improved"
    table = done.table()
    truth = {"call": data.effect[:, 1], "mail": data.effect[:, 0]}
    for name, effect in truth.items():
        before, after = (np.mean((table[column] - effect) ** 2) for column in (name, f"{name}_calibrated"))
        assert after < 0.1 * before
    done.save(tmp_path / "map.json")
    assert about(tmp_path / "map.json")["columns"] == ["call", "mail"]
    np.testing.assert_allclose(
        orthocal.load(tmp_path / "map.json").predict(trial[["call", "mail"]]),
        table[["call_calibrated", "mail_calibrated"]],
    )
    done.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "mail vs call" in page
    assert "Use the calibrated prediction" in page
    json.dumps([done.to_dict(), verdict.to_dict()], allow_nan=False)
    for text in (done.summary(), verdict.summary(), done._repr_html_(), verdict._repr_html_()):
        assert "mail vs call" in text


def test_predictions_of_several_arms_in_every_form(trial, data):
    study = Study(trial, **ROLES)
    one = study.assess(COLUMNS)
    matrix = trial[["call", "mail"]].to_numpy()
    model = LinearRegression().fit(trial[ROLES["covariates"]][:50], matrix[:50, 0])
    several = study.assess(
        {
            "matrix": matrix,
            "frame": trial[["mail", "call"]],
            "arrays": {"mail": matrix[:, 1], "call": trial["call"]},
            "models": {"mail": "mail", "call": model},
        }
    )
    for name in ("matrix", "frame", "arrays"):
        assert several[name].of("mail", "call").error == pytest.approx(one.of("mail", "call").error, rel=1e-12)
    assert several["models"].of("mail").error == pytest.approx(one.of("mail").error, rel=1e-12)
    assert (
        study.compare(COLUMNS, {"mail": data.effect[:, 0], "call": data.effect[:, 1]}).verdict
        == "second has the lower loss"
    )


def test_without_rows_held_out_nothing_is_said_of_the_map(trial):
    done = Study(trial, **ROLES).calibrate(COLUMNS, "linear", holdout=0)
    assert done.after is None
    assert done.recommendation.action == "hold rows out"
    assert "not verified" in done.summary()


def test_the_known_propensity_of_every_arm_is_checked():
    """The control's share is right, those of the others are not."""
    data = simulate_arms(4000, random_state=0)
    table = pd.DataFrame({"x": data.X[:, 0], "y": data.y, "a": data.treatment})
    roles = {"outcome": "y", "treatment": "a", "arms": "all", "covariates": ["x"], "learners": "linear"}
    for known, failed in (({0: 1 / 3, 1: 0.2, 2: 7 / 15}, ["balance"]), (1 / 3, [])):
        found = Study(table, **roles, propensity=known).checks()
        assert [one.name for one in found if one.result == "failed"] == failed


def test_a_map_is_verified_on_rows_it_never_saw(trial):
    study, held = Study(trial, **ROLES), np.arange(6000) % 3 == 0
    done = study.calibrate(COLUMNS, "linear", holdout=held)
    matrix, fitted = trial[["call", "mail"]].to_numpy(), np.flatnonzero(~held)
    wanted = JointCalibrator("linear").fit(matrix[fitted], study.questions.scores[fitted]).map_
    np.testing.assert_allclose(done.verified_map.slopes, wanted.slopes, atol=1e-12)
    np.testing.assert_array_equal(done.judged, np.flatnonzero(held))
    everything = JointCalibrator("linear").fit(matrix, study.questions.scores).map_
    assert not np.allclose(wanted.slopes, everything.slopes, atol=1e-4)
    if done.map is not done.verified_map:
        np.testing.assert_allclose(done.map.slopes, everything.slopes, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"control": None},
            "`control` must be named where there are several arms; the treatment has 'call', 'mail', 'none'",
        ),
        ({"arms": ["mail", "cal"]}, "Every arm must occur in the treatment; 'cal' does not. Did you mean 'call'"),
        ({"arms": "mail"}, "`arms` must be 'all' or a list"),
        ({"arms": []}, "must name at least one arm beside the control"),
        ({"arm": "mail"}, "`arm` must be left out where there are several arms"),
        ({"effect": "late"}, "`effect` must be 'cate' where there are several arms"),
        ({"propensity": 0.5}, "as one number for 3 arms it can only be 1/3"),
        ({"propensity": {"mail": 0.5}}, "that of 'none' is missing"),
        ({"propensity": {"mail": 0.5, "call": 0.6}}, "strictly inside|add up to 1"),
        ({"propensity": {"post": 0.5}}, "'post' is none of them"),
        ({"instrument": "x1"}, "`instrument` must be left out"),
    ],
)
def test_a_study_that_cannot_be_gets_one_sentence(trial, change, message):
    with pytest.raises(OrthocalError, match=message):
        Study(trial, **ROLES | change).assess(COLUMNS)


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ({"mail": "mail"}, "Every arm must have a prediction; 'call' has none"),
        ({"mail": "mail", "call": "call", "none": "y"}, "'none' is the control"),
        ({"mail": "mail", "call": "call", "post": "y"}, "'post' is none of them"),
        ("mail", "must name a column for each arm"),
        (["mail", "call"], "must say which column is of which arm"),
        (np.zeros((6000, 3)), "one column for each of the 2 arms; their shape is \\(6000, 3\\)"),
        (np.zeros((60, 2)), "must have one row for each of the 6,000 rows"),
        (np.full((6000, 2), np.nan), "must be finite in every row; row 0 of column 0 is nan"),
        ({"mail": "mail", "call": "cal"}, "Did you mean 'call'"),
    ],
)
def test_predictions_that_cannot_be_get_one_sentence(trial, predictions, message):
    with pytest.raises(OrthocalError, match=message):
        Study(trial, **ROLES).assess(predictions)


def test_methods_of_one_contrast_are_refused(trial):
    with pytest.raises(OrthocalError, match="`method` must be one of 'auto', .* where there are several arms"):
        Study(trial, **ROLES).calibrate(COLUMNS, "isotonic")
    one = Study(trial, **ROLES | {"arms": None, "arm": "mail"})
    with pytest.raises(OrthocalError, match="`decisions` must go with several arms"):
        one.calibrate("mail", decisions=True)


def test_policies_and_choices_of_several_arms(trial, data):
    study = Study(trial.assign(fee=0.1), **ROLES, predictions=COLUMNS)
    held = np.arange(6000) >= 3000
    decision = study.policy(cost={"mail": 0.1, "call": "fee"}, method="linear", holdout=held)
    assert list(decision.values)[-2:] == ["prediction", "prediction, calibrated"]
    assert decision.rows == 3000
    rule = decision.values["prediction, calibrated"]
    matrix = trial[["call", "mail"]].to_numpy()
    fitted = JointCalibrator("linear").fit(matrix[:3000], study.questions.scores[np.arange(3000)])
    net = fitted.predict(matrix[3000:]) - 0.1
    gains = study.questions.scores.gains[3000:] - 0.1
    best = net.argmax(axis=1)
    wanted = np.where(net.max(axis=1) > 0, gains[np.arange(3000), best], 0).mean()
    assert rule.value.value == pytest.approx(wanted, abs=1e-12)
    assert decision.values["prediction"].excess.interval[0] > 0 > rule.excess.interval[0]
    choice = study.choose({"wrong": COLUMNS, "right": data.effect[:, ::-1]}, method="linear", cost=0.1)
    assert choice.better_than("right", "average effect")
    assert list(choice.average) == ["call", "mail"]
    assert "(call)" in choice.summary()
    json.dumps([choice.to_dict(), decision.to_dict()], allow_nan=False)
    with pytest.raises(OrthocalError, match="`holdout` must be above 0"):
        study.choose(holdout=0)


def test_policies_of_one_contrast_value_the_same_scores(trial, data):
    one = {**ROLES, "arms": None, "arm": "mail"}
    study = Study(trial.assign(spent=np.where(trial["a"] == "mail", 0.2, 0.0)), **one)
    loss, scores = study.rows.engine.learnt.loss, study.rows.engine.scores
    np.testing.assert_allclose(scores.gains[:, 0], loss.target, atol=1e-12)
    decision = study.policy("mail", cost=0.2, holdout=0, spend="spent")
    wanted = study.assess("mail", cost=0.2).value
    assert decision.values["mail"].value.value == pytest.approx(wanted.value, abs=1e-12)
    assert decision.values["mail"].value.interval == pytest.approx(wanted.interval, abs=1e-12)
    assert decision.values["everyone"].return_on_spend.value == pytest.approx(loss.target.mean() / 0.2, rel=1e-9)
    with pytest.raises(OrthocalError, match="Decisions must rest on an effect of arms"):
        Study(trial, **one | {"effect": "quantile", "control": None, "learners": None}).policy("mail")


@pytest.fixture(scope="module")
def small():
    data = simulate_arms(1500, random_state=1)
    table = pd.DataFrame({"x": data.X[:, 0], "y": data.y, "a": data.treatment})
    return table.assign(one=1 + 2 * data.effect[:, 0], two=data.effect[:, 1], spent=(data.treatment > 0) * 3.0)


BY_NUMBER = {"outcome": "y", "treatment": "a", "arms": "all", "covariates": ["x"], "learners": "linear"}
NUMBERED = {1: "one", 2: "two"}


def test_a_table_of_predictions_is_read_by_the_names_of_its_columns(small):
    study = Study(small, **BY_NUMBER, propensity=1 / 3)
    wanted = study.assess(NUMBERED).of(1).error
    for names in ([2, 1], ["2", "1"]):
        assert study.assess(small[["two", "one"]].set_axis(names, axis=1)).of(1).error == wanted
    with pytest.raises(OrthocalError, match="must have a column named as each arm; 1 has none among one, two"):
        study.assess(small[["one", "two"]])
    with pytest.raises(OrthocalError, match="must hold numbers, a column for each arm"):
        study.assess({"m": ["one", "two"]})
    with pytest.raises(OrthocalError, match="'one' is that of two arms"):
        study.assess({1: "one", 2: "one"})


def test_models_are_called_by_their_names(small):
    study = Study(small, **BY_NUMBER, propensity=1 / 3, predictions={"m": NUMBERED, "k": {1: "two", 2: "one"}})
    assert study.assess("m").of(1).error == study.assess()["m"].of(1).error
    assert "m" in study.compare("m", "k").verdict
    with pytest.raises(OrthocalError, match="`cost` must be left out where there are several arms"):
        study.compare("m", "k", cost=1.0)


def test_what_was_spent_is_no_covariate_and_a_wrong_propensity_is_said_first(small):
    study = Study(small, **BY_NUMBER | {"covariates": ["x", "spent"]}, propensity=1 / 3)
    with pytest.raises(OrthocalError, match="`spend` must not name a covariate"):
        study.policy(NUMBERED, cost=0.1, spend="spent")
    wrong = Study(small, **BY_NUMBER, propensity={0: 0.6, 1: 0.2, 2: 0.2}).policy(NUMBERED, cost=0.1, method="linear")
    assert wrong.recommendation.startswith("Do not rely on this before the failed check is resolved: balance.")
    assert "failed: balance" in wrong.summary()
    with pytest.raises(OrthocalError, match="must not be called 'm, calibrated'"):
        study.policy({"m": NUMBERED, "m, calibrated": NUMBERED}, method="linear")


def test_costs_count_where_decisions_are_calibrated_and_only_against_the_control(small):
    study = Study(small, **BY_NUMBER, propensity=1 / 3)
    done = study.calibrate(NUMBERED, "linear", decisions=True, cost=0.4)
    assert all((step.costs == 0.4).all() for step in done.verified_map.decisions)
    verdict = study.assess(NUMBERED, cost=0.5)
    assert (verdict.of(1).value.cost, verdict.of(2, 1).value) == (0.5, None)


def test_rows_of_no_weight_change_nothing(small):
    more = pd.concat([small.assign(w=1.0), small.head(300).assign(w=0.0, one=1e3, y=1e3)], ignore_index=True)
    held = np.arange(1800) % 3 == 0
    plain = Study(small.assign(w=1.0), **BY_NUMBER, propensity=1 / 3, weight="w", nuisances=None)
    with_more = Study(more, **BY_NUMBER, propensity=1 / 3, weight="w")
    one, two = (study.calibrate(NUMBERED, "linear", holdout=held[: study.rows.count]) for study in (plain, with_more))
    np.testing.assert_allclose(two.about["fitted_ranges"], one.about["fitted_ranges"])
    np.testing.assert_allclose(one.verified_map.slopes, two.verified_map.slopes, atol=0.05)
    with pytest.raises(OrthocalError, match="leaves too few"):
        with_more.calibrate(NUMBERED, "linear", holdout=np.arange(1800) >= 1500)


def test_the_shipped_map_of_several_arms_must_not_be_judged_on_its_own_rows(small):
    study = Study(small, **BY_NUMBER, propensity=1 / 3)
    done = study.calibrate(NUMBERED, "linear")
    with pytest.warns(orthocal.HonestyWarning, match="fitted on the rows of this study"):
        study.assess(done.map.predict(done.predictions))


def test_labels_that_look_alike_are_refused():
    with pytest.raises(OrthocalError, match="must hold labels of one kind; it mixes int, str"):
        observe(np.zeros((3, 1)), np.zeros(3), treatment=np.array([0, "1", 1], dtype=object))


def test_a_floor_that_no_arm_can_have(data):
    rows = observe(data.X, data.y, treatment=data.treatment)
    with pytest.raises(OrthocalError, match="`clip` must be below 1/3 where there are 3 arms; it is 0.4"):
        learn_cross(ArmMeans((0, 1, 2)), rows, data.X, None, 5, Recipe(FAST, clip=0.4, random_state=0))


def test_only_the_arm_that_needs_the_floor_counts_as_clipped():
    from orthocal.nuisances.cross_fit import clip_fitted

    rows = observe(np.zeros((4, 1)), np.arange(4.0), treatment=np.array([0, 1, 2, 0]))
    raw = {"propensity_0": np.full(4, 0.5), "propensity_1": np.full(4, 0.49), "propensity_2": np.full(4, 0.01)}
    found = clip_fitted(ArmMeans((0, 1, 2)).nuisances(rows)[:1], dict(raw), {}, 0.05, np.zeros(4, dtype=np.int64))
    assert found.clipped == {"propensity_0": 0.0, "propensity_1": 0.0, "propensity_2": 1.0}
    np.testing.assert_allclose(sum(found.values.values()), 1.0)
