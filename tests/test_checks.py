"""Checks: each is made to find what it is for, and to pass where it should."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from orthocal import LATE, Study
from orthocal.datasets import simulate_cate


def trial(n=1500, seed=0, **more):
    """A clean randomised experiment with four covariates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    a = rng.integers(0, 2, n)
    y = X[:, 0] + a * (0.5 + X[:, 1]) + rng.standard_normal(n)
    table = pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]).assign(a=a, y=y, tau=0.4 + 0.8 * X[:, 1])
    return table.assign(**{name: make(table, rng) for name, make in more.items()})


def results(table, covariates=("x0", "x1", "x2", "x3"), prediction="tau", **roles):
    """Results of all checks, by name."""
    roles = {"outcome": "y", "treatment": "a", "propensity": 0.5, "learners": "linear", **roles}
    study = Study(table, covariates=list(covariates), predictions=[prediction], **roles)
    return {check.name: check for check in study.assess(prediction).checks}


def test_a_clean_trial_passes_everything():
    found = results(trial())
    assert {check.result for check in found.values()} == {"passed"}
    assert set(found) == {
        "positivity",
        "balance",
        "leakage",
        "outcome among covariates",
        "identifiers",
        "hidden clusters",
        "outcome as prediction",
        "prediction among covariates",
        "in-sample",
        "ranking",
        "skewness",
    }


def test_a_covariate_measured_after_treatment_is_out_of_balance():
    """As visits among the covariates of what customers spend."""
    table = trial(3000, visit=lambda t, rng: (rng.random(len(t)) < 0.1 + 0.06 * t["a"]).astype(int))
    check = results(table, ["x0", "visit"])["balance"]
    assert check.result == "failed"
    assert check.sentence.startswith("visit: not distributed as the known propensity says.")
    assert "measured after treatment" in check.advice
    assert results(table, ["x0", "x1"])["balance"].result == "passed"
    assert "balance" not in results(table, ["x0", "visit"], propensity=None)


def test_a_wrong_propensity_is_out_of_balance():
    data = simulate_cate(2000, random_state=0)
    table = pd.DataFrame(data.X[:, :3], columns=["x0", "x1", "x2"])
    table = table.assign(a=data.treatment, y=data.y, tau=data.effect)
    assert results(table, ["x0", "x1", "x2"])["balance"].result == "failed"


@pytest.mark.parametrize("covariates", [(), ("x0", "x1")])
def test_a_wrong_share_of_the_arm_is_found(covariates):
    check = results(trial(2000), covariates, propensity=1 / 3)["balance"]
    assert check.result == "failed"
    assert check.sentence.startswith("The share of the arm: ")


@pytest.mark.parametrize("arm", ["mens", "womens"])
def test_visits_are_out_of_balance_in_either_of_two_mailings(arm):
    """As in a trial with two mailings and none, where the second arm's visits are near the mean of all."""
    rng = np.random.default_rng(0)
    segment = rng.choice(["mens", "womens", "none"], 21_000)
    rate = pd.Series(segment).map({"mens": 0.183, "womens": 0.151, "none": 0.106}).to_numpy()
    visit = (rng.random(21_000) < rate).astype(int)
    table = pd.DataFrame({"segment": segment, "visit": visit, "y": visit * rng.exponential(5, 21_000), "x0": rate * 0})
    table = table.assign(x0=rng.standard_normal(21_000), tau=0.1 * rng.standard_normal(21_000))
    known = {"propensity_control": 1 / 3}
    roles = {"treatment": "segment", "arm": arm, "control": "none", "propensity": 1 / 3, "nuisances": known}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert results(table, ["visit", "x0"], **roles)["balance"].result == "failed"
        assert results(table, ["x0"], **roles)["balance"].result == "passed"


def test_balance_counts_clusters_as_one():
    rng = np.random.default_rng(0)
    g = np.repeat(np.arange(60), 30)
    by_cluster = rng.integers(0, 2, 60)[g]
    table = trial(1800).assign(a=by_cluster, g=g, size=rng.standard_normal(60)[g])
    assert results(table, ["x0", "size"], groups="g")["balance"].result == "passed"


