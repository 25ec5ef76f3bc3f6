"""Subgroups in a study: put right by `within`, tested by `audit`, discovered; and by boosting in the array door."""

import json
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import orthocal
from orthocal import BoostedMulticalibrator, HingeLoss, OrthocalError, QuadraticLoss, Study
from orthocal.assessment.discovery import Condition, discovered, in_words
from orthocal.calibrators.within import GroupsWithin, groups_within, range_words, short_cuts
from orthocal.group_maps import GroupMap
from tests.command_line import run


def trial(n=3000, seed=0, off=0.8):
    """Return a randomised trial whose predictions are too high for women, too low for men, and much too high for old women."""
    rng = np.random.default_rng(seed)
    x, age = rng.standard_normal(n), rng.integers(20, 90, n)
    sex, member = rng.choice(["f", "m"], n), rng.random(n) < 0.5
    effect = 1 + x
    gap = off * np.where(sex == "f", 1.0, -1.0) + off * ((sex == "f") & (age > 60))
    treated = rng.integers(0, 2, n)
    outcome = x + treated * effect + 0.5 * rng.standard_normal(n)
    return pd.DataFrame(
        {
            "x": x,
            "age": age,
            "sex": sex,
            "member": member,
            "a": treated,
            "y": outcome,
            "tau": effect + gap,
            "effect": effect,
        }
    )


def study_of(table, **more):
    known = {
        "propensity": 0.5,
        "outcome_control": table["x"].to_numpy(),
        "outcome_treated": (table["x"] + table["effect"]).to_numpy(),
    }
    given = {"outcome": "y", "treatment": "a", "covariates": ["x", "age", "sex"], "nuisances": known}
    return Study(table, **{**given, **more})


WITHIN = ["sex", "age", ("sex", "age"), "member"]


@pytest.fixture(scope="module")
def table():
    return trial()


@pytest.fixture(scope="module")
def done(table):
    return study_of(table).calibrate("tau", within=WITHIN)


def test_subgroups_are_put_right(table, done):
    after = done.table()["tau_calibrated"]
    before, error = ((table["tau"] - table["effect"]) ** 2).mean(), ((after - table["effect"]) ** 2).mean()
    assert error < 0.3 * before
    gap = (after - table["effect"]).groupby([table["sex"], table["age"] > 60]).mean().abs().max()
    assert gap < 0.3 * (table["tau"] - table["effect"]).groupby([table["sex"], table["age"] > 60]).mean().abs().max()
    assert done.recommendation.action == "use the calibrated prediction"
    assert any(reason.startswith("Before, ") for reason in done.recommendation.reasons)
    assert len(done.audit_after.found) < len(done.audit_before.found)
    assert "SUBGROUPS, before: " in done.summary()


def test_a_map_bent_by_errors_of_subgroups_is_left_out(table, done):
    """The spline of `auto` would leave five times the error; a method that was asked for stays."""
    after = done.table()["tau_calibrated"]
    assert ((after - table["effect"]) ** 2).mean() < 0.05 * ((table["tau"] - table["effect"]) ** 2).mean()
    assert "shifts of subgroups did better without this map" in done.reason
    assert done.map.base == ()
    assert study_of(table).calibrate("tau", "linear", within=WITHIN).map.base != ()


def test_every_form_of_the_map_gives_the_table(tmp_path, table, done):
    wanted = done.table()["tau_calibrated"].to_numpy()
    done.save(tmp_path / "map.json")
    assert orthocal.load(tmp_path / "map.json").columns == done.map.columns
    assert set(done.map.columns) <= {"sex", "age", "member"}
    assert orthocal.mapfile.about(tmp_path / "map.json")["groups"] == list(done.map.columns)
    np.testing.assert_array_equal(orthocal.load(tmp_path / "map.json").predict(table["tau"], table), wanted)
    numbered = duckdb.from_df(table.assign(place=range(len(table))))  # a database promises no order
    found = numbered.project(f"place, {orthocal.to_sql(done.map, 'tau')} AS c").order("place").df()["c"]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    space = {}
    exec(orthocal.to_python(done.map), space)
    some = table.head(50).to_dict("records")
    np.testing.assert_allclose([space["calibrate"](row["tau"], row) for row in some], wanted[:50], atol=1e-12)


