"""The choice among models: the confidence set by hand and by known distributions, the leaderboard, and what it shows."""

import json
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, studentized_range, t, ttest_1samp

from orthocal import HonestyWarning, OrthocalError, QuadraticLoss, Study, compare, plots
from orthocal.assessment.compare import loss_change, moments_of
from orthocal.assessment.confidence_set import PairedLosses, confidence_set, rows_to_separate
from orthocal.assessment.records import Settings
from orthocal.assessment.rivals import Entry, leaderboard_of
from orthocal.assessment.rules import blanket_gains, decided_gain
from orthocal.datasets import simulate_cate
from orthocal.losses import ArmScores

NUISANCES = ("propensity", "outcome_control", "outcome_treated")


def set_of(losses, weight=None, groups=None, **settings):
    """The confidence set of rivals from their losses, relative to those of the first."""
    weight = np.ones(losses.shape[1]) if weight is None else weight
    relative = [weight * (loss - losses[0]) for loss in losses]
    return confidence_set(PairedLosses.of(moments_of([weight, *relative], groups), len(losses)), **settings)


@pytest.fixture(scope="module")
def losses():
    """Of five rivals, of which the last two are worse."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal(400)
    return shared + rng.standard_normal((5, 400)) + np.array([[0.0], [0.02], [0.1], [0.2], [0.6]])


def test_two_rivals_are_a_paired_t_test_by_hand():
    """Differences 1, 2, 3, 4: mean 5/2, squares 5, standard error sqrt(5/3)/2 = 0.6455, t = 3.873 on 3 degrees of freedom."""
    found = set_of(np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]]))
    np.testing.assert_allclose(found.p_values, [1.0, 2 * t.sf(2.5 / np.sqrt(5 / 12), 3)])
    assert found.members.tolist() == [True, False]
    assert set_of(np.array([[0.0] * 4, [1.0, 2.0, 3.0, 4.0]]), level=0.99).members.all()


def test_two_rivals_are_a_paired_t_test_of_any_losses(losses):
    for other in losses[1:]:
        p_value = ttest_1samp(other - losses[0], 0).pvalue
        assert set_of(np.array([losses[0], other])).p_values.min() == pytest.approx(p_value)


@pytest.mark.parametrize("rivals", [3, 6])
def test_the_first_test_of_independent_rivals_is_tukeys(rivals):
    """Means with equal, independent errors: the largest t is the studentised range over the root of 2."""
    means = np.linspace(0, 1, rivals)
    difference = means[:, None] - means
    variance = np.where(np.eye(rivals) == 1, 0.0, 2 * 0.35**2)
    found = confidence_set(PairedLosses(difference, variance, np.full((rivals, rivals), 1e9)), draws=40_000)
    expected = studentized_range.sf(1 / 0.35, rivals, np.inf)
    assert found.p_values.min() == pytest.approx(expected, abs=4 * np.sqrt(expected / 40_000))
    tail = studentized_range.ppf(0.95, rivals, np.inf) / np.sqrt(2)
    assert found.members.all()
    assert found.critical == pytest.approx(tail, abs=0.03)


def test_a_p_value_is_the_largest_up_to_the_test_that_leaves_a_rival_out():
    """Independent means 0, 2.25 and 2.3, errors of differences 1: the first test has p = 0.056, the second alone 0.024."""
    means = np.array([0.0, 2.25, 2.3])
    pairs = PairedLosses(means[:, None] - means, 1.0 - np.eye(3), np.full((3, 3), 1e9))
    found = confidence_set(pairs, draws=40_000)
    assert found.p_values[2] == pytest.approx(studentized_range.sf(2.3 * np.sqrt(2), 3, np.inf), abs=0.004)
    assert found.p_values.tolist() == [1.0, found.p_values[2], found.p_values[2]]


def test_rounding_of_the_covariance_does_not_move_the_draws():
    """The covariance of independent rivals has equal eigenvalues, so that its eigenvectors are any."""
    means, rng = np.linspace(0, 1.0, 6), np.random.default_rng(0)
    found = []
    for size in (0.0, 1e-14, 1e-13):
        noise = size * rng.standard_normal((6, 6))
        variance = (1.0 - np.eye(6)) * (0.1 + noise + noise.T)
        pairs = PairedLosses(means[:, None] - means, variance, np.full((6, 6), 1e9))
        found.append(confidence_set(pairs).p_values)
    np.testing.assert_allclose(found[1:], [found[0], found[0]], atol=3e-4)


def test_p_values_do_not_fall_from_the_worst_to_the_best(losses):
    found = set_of(losses)
    order = np.argsort(losses.mean(axis=1))[::-1]
    assert all(one <= other for one, other in pairwise(found.p_values[order]))
    assert found.p_values.max() == 1.0
    assert found.members.tolist() == (found.p_values > 0.05).tolist()
    assert found.members.tolist() == [True, True, False, True, False]  # the third is worse than the fourth by chance


def test_rivals_with_the_same_losses_never_leave_each_other_out(losses):
    twice = np.array([losses[4], losses[0], losses[0], losses[4]])
    found = set_of(twice)
    assert found.members.tolist() == [False, True, True, False]
    assert found.p_values[1] == found.p_values[2] == 1.0
    assert found.p_values[0] == found.p_values[3]
    assert found.p_values[3] == pytest.approx(ttest_1samp(losses[4] - losses[0], 0).pvalue)
    assert found.critical == norm.ppf(0.975)
    assert set_of(np.array([losses[0]] * 3)).p_values.tolist() == [1.0, 1.0, 1.0]


def test_a_difference_that_is_the_same_in_every_row_is_certain():
    found = set_of(np.array([np.zeros(10), np.full(10, 0.25)]))
    assert found.p_values.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_scale_of_the_losses_does_not_matter(losses, scale):
    np.testing.assert_allclose(set_of(scale * losses).p_values, set_of(losses).p_values, atol=3e-4)


def test_neither_the_order_of_rows_nor_that_of_rivals_matters(losses):
    expected, rng = set_of(losses).p_values, np.random.default_rng(1)
    np.testing.assert_allclose(set_of(losses[:, rng.permutation(400)]).p_values, expected, atol=3e-4)
    np.testing.assert_allclose(set_of(losses[[0, 3, 2, 4, 1]]).p_values, expected[[0, 3, 2, 4, 1]], atol=3e-4)
    np.testing.assert_allclose(set_of(losses[[2, 3, 0, 4, 1]]).p_values, expected[[2, 3, 0, 4, 1]], atol=0.02)


def test_draws_are_seeded(losses):
    assert set_of(losses).p_values.tolist() == set_of(losses).p_values.tolist()
    assert set_of(losses, random_state=1).p_values.tolist() != set_of(losses).p_values.tolist()


def test_weights_are_sampling_weights(losses):
    """Equal ones change nothing; of unequal ones the effective number counts: 4^2 / (4 + 1 + 1) on rows of weight 2, 1, 1."""
    np.testing.assert_allclose(set_of(losses, np.full(400, 3.0)).p_values, set_of(losses).p_values, atol=3e-4)
    difference, weight = np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 1.0])
    centred = weight * (difference - 2)  # the weighted mean is (2 + 2 + 4) / 4
    statistic = 2 / (np.sqrt(centred @ centred * 3 / 2) / 4)
    found = set_of(np.array([np.zeros(3), difference]), weight)
    assert found.p_values[1] == pytest.approx(2 * t.sf(statistic, 16 / 6 - 1))


def test_clusters_are_the_units(losses):
    """Rows twice over are no more evidence, and rows of their own are clusters of one."""
    groups = np.tile(np.arange(400), 2)
    both = set_of(np.tile(losses, 2), groups=groups)
    alone = set_of(losses, groups=np.arange(400))
    np.testing.assert_allclose(both.p_values, alone.p_values, atol=3e-4)
    np.testing.assert_allclose(alone.p_values, set_of(losses).p_values, atol=0.01)
    assert set_of(np.tile(losses, 2)).p_values[3] < 0.5 * both.p_values[3]


def test_rows_to_separate_by_hand():
    """Normal quantiles 1.95996 and 0.84162 add to 2.80158; at a statistic of 1.4 that is 2.00113^2 = 4.00452 times the rows."""
    assert rows_to_separate(1.4, 1000, float(norm.ppf(0.975))) == 4005
    assert rows_to_separate(0.0, 1000, 1.96) is None


@pytest.mark.parametrize(("settings", "message"), [({"level": 1.0}, "level"), ({"draws": 0}, "draws")])
def test_settings_of_the_set_are_checked(losses, settings, message):
    with pytest.raises(OrthocalError, match=f"`{message}` must"):
        set_of(losses, **settings)


@pytest.fixture
def made():
    """Effects about 0.5 with noise; a good model, one as good as nothing, and constants."""
    rng = np.random.default_rng(2)
    effect = 0.5 + rng.standard_normal(800)
    loss = QuadraticLoss(effect + rng.standard_normal(800), np.ones(800))
    entries = [
        Entry("average effect", np.full(800, 0.5)),
        Entry("no effect", np.zeros(800)),
        Entry("good", effect + 0.3 * rng.standard_normal(800), "good"),
        Entry("good, calibrated", effect + 0.2 * rng.standard_normal(800), "good", True),
        Entry("poor", 0.5 + rng.standard_normal(800), "poor"),
        Entry("poor, calibrated", np.full(800, 0.5) * (1 + 1e-15), "poor", True),
    ]
    return SimpleNamespace(entries=entries, loss=loss, effect=effect, noise=rng.standard_normal(800))


def by_name(board):
    return {rival.name: rival for rival in board.rivals}


def test_clusters_of_unequal_size_are_those_of_a_comparison(made):
    groups = np.minimum(np.arange(800) // 10, 60)
    loss = replace(made.loss, groups=groups)
    board = leaderboard_of(made.entries[:3], loss, Settings())
    for entry in made.entries[1:3]:
        expected, found = compare(made.entries[0].prediction, entry.prediction, loss), by_name(board)[entry.name]
        assert found.relative_loss.interval == pytest.approx(expected.interval)
        alone = compare(made.entries[0].prediction, entry.prediction, made.loss)
        assert found.relative_loss.interval != pytest.approx(alone.interval, rel=0.01)


def test_relative_losses_and_paired_differences_are_comparisons(made):
    board = leaderboard_of(made.entries, made.loss, Settings())
    first = made.entries[0].prediction
    for entry in made.entries[1:5]:
        expected, found = compare(first, entry.prediction, made.loss), by_name(board)[entry.name].relative_loss
        assert found.value == pytest.approx(expected.risk_difference)
        assert found.interval == pytest.approx(expected.interval)
    one = board.comparisons[0]
    expected = compare(made.entries[4].prediction, made.entries[2].prediction, made.loss)
    assert (one.first, one.second) == ("good", "poor")
    assert one.difference.interval == pytest.approx(expected.interval)
    p_values = [pair.p_value for pair in board.comparisons]
    assert board.comparisons[0].p_value == pytest.approx(2 * min(expected.p_value_harm, 1 - expected.p_value_harm))
    assert [pair.second for pair in board.comparisons] == ["poor", "poor, calibrated"]
    adjusted = [pair.p_value_adjusted for pair in board.comparisons]
    assert adjusted[np.argmin(p_values)] == pytest.approx(2 * min(p_values), abs=0)


def test_the_order_is_by_mean_loss_and_rounding_decides_nothing(made):
    board = leaderboard_of(made.entries, made.loss, Settings())
    values = [rival.relative_loss.value for rival in board.rivals]
    assert values == sorted(values)
    assert by_name(board)["poor, calibrated"].relative_loss.value == 0.0
    assert by_name(board)["poor, calibrated"].p_value == by_name(board)["average effect"].p_value
    assert not by_name(board)["average effect"].is_in_set


def test_rows_needed_are_of_all_rows_and_only_for_the_set(made):
    entries = [*made.entries[:2], Entry("a", made.effect, "a"), Entry("b", made.effect + 0.1 * made.noise, "b")]
    board = leaderboard_of(entries, made.loss, Settings(), share=0.25)
    best, other = (rival for rival in board.rivals if rival.is_in_set)
    paired = board.comparisons[0]
    apart = norm.isf(paired.p_value / 2)
    assert other.rows_needed == np.ceil(3200 * ((norm.ppf(0.975) + norm.ppf(0.8)) / apart) ** 2)
    assert best.rows_needed is None
    assert all(rival.rows_needed is None for rival in board.rivals if not rival.is_in_set)


def test_far_from_zero_no_digits_are_lost(made):
    """Losses are near 10^15 there, and differences of them near 1."""
    far = 2.0**25
    loss = QuadraticLoss(made.loss.numerator + far, made.loss.denominator)
    moved = [entry._replace(prediction=entry.prediction + far) for entry in made.entries[:5]]
    expected, found = (
        leaderboard_of(rows, own, Settings()) for rows, own in ((made.entries[:5], made.loss), (moved, loss))
    )
    for one, other in zip(expected.rivals, found.rivals, strict=True):
        assert one.name == other.name
        assert one.relative_loss.value == pytest.approx(other.relative_loss.value, abs=1e-6)
        assert one.p_value == pytest.approx(other.p_value, abs=3e-4)


def test_rows_of_weight_0_are_no_evidence(made):
    weight = (np.arange(800) < 500).astype(float)
    loss = QuadraticLoss(weight * made.loss.numerator, weight, weight)
    fewer = [entry._replace(prediction=entry.prediction[:500]) for entry in made.entries]
    one = leaderboard_of(made.entries, loss, Settings(cost=0.1))
    other = leaderboard_of(fewer, made.loss[np.arange(500)], Settings(cost=0.1))
    assert [rival.p_value for rival in one.rivals] == [rival.p_value for rival in other.rivals]
    with pytest.raises(OrthocalError, match="positive weight"):
        leaderboard_of(made.entries, QuadraticLoss(0 * weight, 0 * weight, 0 * weight), Settings())


def test_values_of_decisions_by_hand():
    """Effects 3, -1, 2, 0 at a cost of 1: net gains 2, -2, 1, -1; the model treats rows 0 and 3, everyone is worth 0."""
    loss = QuadraticLoss(np.array([3.0, -1.0, 2.0, 0.0]), np.ones(4))
    prediction = np.array([2.0, 0.0, 1.0, 5.0])
    board = leaderboard_of(
        [Entry("average effect", np.full(4, 1.0)), Entry("model", prediction, "model")], loss, Settings(cost=1.0)
    )
    assert [(rule.name, rule.value.value) for rule in board.rules] == [("treat no one", 0.0), ("treat everyone", 0.0)]
    rival = by_name(board)["model"]
    assert rival.value.value == 0.25
    assert rival.gain.value == 0.25
    assert rival.value.standard_error == pytest.approx(np.std([2, 0, 0, -1], ddof=1) / 2)
    assert by_name(board)["average effect"].value.value == 0.0


def test_the_gain_is_paired_with_the_best_rule_for_everyone(made):
    loss = QuadraticLoss(made.loss.numerator + 3, made.loss.denominator)
    moved = [entry._replace(prediction=entry.prediction + 3) for entry in made.entries[:5]]
    board = leaderboard_of(moved, loss, Settings(cost=3.0))
    everyone = next(rule for rule in board.rules if rule.name == "treat everyone")
    good = by_name(board)["good"]
    assert good.gain.value == pytest.approx(good.value.value - everyone.value.value)
    assert good.gain.standard_error < np.hypot(good.value.standard_error, everyone.value.standard_error)


@pytest.fixture
def arms():
    rng = np.random.default_rng(3)
    effect = rng.standard_normal((600, 2)) + np.array([0.2, 0.0])
    values = np.column_stack([np.zeros(600), effect]) + 0.5 * rng.standard_normal((600, 3))
    return effect, ArmScores(arms=("none", "mail", "call"), values=values, weight=rng.uniform(0.5, 2.0, 600))


def test_several_arms_add_up_the_losses_of_their_contrasts(arms):
    effect, scores = arms
    other = 0.5 * effect
    parts = [
        loss_change(scores.contrast(arm), effect[:, place], other[:, place])
        for place, arm in enumerate(("mail", "call"))
    ]
    np.testing.assert_allclose(loss_change(scores, effect, other), sum(parts))


def test_several_arms_are_decided_by_hand():
    """Gains of two arms 1, 4 and -2, 3 and 0, 1; costs 0.5 and 2. Rows take arm 2, arm 1, and none."""
    values = np.array([[0.0, 1.0, 4.0], [1.0, -1.0, 4.0], [0.0, 0.0, 1.0]])
    scores = ArmScores(arms=("none", "mail", "call"), values=values, weight=np.array([1.0, 2.0, 1.0]))
    prediction, cost = np.array([[1.0, 5.0], [3.0, 3.0], [0.0, 2.0]]), np.array([0.5, 2.0])
    np.testing.assert_allclose(decided_gain(scores, prediction, cost), [2.0, 2 * -2.5, 0.0])
    rules = blanket_gains(scores, cost)
    assert list(rules) == ["treat no one", "mail for everyone", "call for everyone"]
    np.testing.assert_allclose(rules["call for everyone"], [2.0, 2 * 1.0, -1.0])


def test_a_leaderboard_of_several_arms(arms):
    effect, scores = arms
    entries = [
        Entry("average effect", np.tile(effect.mean(axis=0), (600, 1))),
        Entry("no effect", np.zeros((600, 2))),
        Entry("good", effect, "good"),
        Entry("backwards", -effect, "backwards"),
    ]
    board = leaderboard_of(entries, scores, Settings(cost=0.1))
    assert [rival.name for rival in board.rivals if rival.is_in_set] == ["good"]
    assert board.rivals[-1].name == "backwards"
    assert len(board.rules) == 3
    assert board.rivals[0].gain.interval[0] > 0


@pytest.fixture(scope="module")
def trial():
    """3,000 rows of an experiment with known nuisances; `poor` follows a covariate that has no part in the effect."""
    data = simulate_cate(3000, confounding=0, random_state=0)
    columns = {name: data.nuisances[name] for name in NUISANCES}
    models = {"double": 2 * data.effect, "near": data.effect + 0.01, "poor": data.X[:, 4]}
    later, site = np.arange(3000) % 3 == 0, np.arange(3000) // 10
    return pd.DataFrame({"y": data.y, "a": data.treatment, **columns, **models, "later": later, "site": site})


def study_of(trial, **settings):
    nuisances = {name: name for name in NUISANCES}
    return Study(trial, outcome="y", treatment="a", covariates=[], propensity=None, nuisances=nuisances, **settings)


@pytest.fixture(scope="module")
def choice(trial):
    return study_of(trial).choose(["double", "near", "poor"], method="linear", cost=0.2, draws=50)


def test_each_model_is_judged_as_it_is_and_calibrated_beside_constants(choice):
    names = {
        "average effect",
        "no effect",
        *(f"{m}{c}" for m in ("double", "near", "poor") for c in ("", ", calibrated")),
    }
    assert {rival.name for rival in choice.rivals} == names
    assert {rival.name for rival in choice.rivals if rival.is_calibrated} == {n for n in names if n.endswith("brated")}
    assert choice.rows + choice.fitted_rows == 3000
    assert choice.rows == 900
    known = {rival.name: rival for rival in choice.rivals}
    assert known["double"].status == "miscalibrated"
    assert known["double"].ranking == "ranks"
    assert known["average effect"].autoc is None
    assert known["double, calibrated"].autoc.value == pytest.approx(known["double"].autoc.value)


def test_figures_are_those_of_a_calibration(trial, choice):
    done = study_of(trial).calibrate("double", method="linear", cost=0.2, draws=50)
    known = {rival.name: rival for rival in choice.rivals}
    after, before = known["double, calibrated"], known["double"]
    assert after.relative_loss.interval == pytest.approx(done.calibrated_over_average.interval)
    assert before.relative_loss.interval == pytest.approx(done.prediction_over_average.interval)
    assert (after.error, before.error) == (done.after.error, done.before.error)
    assert after.assessment.tolerance == before.assessment.tolerance == done.before.tolerance
    assert after.value.interval == pytest.approx(done.after.value.interval)
    assert choice.average == done.average


def test_what_is_declared_better(choice):
    assert choice.best in choice.confidence_set
    assert set(choice.confidence_set) <= {"near", "near, calibrated", "double, calibrated"}
    assert choice.better_than("near", "poor")
    assert choice.better_than("near", "average effect")
    assert not choice.better_than("poor", "near")
    assert not choice.better_than("near", "double")
    assert not choice.better_than("near", "near")
    with pytest.raises(OrthocalError, match="`model` must be one of .*Did you mean 'near'"):
        choice.better_than("neat", "poor")


def test_the_verdict_names_what_cannot_be_told_apart(trial, choice):
    first, *others = choice.confidence_set
    assert choice.verdict.startswith(f"'{first}' has the lowest mean loss, ")
    for name in others:
        assert f"'{name}' (about " in choice.verdict or f"'{name}' (the losses are the same)" in choice.verdict
    assert "rows in all would separate them" in choice.verdict
    assert "No model is shown to be better" not in choice.verdict
    poor = study_of(trial).choose("poor", method="linear", draws=50)
    assert "average effect" in poor.confidence_set
    assert "No model is shown to be better than the average effect." in poor.verdict
    assert "Predicting no effect for anyone may be as good." in poor.verdict


def test_one_that_stands_alone_is_called_better_than_every_other(trial):
    alone = study_of(trial).choose("double", method="linear", draws=50)
    assert alone.confidence_set == ("double, calibrated",)
    assert "It is better than every other rival at the 95% level." in alone.verdict
    assert alone.comparisons == ()


def test_rows_needed_are_of_the_whole_study(trial):
    """Of 3,000 rows 900 are judged; the two that are left are told apart by a paired t test."""
    found = study_of(trial).choose("near", method="linear", draws=50)
    other = found.rivals[1]
    assert found.confidence_set == (found.best, other.name)
    apart = norm.isf(other.p_value / 2)
    assert other.rows_needed == pytest.approx(3000 * ((norm.ppf(0.975) + norm.ppf(0.8)) / apart) ** 2, abs=1)


def test_a_map_does_not_move_the_goal_posts(trial):
    found = by_name(study_of(trial).choose({"part": 0.2 * trial["near"]}, method="linear", draws=50))
    before, after = found["part"].assessment, found["part, calibrated"].assessment
    assert before.tolerance == after.tolerance
    assert before.tolerance_note == after.tolerance_note


def test_models_with_the_same_predictions_share_their_place(trial):
    same = study_of(trial).choose(
        {"one": trial["near"], "other": trial["near"].to_numpy()}, method="identity", draws=50
    )
    assert set(same.confidence_set) == {"one", "other", "one, calibrated", "other, calibrated"}
    assert same.best == "one"
    assert not same.better_than("one", "other")
    assert "'other' (the losses are the same)" in same.verdict
    assert {pair.p_value for pair in same.comparisons} == {1.0}


def test_text_columns_and_json_hold_the_same_rivals(choice):
    names = [rival.name for rival in choice.rivals]
    table = pd.DataFrame(choice.table())
    assert table["rival"].tolist() == names
    assert table["is_in_set"].sum() == len(choice.confidence_set)
    record = json.loads(json.dumps(choice.to_dict(), allow_nan=False))
    assert [one["rival"] for one in record["rivals"]] == names
    assert record["best"] == choice.best
    assert set(record["assessments"]) == set(names)
    assert record["comparisons"][0]["difference"]["interval"] == list(choice.comparisons[0].difference.interval)
    lines = str(choice).splitlines()
    head = next(line for line in lines if line.startswith("rival "))
    cells = [line for line in lines if any(line.startswith(f"{name}  ") for name in names)]
    marks = [line[head.index("in set") :].split()[0] for line in cells[: len(names)]]
    assert marks == ["yes" if rival.is_in_set else "no" for rival in choice.rivals]
    assert "half differences of mean squared errors, in squared units of the effect; lower" in choice.summary()
    assert "treat everyone" in choice.summary()


def test_a_notebook_shows_a_choice(choice, monkeypatch):
    levels = []
    drawn = plots.leaderboard
    monkeypatch.setattr(
        plots, "leaderboard", lambda *rivals, level, **style: levels.append(level) or drawn(*rivals, **style)
    )
    tree = ET.fromstring(replace(choice, level=0.9)._repr_html_())
    assert levels == [0.9]
    text = "".join(tree.itertext())
    assert "Choice." in text
    assert all(rival.name in text for rival in choice.rivals)
    plt.close("all")


def test_the_picture_fills_those_in_the_set(choice):
    ax = choice.plot()
    marks = [line for line in ax.get_lines() if len(line.get_xdata()) == 1]
    drawn = {int(mark.get_ydata()[0]): mark.get_markerfacecolor() != "white" for mark in marks}
    assert drawn == {place: choice.rivals[place].is_in_set for place in drawn}
    assert len(drawn) + len(ax.texts) == len(choice.rivals)
    assert [label.get_text() for label in ax.get_yticklabels()] == [rival.name for rival in choice.rivals]
    assert choice.plot(ax) is ax
    plt.close("all")


def test_rivals_far_beyond_the_others_are_written_at_the_edge(trial):
    far = study_of(trial).choose({"near": "near", "far": 50 + trial["poor"]}, method="linear", draws=50)
    ax = far.plot()
    loss = by_name(far)["far"].relative_loss.value
    assert [text.get_text() for text in ax.texts] == [f"{loss:.3g} \N{RIGHTWARDS ARROW}"]
    assert ax.get_xlim()[1] < 0.01 * loss
    plt.close("all")


def test_clusters_and_a_column_of_rows_held_out(trial):
    found = study_of(trial, groups="site").choose(["near", "poor"], method="linear", draws=50)
    assert found.better_than("near", "poor")
    held = study_of(trial).choose(["near", "poor"], method="linear", holdout="later", draws=50)
    assert held.rows == 1000


def test_order_of_rows_and_of_models_does_not_matter(trial, choice):
    shuffled = trial.sample(frac=1, random_state=0)
    again = study_of(shuffled).choose(["poor", "near", "double"], method="linear", cost=0.2, draws=50)
    known = by_name(again)
    for rival in choice.rivals:
        assert known[rival.name].p_value == pytest.approx(rival.p_value, abs=3e-4)
        assert known[rival.name].relative_loss.interval == pytest.approx(rival.relative_loss.interval)


@pytest.mark.parametrize(
    ("predictions", "settings", "message"),
    [
        ("near", {"holdout": 0}, "no map saw"),
        ([], {}, "at least one prediction"),
        ({"average effect": "near"}, {}, "must not be called 'average effect'"),
        ({"near": "near", "near, calibrated": "poor"}, {}, "must not be called 'near, calibrated'"),
        ("nowhere", {}, "nowhere"),
        ("near", {"cost": float("nan")}, "`cost` must be a finite number"),
        ("near", {"method": "magic"}, "magic"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(trial, predictions, settings, message):
    study = study_of(trial)
    with pytest.raises(OrthocalError, match=message):
        study.choose(predictions, **settings)
    assert "learnt" not in vars(study.rows.engine)


def test_the_studys_own_predictions_are_the_default(trial):
    found = study_of(trial, predictions=["near"]).choose(method="identity", draws=50)
    assert {rival.model for rival in found.rivals} == {"near", None}


def test_predictions_of_a_map_fitted_on_the_same_rows_are_warned_of(trial):
    study = study_of(trial)
    shipped = study.calibrate("double", method="linear", draws=50).table()["double_calibrated"]
    with pytest.warns(HonestyWarning):
        study.choose({"shipped": shipped}, method="identity", draws=50)