@pytest.mark.parametrize("copied", ["y", "a"])
def test_a_covariate_that_gives_the_answer_away(copied):
    rng = np.random.default_rng(0)
    table = trial(leak=lambda t, _: 5 - 2 * t[copied] + 0.001 * rng.standard_normal(len(t)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = results(table, ["x0", "leak"], propensity=None)
    assert found["leakage"].result == "failed"
    assert "leak (" in found["leakage"].sentence


def test_the_outcome_in_other_units_among_the_covariates():
    table = trial(cents=lambda t, _: 100 * t["y"])
    assert results(table, ["x0", "cents"])["outcome among covariates"].result == "failed"


def test_the_outcome_as_prediction():
    table = trial(tau=lambda t, _: t["y"])
    assert results(table)["outcome as prediction"].result == "failed"


def test_the_prediction_among_the_covariates():
    table = trial(old=lambda t, _: t["tau"])
    assert results(table, ["x0", "old"])["prediction among covariates"].result == "warning"


def test_identifiers_are_no_covariates():
    table = trial(id=lambda t, _: np.arange(len(t)) + 1000, shuffled=lambda t, rng: rng.permutation(len(t)))
    table = table.assign(customer_id=np.random.default_rng(0).choice(10**6, 1500, replace=False))
    check = results(table, ["x0", "id", "shuffled", "customer_id"])["identifiers"]
    assert (check.result, check.figure) == ("warning", "id, shuffled, customer_id")


def test_treatment_given_by_school():
    rng = np.random.default_rng(0)
    school = np.repeat(np.arange(100), 15)
    table = trial(1500).assign(school=school, a=rng.integers(0, 2, 100)[school])
    check = results(table)["hidden clusters"]
    assert (check.result, check.advice) == ("warning", "Pass groups='school'.")
    # Nor is it where most rows have the same value, as with an amount that only those treated have.
    amount = np.where(table["a"] == 1, np.random.default_rng(0).integers(1, 60, len(table)), 0)
    mostly = table.assign(amount=np.where(np.arange(len(table)) % 5 == 0, amount, 0))
    mostly["a"] = (mostly["amount"] > 0) * 1
    assert results(mostly.drop(columns="school"))["hidden clusters"].result == "passed"
    assert "hidden clusters" not in results(table, groups="school")


def test_rows_that_could_have_had_one_treatment_only():
    rng = np.random.default_rng(0)
    table = trial(2000)
    table = table.assign(a=(rng.random(2000) < 1 / (1 + np.exp(-6 * table["x0"]))).astype(int))
    with pytest.warns(UserWarning, match="propensity"):
        found = results(table, propensity=None)
    assert found["positivity"].result == "failed"
    assert "no covariate is a consequence of the treatment" in found["positivity"].advice
    assert found["positivity"].advice.endswith("or judge the effect 'overlap'.")
    again = results(table, effect="overlap")["positivity"]
    assert again.advice == "" or again.advice.endswith("leave such rows out.")


def test_a_weak_instrument():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 1500)
    table = trial().assign(z=z, a=np.where(rng.random(1500) < 0.06, z, rng.integers(0, 2, 1500)))
    found = results(table, effect=LATE(target="compliers"), instrument="z")
    assert found["instrument strength"].result == "warning"
    strong = table.assign(a=np.where(rng.random(1500) < 0.6, z, rng.integers(0, 2, 1500)))
    assert results(strong, effect=LATE(), instrument="z")["instrument strength"].result == "passed"


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_weights_that_few_rows_carry():
    table = trial(w=lambda t, rng: rng.pareto(0.6, len(t)) + 0.01)
    assert results(table, weight="w")["weights"].result == "warning"
    assert results(table.assign(w=1 + table.index % 3), weight="w")["weights"].result == "passed"


def test_a_censored_time():
    rng = np.random.default_rng(0)
    table = trial().assign(days=rng.exponential(100, 1500), died=rng.integers(0, 2, 1500))
    check = results(table, outcome="days")["censoring"]
    assert check.result == "warning"
    assert "and the effect SurvivalProbability(time=...)" in check.advice
    assert results(table.rename(columns={"died": "smokes"}), outcome="days")["censoring"].result == "passed"


def test_impossible_predictions():
    table = trial(y=lambda t, rng: rng.integers(0, 2, len(t)), tau=lambda t, rng: rng.normal(0, 0.6, len(t)))
    check = results(table)["possible values"]
    assert check.result == "warning"
    assert "outside -1 to 1" in check.figure
    assert results(trial(), limits=(-50, 50))["possible values"].result == "passed"


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_skewed_residuals():
    """Of the treated, a few gain much."""
    table = trial(y=lambda t, rng: np.where(t["a"] == 1, rng.lognormal(0, 1.5, len(t)), rng.standard_normal(len(t))))
    assert results(table)["skewness"].result == "warning"


def boosted(table, names=("x0", "x1", "x2", "x3")):
    """A boosted T-learner of a table's rows."""
    arms = [
        HistGradientBoostingRegressor().fit(table.loc[table["a"] == a, list(names)], table.loc[table["a"] == a, "y"])
        for a in (0, 1)
    ]
    return lambda rows: arms[1].predict(rows[list(names)]) - arms[0].predict(rows[list(names)])


def test_a_model_judged_on_its_own_rows():
    here, there = trial(1000, seed=1), trial(1000, seed=2)
    model = boosted(here)
    flattered, honest = here.assign(tau=model(here)), there.assign(tau=model(there))
    check = results(flattered)["in-sample"]
    assert check.result == "failed"
    assert "as only a model trained on these rows can" in check.sentence
    assert results(honest)["in-sample"].result == "passed"
    assert results(honest.assign(tau=0.3 * (0.5 + there["x1"])))["in-sample"].result == "passed"


def test_a_failed_check_means_do_not_use_it():
    table = trial(4000, tau=lambda t, _: t["y"])
    study = Study(table, outcome="y", treatment="a", covariates=["x0"], propensity=0.5, predictions=["tau"])
    done = study.calibrate("tau", "linear")
    assert done.recommendation.action == "do not use it"
    assert "tau is the outcome itself. Pass predicted effects." in done.recommendation.reasons
    assert [check.name for check in study.checks() if check.result == "failed"] == ["outcome as prediction"]