@pytest.mark.parametrize(("source", "target"), [("csv", "csv"), ("parquet", "parquet"), ("csv", "parquet")])
def test_apply_uses_the_columns_of_groups(tmp_path, table, done, source, target):
    done.save(tmp_path / "map.json")
    data, out = tmp_path / f"new.{source}", tmp_path / f"out.{target}"
    some = table.assign(sex=table["sex"].where(table.index % 7 > 0, None), age=table["age"].where(table.index % 5 > 0))
    some.to_csv(data, index=False) if source == "csv" else some.to_parquet(data)
    assert run("apply", tmp_path / "map.json", data, "--prediction", "tau", "--out", out) == 0
    found = pd.read_csv(out) if target == "csv" else pd.read_parquet(out)
    np.testing.assert_allclose(found["tau_calibrated"], done.map.predict(some["tau"], some), atol=1e-12)


def test_apply_says_which_column_is_missing(tmp_path, table, done, capsys):
    done.save(tmp_path / "map.json")
    table.drop(columns="sex").to_csv(tmp_path / "new.csv", index=False)
    assert (
        run("apply", tmp_path / "map.json", tmp_path / "new.csv", "--prediction", "tau", "--out", tmp_path / "o.csv")
        == 2
    )
    assert "The group column must be in the data; 'sex' is not." in " ".join(capsys.readouterr().err.split())


def test_a_map_of_groups_has_no_band(done):
    with pytest.raises(OrthocalError, match="subgroups have shifts in this one"):
        _ = done.band
    assert "tau_lower" not in done.table()


def test_the_page_shows_the_forest_before_and_after(tmp_path, done):
    done.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Subgroups before and after" in page
    assert "calibration_map.predict(predictions, table)" in page
    assert "What the map adds in subgroups, in turn" in page
    assert "sex = f and age" in page
    assert "Before: " in page
    assert "Audit" in done.audit_before._repr_html_()
    assert "map, before shifts of subgroups" in done._repr_html_()


def test_a_model_right_in_every_subgroup_keeps_the_plain_map(tmp_path):
    table = trial(2000, seed=3, off=0.0)
    done = study_of(table).calibrate("tau", "linear", within=["sex", "member"])
    assert not isinstance(done.map, GroupMap)
    assert done.audit_after is not None
    assert done.recommendation.action == "use the prediction"
    assert done.recommendation.reasons[-1].startswith("None of ")
    done.report(tmp_path / "page.html")
    assert "No subgroup stood out" in (tmp_path / "page.html").read_text()


def test_calibrated_over_all_but_off_in_subgroups_is_no_prediction_to_use():
    """Over all people the errors of men and women cancel: without subgroups named, the prediction would do."""
    rng = np.random.default_rng(4)
    table = trial(4000, seed=4, off=0.0)
    side = rng.choice([-1.0, 1.0], 4000)
    table["sex"], table["tau"] = np.where(side > 0, "f", "m"), table["effect"]
    table["y"] += table["a"] * 0.4 * side
    table["effect"] += 0.4 * side
    study = study_of(table)
    assert study.calibrate("tau", "linear").recommendation.action == "use the prediction"
    done = study.calibrate("tau", "linear", within=["sex"])
    assert done.recommendation.action == "use the calibrated prediction"
    assert study.calibrate("tau", "linear", within=["sex"], holdout=0).recommendation.action == "hold rows out"


@pytest.mark.more
def test_redraws_use_the_subgroups(table):
    done = study_of(table, nuisances={"propensity": 0.5}, learners="linear").calibrate(
        "tau", "linear", within="sex", redraws=1
    )
    (_, first), (_, again) = done.redraws
    assert again == pytest.approx(first, abs=0.15)


