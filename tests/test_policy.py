"""What rules are worth: by hand, against the verdict's own value at a cost, and laws of rows and weights."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from orthocal import OrthocalError, QuadraticLoss, assess, plots
from orthocal.assessment.compare import moments_of
from orthocal.decisions import policy
from orthocal.decisions.allocation import steps_of
from orthocal.decisions.budget import SEGMENTS, curve_over_budgets, in_segments, ladder_of
from orthocal.decisions.evidence import Averages, largest_of, over_best, ratio_of
from orthocal.decisions.people import people_of
from orthocal.losses.arm_scores import ArmScores

ARMS = ("none", "call", "mail")


def scores_of(values, weight=None, groups=None, arms=ARMS):
    values = np.asarray(values, dtype=float)
    weight = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=float)
    return ArmScores(arms=arms[: values.shape[1]], values=values, weight=weight, groups=groups)


def sample(n=400, seed=0, arms=2, groups=None, weight=None, mean=0.2):
    rng = np.random.default_rng(seed)
    effect = mean + 0.5 * rng.standard_normal((n, arms))
    values = np.column_stack([np.zeros(n), effect]) + rng.standard_normal((n, arms + 1))
    predictions = {"tau": effect + 0.2 * rng.standard_normal((n, arms)), "other": rng.standard_normal((n, arms))}
    return scores_of(values, weight, groups), predictions


def test_by_hand():
    """Gains of call 2, 0, 4 and of mail 1, 3, -1; tau gives call, mail, no one at costs of 1 and 0.5.

    Net of cost: 1, 2.5, 0, so a mean of 7/6. Call for everyone: (2 + 0 + 4)/3 - 1 = 1; mail: 1 - 0.5.
    Promised before costs (4 + 2 + 0)/3, delivered (2 + 3)/3: too much by 1/3.
    """
    scores = scores_of([[1, 3, 2], [1, 1, 4], [1, 5, 0]])
    found = policy(scores, {"tau": [[4, 1], [0, 2], [0.5, 0.1]]}, cost={"call": 1, "mail": 0.5})
    assert list(found.values) == ["no one", "call for everyone", "mail for everyone", "tau"]
    assert [round(rule.value.value, 12) for rule in found.values.values()] == [0, 1, 0.5, round(7 / 6, 12)]
    tau = found.values["tau"]
    assert tau.value.standard_error == pytest.approx(np.std([1, 2.5, 0], ddof=1) / np.sqrt(3))
    assert (tau.gain.value, tau.promised, tau.cost) == pytest.approx((5 / 3, 2, 0.5))
    assert tau.excess.value == pytest.approx(1 / 3)
    assert tau.excess.standard_error == pytest.approx(np.std([2, -1, 0], ddof=1) / np.sqrt(3))
    assert tau.shares == pytest.approx({"call": 1 / 3, "mail": 1 / 3})
    assert found.allocations["tau"].arm.tolist() == [1, 2, 0]
    assert found.baseline.value == 1
    assert tau.over_blanket.value == pytest.approx(1 / 6)
    # Row by row 1, 2.5, 0 less call for everyone: 1, -1, 3.
    assert tau.over_blanket.standard_error == pytest.approx(np.std([0, 3.5, -3], ddof=1) / np.sqrt(3))
    # Of three rows nothing is sure: t(2) is 4.30 and the interval -7.9 to 3.5.
    assert found.recommendation.startswith("Undecided: choosing by tau gains 0.1667 (")
    assert (
        ") more per person than call for everyone, the best blanket rule. A gain of this size" in found.recommendation
    )
    assert tau.return_on_spend.value == pytest.approx(10 / 3)
    assert tau.cost_per_gain.value == pytest.approx(0.3)


def test_one_arm_is_worth_what_the_verdict_says():
    rng = np.random.default_rng(1)
    n, prediction, weight = 500, rng.standard_normal(500), rng.exponential(size=500)
    for groups in (None, rng.integers(0, 40, n)):
        chi = prediction + rng.standard_normal(n)
        scores = ArmScores(arms=(0, 1), values=np.column_stack([np.zeros(n), chi]), weight=weight, groups=groups)
        value = assess(prediction, QuadraticLoss(weight * chi, weight, weight, groups), cost=0.3, draws=10).value
        tau = policy(scores, {"tau": prediction}, cost=0.3).values["tau"]
        np.testing.assert_allclose(
            [tau.value.value, tau.value.standard_error, *tau.value.interval, tau.share_treated],
            [value.value, value.standard_error, *value.interval, value.share_treated],
        )
        everyone = policy(scores, {"tau": prediction}, cost=0.3).values["everyone"]
        assert everyone.value.value == pytest.approx(value.treating_everyone)


def test_one_arm_has_the_ordinary_cost_curve():
    """At a cost of 1 a budget of k/n treats the k with the largest predictions."""
    rng = np.random.default_rng(2)
    n, prediction = 200, rng.exponential(size=200)
    chi = prediction + rng.standard_normal(n)
    curve = curve_over_budgets(people_of(scores_of(np.column_stack([np.zeros(n), chi])), {"tau": prediction}, 1.0))
    order = np.argsort(-prediction)
    for name, column in {"gain": chi, "predicted": prediction, "share_treated": np.ones(n)}.items():
        expected = np.append(0.0, np.cumsum(column[order]))[::2] / n
        np.testing.assert_allclose(curve.rules["tau"][name], expected, atol=1e-12)


def test_the_budget_is_kept_and_its_value_is_that_of_its_allocation():
    scores, predictions = sample(300, weight=np.random.default_rng(0).exponential(size=300))
    cost = {"call": np.random.default_rng(1).exponential(size=300), "mail": 0.4}
    found = policy(scores, predictions, cost=cost, budget=0.15, draws=20)
    people = found.people
    for name in predictions:
        rule, given = found.values[name], found.allocations[name]
        assert people.mean(given.expected(people.cost)) == pytest.approx(0.15)
        assert rule.cost == pytest.approx(0.15)
        assert rule.value.value == pytest.approx(float(people.mean(given.expected(people.gains))))
        assert rule.promised == pytest.approx(float(people.mean(given.expected(people.predictions[name]))))
        curve = found.curve.rules[name]["gain"]
        assert np.interp(0.15, found.curve.budget, curve) == pytest.approx(rule.value.value, abs=0.01)
    mail = found.values[list(found.values)[2]]
    assert mail.name.endswith("% at random")
    assert mail.value.value == pytest.approx(0.15 / 0.4 * float(people.mean(people.gains)[1]))


def test_errors_within_a_budget_are_those_of_the_mean_where_all_is_bought():
    """A budget that buys everything: the multiplier draws give the error of a mean; their error is 1/sqrt(2 * draws)."""
    scores, predictions = sample(500, groups=np.random.default_rng(3).integers(0, 60, 500))
    cost = {"call": 0.1, "mail": 0.1}
    found = policy(scores, predictions, cost=cost, budget=0.1, draws=2000)
    chosen = {name: np.argmax(np.column_stack([np.zeros(500), own]), axis=1) for name, own in predictions.items()}
    gains = np.column_stack([np.zeros(500), scores.gains])
    for name in predictions:
        column = gains[np.arange(500), chosen[name]]
        _, error, *_ = moments_of([np.ones(500), column], scores.groups).mean(1, 0.95)
        assert found.values[name].value.standard_error == pytest.approx(error, rel=0.08)


def test_differences_between_rules_are_paired():
    scores, predictions = sample(400)
    twice = {"a": predictions["tau"], "b": predictions["tau"] * 2, "c": predictions["other"]}
    found = policy(scores, twice, cost=1.0, budget=0.2, draws=50)
    np.testing.assert_allclose(found.curve.differences["b - a"]["gain"], 0, atol=1e-12)
    np.testing.assert_allclose(found.curve.differences["b - a"]["band_upper"], 0, atol=1e-12)
    assert set(found.curve.differences) == {"b - a", "c - a", "c - b"}
    band = found.curve.differences["c - a"]
    wider = (band["band_upper"] - band["band_lower"])[1:] > (band["upper"] - band["lower"])[1:]
    assert wider.all()


@pytest.mark.parametrize("budget", [None, 0.2])
def test_the_order_of_the_rows_has_no_say(budget):
    scores, predictions = sample(300, weight=np.random.default_rng(0).exponential(size=300))
    cost = np.round(np.random.default_rng(1).exponential(size=300), 1)
    order = np.random.default_rng(2).permutation(300)
    one = policy(scores, predictions, cost=cost, budget=budget, draws=20)
    shuffled = {name: own[order] for name, own in predictions.items()}
    two = policy(scores[order], shuffled, cost=cost[order], budget=budget, draws=20)
    for name, rule in one.values.items():
        same = two.values[name]
        np.testing.assert_allclose(
            [same.value.value, same.value.standard_error, *same.value.interval],
            [rule.value.value, rule.value.standard_error, *rule.value.interval],
            atol=1e-12,
        )
    for name, column in one.table("tau").items():
        np.testing.assert_allclose(two.table("tau")[name], column, atol=1e-9)


@pytest.mark.parametrize("budget", [None, 0.2])
def test_a_weight_of_2_is_the_row_twice_and_of_0_no_row(budget):
    scores, predictions = sample(200)
    weight = np.random.default_rng(0).integers(0, 3, 200)
    weighted = scores_of(scores.values, weight)
    one = policy(weighted, predictions, cost=0.5, budget=budget, draws=5)
    many = np.repeat(np.arange(200), weight)
    two = policy(scores[many], {k: v[many] for k, v in predictions.items()}, cost=0.5, budget=budget, draws=5)
    for name, rule in one.values.items():
        same = two.values[name]
        assert same.value.value == pytest.approx(rule.value.value)
        assert same.shares == pytest.approx(rule.shares)
    held = weight > 0
    left = policy(weighted[held], {k: v[held] for k, v in predictions.items()}, cost=0.5, budget=budget, draws=5)
    interval = one.values["tau"].over_blanket.interval
    assert left.values["tau"].over_blanket.interval == pytest.approx(interval, rel=1e-9)
    for name in ("n", "share", "estimated", "lower", "cumulative_gain"):
        np.testing.assert_allclose(left.table("tau")[name], one.table("tau")[name])


def test_clusters_of_one_row_are_rows():
    scores, predictions = sample(300)
    alone = scores_of(scores.values, groups=np.arange(300))
    one, two = (policy(s, predictions, cost=0.1).values["tau"].value for s in (scores, alone))
    assert one.standard_error == pytest.approx(two.standard_error)


def test_repeated_rows_in_clusters_tell_nothing_more():
    scores, predictions = sample(200)
    rows = np.repeat(np.arange(200), 3)
    thrice = scores_of(scores.values[rows], groups=rows)
    one, two = (
        policy(s, {"tau": predictions["tau"][r]}, cost=0.5, budget=0.2, draws=400).values["tau"].value
        for s, r in ((scores, np.arange(200)), (thrice, rows))
    )
    assert two.value == pytest.approx(one.value)
    assert two.standard_error == pytest.approx(one.standard_error, rel=0.15)


def evidence(columns, names):
    keys = [(name, "gain") for name in names]
    return Averages(moments_of([np.ones(columns.shape[1]), *columns], None), keys, 0.95)


def test_the_best_blanket_rule_is_not_known_for_sure():
    """Two blanket rules as good as each other: the upper end allows for both, the lower one is the plain one of the worse."""
    rng = np.random.default_rng(0)
    columns = np.array([rng.standard_normal(400) for _ in range(3)])
    columns -= columns.mean(axis=1, keepdims=True)
    columns[0] += 1.0
    found = evidence(columns, "rab")
    parts = {name: {(name, "gain"): 1.0} for name in "rab"}
    alone, near = over_best(found, parts["r"], {"a": parts["a"]})
    assert near == ("a",)
    assert alone.interval == pytest.approx(found.mixture({("r", "gain"): 1, ("a", "gain"): -1}).interval)
    both, near = over_best(found, parts["r"], {"a": parts["a"], "b": parts["b"]})
    assert set(near) == {"a", "b"}
    ends = [found.mixture({("r", "gain"): 1, (name, "gain"): -1}).interval for name in "ab"]
    assert both.interval[0] == pytest.approx(min(low for low, _ in ends))
    assert both.interval[1] > min(high for _, high in ends) + 0.005
    columns[2] = 3 * columns[2] - 0.01  # a little worse, and known less well: the lower end is its own
    found = evidence(columns, "rab")
    both, near = over_best(found, parts["r"], {"a": parts["a"], "b": parts["b"]})
    assert near == ("a", "b")
    assert both.interval[0] == pytest.approx(found.mixture({("r", "gain"): 1, ("b", "gain"): -1}).interval[0])
    far, near = over_best(found, parts["a"], {"b": parts["b"], "r": parts["r"]})  # r is better by 20 standard errors
    assert (near, far.value < 0) == (("r",), True)


def test_the_largest_of_normal_variables():
    """Independent ones: each stays below c with probability 0.975 ** (1 / 2)."""
    assert largest_of(np.eye(1), 0.025, 1e9) == pytest.approx(1.95996, abs=1e-4)
    assert largest_of(np.eye(2), 0.025, 1e9) == pytest.approx(2.2390, abs=0.02)
    assert largest_of(np.ones((2, 2)), 0.025, 1e9) == pytest.approx(1.95996, abs=0.02)


def test_a_rule_that_is_a_blanket_rule_gains_nothing_over_it():
    scores, _ = sample(100)
    found = policy(scores, {"same": np.tile([2.0, 1.0], (100, 1))})
    assert found.values["same"].shares == {"call": 1.0, "mail": 0.0}
    assert found.values["same"].value == found.values["call for everyone"].value
    if found.best_blanket == "call for everyone":
        assert found.values["same"].over_blanket.value == 0


def test_fieller_by_hand_and_without_an_end():
    """A divisor known to be 2 makes the interval of the ratio half that of the mean."""
    rng = np.random.default_rng(0)
    columns = np.array([rng.standard_normal(50) + 1, np.full(50, 2.0), rng.standard_normal(50) * 9])
    found = evidence(columns, "abc")
    mean = found.mixture({("a", "gain"): 1.0})
    plain = ratio_of(found, {("a", "gain"): 1.0}, {("b", "gain"): 1.0})
    assert (plain.value, *plain.interval) == pytest.approx((mean.value / 2, *(end / 2 for end in mean.interval)))
    negative = ratio_of(found, {("a", "gain"): 1.0}, {("b", "gain"): -1.0})
    assert (negative.value, *negative.interval) == pytest.approx(
        (-mean.value / 2, *(-e / 2 for e in mean.interval[::-1]))
    )
    endless = ratio_of(found, {("a", "gain"): 1.0}, {("c", "gain"): 1.0})
    assert endless.interval is None
    assert "no end" in endless.note
    assert ratio_of(found, {("a", "gain"): 1.0}, {("none", "gain"): 1.0}).value is None


def test_fieller_solves_its_equation():
    """At both ends the mean of gain - ratio * spend is just t standard errors from 0."""
    rng = np.random.default_rng(5)
    columns = rng.multivariate_normal([1, 2], [[1, 0.8], [0.8, 2]], 60).T
    found = evidence(columns, "ab")
    ratio = ratio_of(found, {("a", "gain"): 1.0}, {("b", "gain"): 1.0})
    for end in ratio.interval:
        gap = found.mixture({("a", "gain"): 1.0, ("b", "gain"): -end})
        assert min(abs(gap.interval[0]), abs(gap.interval[1])) < 1e-9


def test_spend_is_what_returns_are_counted_by():
    scores, predictions = sample(300)
    spend = scores_of(np.column_stack([np.ones(300), np.full(300, 3.0), np.full(300, 5.0)]))
    found = policy(scores, predictions, spend=spend)
    tau = found.values["tau"]
    assert tau.return_on_spend.value == pytest.approx(
        tau.gain.value / (2 * tau.shares["call"] + 4 * tau.shares["mail"])
    )
    call = found.values["call for everyone"]
    assert call.return_on_spend.interval == pytest.approx(tuple(end / 2 for end in call.gain.interval))
    within = policy(scores, predictions, cost=1.0, budget=0.3, spend=spend, draws=20).values["tau"]
    assert within.return_on_spend.value == pytest.approx(
        within.gain.value / (2 * within.shares["call"] + 4 * within.shares["mail"])
    )


def test_the_table_by_hand():
    """Ordered by predicted net gain; ratios where there are costs; ties share a bin."""
    scores = scores_of([[0, 4, 0], [0, 2, 0], [0, 0, 6], [0, 0, -2]])
    prediction = np.array([[5.0, 0], [3, 0], [0, 2], [0, 1]])
    table = policy(scores, {"tau": prediction}).table("tau", bins=2)
    assert table["n"].tolist() == [2, 2]
    assert table["predicted"].tolist() == [4, 1.5]
    assert table["estimated"].tolist() == [3, 2]
    assert table["cumulative_gain"].tolist() == [1.5, 2.5]
    assert table["standard_error"].tolist() == pytest.approx([1, 4])
    costly = policy(scores, {"tau": prediction}, cost={"call": 2.0, "mail": 0.5}).table("tau", bins=2)
    # Ratios 2.5, 1.5, 4, 2: the third and the first come first.
    assert costly["estimated"].tolist() == [5, 0]
    assert costly["cost"].tolist() == [1.25, 1.25]
    assert costly["cumulative_cost"].tolist() == [0.625, 1.25]
    assert costly["cost_per_gain"][0] == 0.25
    alone = policy(scores, {"tau": prediction}, cost={"call": 2.0, "mail": 0.5}).table("tau", bins=4)
    assert alone["estimated"].tolist() == [6, 4, -2, 2]
    np.testing.assert_allclose(alone["cost_per_gain"], [0.5 / 6, 0.5, np.nan, 1])
    assert np.isnan(alone["lower"]).all()
    tied = policy(scores, {"tau": np.ones((4, 2))}).table("tau", bins=4)
    assert tied["n"].tolist() == [4]


def test_segments_change_errors_little_and_keep_what_is_free_apart():
    rng = np.random.default_rng(0)
    n = 6000
    scores = scores_of(np.column_stack([np.zeros(n), rng.standard_normal(n)]))
    cost = np.where(rng.random(n) < 0.3, 0.0, 1.0)
    people = people_of(scores, {"tau": rng.exponential(size=n)}, cost)
    ladder = ladder_of(steps_of(people.predictions["tau"], people.cost), people)
    short = in_segments(ladder)
    assert len(short.starts) <= SEGMENTS + 1 < len(ladder.starts)
    budgets = np.linspace(0, 0.7, 50)
    exact, coarse = (one.at(people.weight, n, budgets) for one in (ladder, short))
    np.testing.assert_allclose(exact[:, 0], coarse[:, 0])  # at a budget of 0 the free steps are bought
    assert exact[1, 0] != 0
    assert np.abs(exact - coarse).max() < 0.05 / np.sqrt(n)


def test_a_prediction_that_promises_nothing_treats_no_one():
    scores, _ = sample(100)
    found = policy(scores, {"tau": np.full((100, 2), -1.0)}, cost=0.1, budget=0.05, draws=10)
    assert found.values["tau"].value.value == 0
    assert found.values["tau"].return_on_spend is None
    assert "NaN" not in json.dumps(found.to_dict())


def sentence(mean, prediction=None, **settings):
    scores, predictions = sample(2000, mean=mean)
    return policy(scores, {"tau": predictions["tau"]} if prediction is None else prediction, **settings).recommendation


def test_recommendations():
    rng = np.random.default_rng(9)
    noise = {"noise": rng.standard_normal((2000, 2))}
    assert sentence(0.2).startswith("Choose by tau: it gains 0.")
    assert sentence(0.2).endswith(" for everyone, the best blanket rule.")
    assert sentence(-0.4).endswith("more per person than treating no one, the best blanket rule.")
    assert sentence(-2.0, noise).startswith("Treat no one: choosing by noise gains ")
    assert sentence(-2.0, noise).endswith(" less per person.")
    everyone = sentence(0.5, noise)
    assert everyone.startswith(("Treat everyone with call: choosing by", "Treat everyone with mail: choosing by"))
    assert " less per person; " in everyone
    assert everyone.endswith(" for everyone may be as good.")  # the other of the two
    few = sentence(0.5, noise, cost=1.0, budget=0.25, draws=20)
    assert few.startswith("Undecided: choosing by noise gains ")
    assert few.endswith("per person than call for 25% at random, the best blanket rule.")
    same = sentence(0.5, {"all": np.tile([2.0, 1.0], (2000, 1))})
    assert same.startswith("Treat everyone with call: choosing by all comes to the same")


def test_the_best_of_several_predictions_is_not_known_for_sure():
    """Of ten predictions that are noise the best one looks better than it is: each interval allows for the choice."""
    chosen, alone = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scores = scores_of(np.column_stack([np.zeros(300), 1 + rng.standard_normal(300)]))
        noise = {str(j): rng.uniform(1, 2, (300, 1)) for j in range(10)}
        settings = {"cost": 1.0, "budget": 0.3, "draws": 40}
        found = policy(scores, noise, **settings)
        best = max(noise, key=lambda name: found.values[name].value.value)
        chosen += found.recommendation.startswith("Choose by")
        alone += policy(scores, {best: noise[best]}, **settings).recommendation.startswith("Choose by")
    assert chosen <= 4  # one in forty is meant, and 4 of 40 or fewer have a probability above 0.99
    assert alone > 4


def test_a_blanket_rule_that_is_hardly_better_says_so():
    noise = np.random.default_rng(0).standard_normal(900)
    values = np.column_stack([np.zeros(900), 0.01 + noise - noise.mean()])
    said = policy(scores_of(values), {"never": np.full(900, -1.0)}).recommendation
    assert said.startswith("Treat everyone: choosing by never gains 0.01 (0 to 0.")
    assert said.endswith(" less per person; treating no one may be as good.")


def test_one_arm_in_words():
    rng = np.random.default_rng(0)
    values = np.column_stack([np.zeros(900), 1 + rng.standard_normal(900)])
    found = policy(scores_of(values), {"tau": rng.standard_normal(900)})
    assert found.recommendation.startswith("Treat everyone: choosing by tau gains ")


@pytest.mark.parametrize("budget", [None, 0.3])
def test_records_are_shown_and_plain(budget):
    scores, predictions = sample(300)
    found = policy(scores, predictions, cost={"call": 0.5, "mail": 0.1}, budget=budget, draws=20)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["values"]["tau"]["value"]["value"] == found.values["tau"].value.value
    assert "people" not in plain
    text = str(found)
    assert text.startswith(found.recommendation)
    assert "predicted - estimated" in text
    figures = [found.plot(), plots.top_shares(found, "tau")]
    if budget is not None:
        figures.append(plots.budget_curve(found))
        assert len(plain["curve"]["budget"]) == 101
    else:
        with pytest.raises(OrthocalError, match="must have a budget"):
            plots.budget_curve(found)
    for ax in figures:
        assert ax.get_xlabel()
        plt.close(ax.figure)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predictions": {"tau": np.zeros((9, 2))}}, "must have 10 rows and one column for each arm"),
        ({"predictions": {"tau": np.zeros((10, 1))}}, "must have 10 rows and one column for each arm"),
        ({"predictions": {"tau": np.zeros(10)}}, "must have 10 rows and one column for each arm"),
        ({"predictions": {"tau": np.full((10, 2), np.nan)}}, "of call` must be finite"),
        ({"predictions": {}}, "at least one prediction"),
        ({"predictions": {"no one": np.zeros((10, 2))}}, "name of a blanket rule"),
        ({"cost": -1}, "`cost` must be at least 0, finite and without gaps; it is -1.0"),
        ({"cost": np.inf}, "`cost` must be at least 0"),
        ({"cost": np.append(np.zeros(9), np.nan)}, "without gaps; row 9 is nan"),
        ({"cost": np.zeros(3)}, "one number per row; its shape"),
        ({"cost": "cheap"}, "must be a number or one number per row; it is 'cheap'"),
        ({"cost": {"call": 1}}, "must name each of 'call', 'mail'"),
        ({"cost": {"call": 1, "mail": -1}}, "`cost['mail']` must be at least 0"),
        ({"cost": {"call": 1, "mail": 2, "post": 3}}, "'post'"),
        ({"cost": 1, "budget": -0.1}, "`budget` must be a number of at least 0"),
        ({"cost": 1, "budget": np.nan}, "`budget` must be a number of at least 0"),
        ({"cost": 1, "budget": "much"}, "`budget` must be a number of at least 0"),
        ({"cost": {"call": 1, "mail": 2}, "budget": 2.1}, "`budget` must not exceed 2,"),
        ({"budget": 0.1}, "must come with a `cost`"),
        ({"level": 1.2}, "`level`"),
        ({"draws": 1}, "`draws`"),
        ({"spend": scores_of(np.zeros((9, 3)))}, "`spend` must have the rows and arms"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(changes, message):
    given = {"predictions": {"tau": np.zeros((10, 2))}, **changes}
    with pytest.raises(OrthocalError) as caught:
        policy(scores_of(np.zeros((10, 3))), given.pop("predictions"), **given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_of_an_unknown_rule_is_refused():
    scores, predictions = sample(50)
    with pytest.raises(OrthocalError, match="`rule` must be one of 'tau', 'other'"):
        policy(scores, predictions).table("tua")