def test_groups_of_columns():
    values = {"age": np.arange(20.0, 100.0), "sex": np.tile(["f", "m"], 40), "kids": np.arange(80) % 3}
    found = groups_within(["kids", "age", ["sex", "age"]], values.__getitem__, np.ones(80))
    assert isinstance(found, GroupsWithin)
    # 80 ages from 20: quartiles are the 20th, 40th and 60th, 39, 59 and 79.
    assert np.unique(found.labels["age"]).tolist() == ["age 40 to 59", "age 60 to 79", "age over 79", "age up to 39"]
    assert found.labels["sex and age"][0] == "sex = f and age up to 39"
    assert found.labels["kids"].tolist() == values["kids"].tolist()
    assert found.phrased == {"age", "sex and age"}
    assert {one.name for one in found.derived} == {"age", "sex and age"}
    assert groups_within([["kids", "sex"]], {**values, "kids": values["kids"] / 2}.__getitem__, np.ones(80)).labels[
        "kids and sex"
    ][:3].tolist() == ["kids = 0 and sex = f", "kids = 0.5 and sex = m", "kids = 1 and sex = f"]


def test_ranges_are_readable_and_true():
    numbers = np.random.default_rng(0).normal(1000, 0.01, 400)
    edges = short_cuts(np.quantile(numbers, [0.25, 0.5, 0.75]), numbers)
    assert np.histogram(numbers, [-np.inf, *edges, np.inf])[0].min() >= 50
    assert all(len(f"{edge:g}") < 12 for edge in edges)
    assert range_words("x", np.array([1.5, 2.5]), is_whole=False) == ("x up to 1.5", "x 1.5 to 2.5", "x over 2.5")
    assert range_words("x", np.array([1.0, 2.0, 12000.0]), is_whole=True) == (
        "x up to 1",
        "x 2",
        "x 3 to 12,000",
        "x over 12,000",
    )


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ([], "`within` must name columns"),
        (3, "`within` must name columns"),
        ([3], "must hold columns, or lists of columns"),
        ([["sex", 3]], "must hold columns, or lists of columns"),
        (["sexx"], "The within column must be in the data; 'sexx' is not. Did you mean 'sex'"),
    ],
)
def test_bad_subgroups_get_one_sentence(table, within, message):
    with pytest.raises(OrthocalError, match=message):
        study_of(table).calibrate("tau", within=within)


def test_quantiles_several_arms_and_dask_are_refused(table):
    import dask.dataframe as dd

    given = {"outcome": "y", "treatment": "a", "covariates": ["x"], "propensity": 0.5, "learners": "linear"}
    with pytest.raises(OrthocalError, match="Quantiles and expectiles are calibrated for all rows together"):
        Study(table.head(600), effect="quantile", **given).calibrate("tau", "linear", within=["sex"])
    with pytest.raises(OrthocalError, match="`within` must go with one contrast"):
        Study(table, arms="all", **given).calibrate({1: "tau"}, within=["sex"])
    on_dask = Study(dd.from_pandas(table, npartitions=2), **given)
    for question in (on_dask.calibrate, on_dask.audit):
        with pytest.raises(OrthocalError, match="`within` must have rows in memory"):
            question("tau", within=["sex"])


def test_an_audit_of_named_subgroups(table):
    found = study_of(table).audit("tau", [("sex", "age"), "member"], bins=1)
    assert found.found[0].group.startswith("sex = f and age ")
    assert {cell.column for cell in found.cells} == {"", "sex and age", "member"}
    record = json.loads(json.dumps(found.to_dict()))
    assert record["cells"][0]["is_off"]
    assert record["cells"][0]["name"] == found.cells[0].name
    ax = found.plot()
    assert len(ax.get_yticklabels()) == len(found.cells)
    both = study_of(table).audit({"tau": "tau", "right": "effect"}, "sex", bins=1)
    assert len(both["tau"].found) > 1
    assert both["right"].headline.startswith("None of 3 cells is miscalibrated")


def test_an_audit_needs_columns(table):
    with pytest.raises(OrthocalError, match="`within` must name columns of subgroups, or `discover` be True"):
        study_of(table).audit("tau")
    bare = study_of(table, covariates=[])
    with pytest.raises(OrthocalError, match="must name columns to discover subgroups by"):
        bare.audit("tau", discover=True)
    assert bare.audit("tau", ["sex"], discover=True).found


def test_worst_subgroups_are_discovered_in_words(table):
    found = study_of(table).audit("tau", discover=True)
    assert found.searched == ("x", "age", "sex")
    assert "found on the other half of the rows by x, age, sex" in str(found)
    worst = max(found.found, key=lambda cell: cell.excess)
    assert worst.group.startswith("sex = f and")
    assert any(
        cell.group in {"sex = f and age > 60", "sex = f and age > 59", "sex = f and age > 61"} for cell in found.found
    )
    assert all(cell.rows < 0.55 * len(table) for cell in found.cells)


def test_discovered_subgroups_are_what_their_words_say():
    rng = np.random.default_rng(5)
    columns = {
        "age": rng.integers(0, 100, 2000).astype(float),
        "area": rng.choice(np.array(["a", "b", "c", None]), 2000),
    }
    columns["age"][:100] = np.nan
    gap = np.where(columns["area"] == "c", 2.0, 0.0) * (columns["age"] > 40)
    loss = QuadraticLoss(gap + 0.1 * rng.standard_normal(2000), np.ones(2000))
    groups = discovered(np.zeros(2000), loss, columns, np.arange(1000), 0)
    deep = groups["depth 2"]
    own = deep == "area = c and age > 40"
    assert own.any()
    np.testing.assert_array_equal(own, (columns["area"] == "c") & (columns["age"] > 40))
    assert set(np.unique(groups["depth 1"])) == {"area = c", "area is not c", "missing"}


def test_conditions_in_words():
    conditions = (
        Condition("age", True, 20.0),
        Condition("sex", True, 0.0, "f"),
        Condition("age", True, 40.0),
        Condition("age", False, 12000.0),
        Condition("area", False, 0.0, "a"),
        Condition("area", False, 0.0, "b"),
    )
    assert in_words(conditions) == "40 < age <= 12,000 and sex = f and area is not a nor b"
    assert in_words(conditions[:1]) == "age > 20"


@pytest.mark.more
def test_the_command_line(tmp_path, table, capsys):
    data = tmp_path / "trial.csv"
    table.drop(columns="effect").to_csv(data, index=False)
    words = [data, "--outcome", "y", "--treatment", "a", "--prediction", "tau", "--covariates", "x,age,sex"]
    words += ["--propensity", "1/2", "--learner", "linear"]
    out = tmp_path / "out"
    assert run("calibrate", *words, "--within", "sex,age,sex:age", "--method", "linear", "--out", out) == 0
    assert "SUBGROUPS, after" in capsys.readouterr().out
    written = pd.read_csv(out / "calibrated.csv")
    fitted = orthocal.load(out / "map.json")
    assert isinstance(fitted, GroupMap)
    np.testing.assert_allclose(written["tau_calibrated"], fitted.predict(table["tau"], table), atol=1e-9)
    assert run("audit", *words, "--within", "sex:age", "--bins", "1", "--out", tmp_path / "audit") == 0
    assert "sex = f and age" in capsys.readouterr().out
    assert {file.name for file in (tmp_path / "audit").iterdir()} >= {"audit.json", "audit.png"}
    assert run("audit", *words, "--discover", "--dry-run") == 0
    assert run("audit", *words, "--discover", "--cost", "1") == 2
    assert "does not apply to audit" in " ".join(capsys.readouterr().err.split())


def boosting_design(rng, n, off=0.8):
    """Return covariates, predictions off by sex among those over 50, the true effect, and the loss."""
    X = pd.DataFrame({"age": rng.uniform(20, 90, n), "sex": rng.choice(["f", "m"], n)})
    effect = rng.standard_normal(n)
    gap = off * np.where(X["sex"] == "f", 1.0, -1.0) * (X["age"].to_numpy() > 50)
    return X, effect + gap, effect, QuadraticLoss(effect + rng.standard_normal(n), np.ones(n))


def test_boosting_puts_right_what_trees_can_see():
    rng = np.random.default_rng(6)
    X, prediction, _, loss = boosting_design(rng, 4000)
    fitted = BoostedMulticalibrator().fit(prediction, loss, X)
    fresh, before, truth, _ = boosting_design(rng, 4000)
    after = fitted.predict(before, fresh)
    assert ((after - truth) ** 2).mean() < 0.4 * ((before - truth) ** 2).mean()
    assert fitted.steps_ > 0
    assert fitted.gain_ > 0


def test_boosting_may_leave_the_model_untouched():
    """Where nothing is off, one number of steps in four lowers the held-out loss by chance: that is not enough."""
    changed = 0
    for seed in range(30):
        X, prediction, _, loss = boosting_design(np.random.default_rng(seed), 800, off=0.0)
        fitted = BoostedMulticalibrator(max_steps=20).fit(prediction, loss, X)
        changed += fitted.steps_ > 0
        if fitted.steps_ == 0:
            np.testing.assert_array_equal(fitted.predict(prediction, X), prediction)
    assert changed <= 3


def test_laws_of_boosting():
    """Row order has no say, rows of weight 0 are no evidence, and a clone is set alike."""
    X, prediction, _, loss = boosting_design(np.random.default_rng(10), 1500)
    settings = BoostedMulticalibrator(max_steps=30, min_samples_leaf=40)
    assert clone(settings).get_params() == settings.get_params()
    wanted = clone(settings).fit(prediction, loss, X).predict(prediction, X)
    order = np.random.default_rng(11).permutation(1500)
    mixed = clone(settings).fit(prediction[order], loss[order], X.iloc[order])
    np.testing.assert_allclose(mixed.predict(prediction, X), wanted, atol=1e-9)
    weight = np.r_[np.ones(1500), np.zeros(50)]
    longer = QuadraticLoss(np.r_[loss.numerator, np.full(50, 99.0)], weight, weight)
    padded = clone(settings).fit(np.r_[prediction, prediction[:50]], longer, pd.concat([X, X.head(50)]))
    np.testing.assert_allclose(padded.predict(prediction, X), wanted, atol=1e-9)


def test_boosting_keeps_clusters_whole():
    """Clusters share their noise: held-out rows of a cluster that was learnt on would bear any step out."""
    rng = np.random.default_rng(8)
    cluster = np.repeat(np.arange(60), 40)
    X = rng.standard_normal((60, 3))[cluster]
    loss = QuadraticLoss(2 * rng.standard_normal(60)[cluster], np.ones(2400))
    assert BoostedMulticalibrator(max_steps=50).fit(np.zeros(2400), loss, X).steps_ > 0
    together = replace(loss, groups=cluster)
    assert BoostedMulticalibrator(max_steps=50).fit(np.zeros(2400), together, X).steps_ == 0


def test_boosting_refuses_what_it_cannot_do():
    ones, outcome = np.ones(300), np.random.default_rng(9).standard_normal(300)
    with pytest.raises(OrthocalError, match="Quantiles and expectiles"):
        BoostedMulticalibrator().fit(0 * ones, HingeLoss(outcome, ones, 0.3 * ones), ones[:, None])
    mass = np.where(np.arange(300) % 3 > 0, 1.0, -0.5)
    with pytest.raises(OrthocalError, match="must have a positive mass in every row"):
        BoostedMulticalibrator().fit(0 * ones, QuadraticLoss(ones, mass, ones, is_ratio=True), ones[:, None])
