"""The front door: what a study takes, refuses, learns once and answers, in memory and on Dask."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dask import dataframe as dd
from sklearn.linear_model import LinearRegression, LogisticRegression

import orthocal
from orthocal import CATE, HonestyWarning, OrthocalError, QuantileUnderTreatment, Study
from orthocal.datasets import simulate_cate
from orthocal.mapfile import about

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}
NAMES = ["x0", "x1", "x2", "x3", "x4"]
ROLES = {"outcome": "y", "treatment": "a", "covariates": NAMES, "learners": FAST}


@pytest.fixture(scope="module")
def trial():
    """4,000 rows of an experiment, `tau` exaggerated and `right` the true effect."""
    data, rng = simulate_cate(4000, confounding=0, random_state=0), np.random.default_rng(0)
    table = pd.DataFrame(data.X, columns=NAMES)
    return table.assign(
        y=data.y,
        a=data.treatment,
        arm=np.where(data.treatment == 1, "drug", "placebo"),
        tau=1 + 2 * data.effect,
        right=data.effect,
        fold=rng.integers(0, 3, 4000),
        later=rng.random(4000) < 0.3,
        sex=np.where(rng.random(4000) < 0.1, None, np.where(data.X[:, 0] > 0, "f", "m")),
    )


def test_one_loss_serves_every_question(trial, monkeypatch):
    learnt = []
    fit = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", lambda self, *a, **k: learnt.append(1) or fit(self, *a, **k))
    study = Study(trial, **ROLES)
    assert learnt == []
    both = study.assess(["tau", "right"])
    assert {name: verdict.status for name, verdict in both.items()} == {"tau": "miscalibrated", "right": "calibrated"}
    study.calibrate("tau", "linear")
    assert study.compare("tau", "right").verdict == "right has the lower loss"
    assert len(learnt) == 5


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas, lambda table: table])
def test_a_table_of_any_kind_gives_the_same_answer_in_its_own(trial, kind):
    table = kind(trial.drop(columns="sex"))
    done = Study(table, **ROLES).calibrate("tau", "linear")
    wide = done.table()
    assert type(wide) is type(table)
    wanted = Study(trial, **ROLES).calibrate("tau", "linear")
    np.testing.assert_allclose(np.asarray(wide["tau_calibrated"]), wanted.table()["tau_calibrated"], rtol=1e-12)


def test_a_calibration_says_what_to_do_and_ships_a_map_of_all_rows(trial, tmp_path):
    study = Study(trial, **ROLES, predictions=["tau"])
    done = study.calibrate("tau", by="sex", cost=0.2)
    assert (done.before.status, done.status) == ("miscalibrated", "calibrated")
    assert done.recommendation.action == "use the calibrated prediction"
    assert [group.value for group in done.after.subgroups] == ["f", "m", "missing"]
    assert 0 < done.distance < done.before.tolerance / 2
    assert done.map is not done.verified_map
    gap = done.map.predict(done.before.predictions) - done.verified_map.predict(done.before.predictions)
    assert done.distance == pytest.approx(np.sqrt(np.mean(gap**2)))
    assert done.after.tolerance == done.before.tolerance
    done.save(tmp_path / "map.json")
    known = about(tmp_path / "map.json")
    assert known["status"] == "calibrated"
    assert known["fitted_range"] == pytest.approx([trial["tau"].min(), trial["tau"].max()])
    assert (known["effect"], known["rows"], known["prediction"]) == ("CATE(arm=1, control=0)", 4000, "tau")
    done.report(tmp_path / "page.html")
    assert "<strong>Use the calibrated prediction</strong>" in (tmp_path / "page.html").read_text()
    assert str(done) == done.summary()
    assert done.summary().startswith("Use the calibrated prediction. After calibration it is calibrated within")
    assert (
        json.loads(json.dumps(done.to_dict(), allow_nan=False))["recommendation"]["action"]
        == done.recommendation.action
    )


def test_the_shipped_map_must_not_be_judged_on_its_own_rows(trial):
    study = Study(trial, **ROLES)
    done = study.calibrate("tau", "linear")
    with pytest.warns(HonestyWarning, match="fitted on the rows of this study"):
        study.assess({"calibrated": done.table()["tau_calibrated"]})


def test_rows_of_a_column_are_held_out(trial):
    done = Study(trial, **ROLES).calibrate("tau", "linear", holdout="later")
    np.testing.assert_array_equal(done.judged, np.flatnonzero(trial["later"]))
    with pytest.raises(OrthocalError, match="must be boolean, 1 for rows to judge on; 'fold' holds 2"):
        Study(trial, **ROLES).calibrate("tau", holdout="fold")
    with pytest.raises(OrthocalError, match="must keep clusters whole"):
        Study(trial.assign(pair=np.arange(4000) // 2), **ROLES, groups="pair").calibrate(
            "tau", "linear", holdout="later"
        )


def test_models_and_arrays_are_predictions(trial):
    study = Study(trial, **ROLES)
    model = LinearRegression().fit(trial[NAMES].iloc[:100], trial["right"].iloc[:100])
    found = study.assess({"model": model, "array": trial["right"].to_numpy(), "function": lambda X: X["x0"]})
    assert list(found) == ["model", "array", "function"]
    assert found["array"].error == study.assess("right").error
    with pytest.raises(OrthocalError, match="`prediction` must be a column, a list of columns, or a mapping"):
        study.assess(trial["right"].to_numpy())


def test_arms_and_effects(trial):
    arms = Study(trial, **{**ROLES, "treatment": "arm"}, arm="drug", control="placebo")
    assert arms.estimand == CATE(arm="drug", control="placebo")
    assert arms.assess("tau").error == pytest.approx(Study(trial, **ROLES).assess("tau").error, rel=1e-2)
    with pytest.raises(OrthocalError, match="`arm` must belong to the effect; 'late' has"):
        Study(trial, **ROLES, effect="late", instrument="fold", arm=1)
    with pytest.raises(OrthocalError, match="must be left out where `effect` is an object"):
        Study(trial, **ROLES, effect=CATE(), arm=1)


@pytest.mark.parametrize("value", [0.1, 0.9])
def test_a_quantile_can_be_studied(trial, value):
    study = Study(trial, **{**ROLES, "learners": None}, effect=QuantileUnderTreatment(value), n_jobs=1)
    low = trial["y"][trial["a"] == 1].quantile(value)
    found = study.assess({"constant": np.full(4000, low), "tau": trial["tau"]})
    assert found["tau"].status == "miscalibrated"
    assert found["tau"].tolerance == 0.05
    assert found["tau"].ranking is None
    assert found["constant"].is_constant
    assert "in probability" in found["tau"].verdict
    done = study.calibrate("tau", "isotonic")
    assert done.map is done.verified_map


def test_labels_of_an_instrument_may_be_words(trial):
    rng = np.random.default_rng(1)
    offered = rng.random(4000) < 0.5
    taken = np.where(offered, rng.random(4000) < 0.7, rng.random(4000) < 0.1).astype(int)
    table = trial.assign(z=np.where(offered, "offer", "none"), z01=offered.astype(int), a=taken)
    one, two = (
        Study(table, **ROLES | {"learners": None}, effect="late", instrument=name).assess("tau")
        for name in ("z", "z01")
    )
    assert one.average.effect == pytest.approx(two.average.effect, rel=1e-9)


def test_what_is_known_of_an_instrument_must_be_clear(trial):
    table = trial.assign(z=np.where(np.arange(4000) % 2, "wait", "invited"))
    with pytest.raises(OrthocalError, match="must be 0 and 1 where nuisances are known"):
        Study(table, **ROLES | {"learners": None}, effect="late", instrument="z", propensity=0.8)
    with pytest.raises(OrthocalError, match="must go with an effect that uses it"):
        Study(trial, **ROLES, instrument="later")


def test_a_calibrated_array_is_what_its_table_shows(trial):
    done = Study(trial, **ROLES).calibrate({"tau": 3 * trial["right"]}, "linear")["tau"]
    np.testing.assert_allclose(done.table()["tau_calibrated"], done.map.predict(3 * trial["right"].to_numpy()))


def test_its_text_shows_no_data(trial):
    assert repr(Study(trial, **ROLES)) == (
        "Study(effect of a on y: CATE(arm=1, control=0); 4,000 rows; covariates: x0, x1, x2, x3, x4)"
    )


def test_a_file_and_the_command_line_give_the_same_json(trial, tmp_path):
    from tests.command_line import run

    data = tmp_path / "trial.csv"
    trial[[*NAMES, "y", "a", "tau"]].to_csv(data, index=False)
    words = ["--outcome", "y", "--treatment", "a", "--prediction", "tau", "--covariates", ",".join(NAMES)]
    words += ["--propensity", "1/2", "--learner", "linear", "--method", "linear", "--cost", "0.1"]
    assert run("calibrate", data, *words, "--out", tmp_path / "out") == 0
    study = Study(
        data,
        outcome="y",
        treatment="a",
        covariates=NAMES,
        predictions=["tau"],
        propensity=0.5,
        learners="linear",
    )
    done = study.calibrate("tau", "linear", cost=0.1)
    assert (tmp_path / "out" / "assessment.json").read_text() == json.dumps(done.to_dict(), indent=1) + "\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"covariates": None},
            r"none is guessed. Choose among covariates=\['x0', 'x1', .*'sex'\] those measured before",
        ),
        ({"covariates": "all"}, "`predictions` must be named where covariates are all other columns"),
        ({"covariates": ["x0", "y"]}, "`covariates` must not name the outcome; 'y' is it"),
        ({"covariates": ["x0", "X4"]}, "The covariate column must be in the data; 'X4' is not. Did you mean 'x4'"),
        ({"covariates": []}, "`covariates` must not be empty unless the propensity is known"),
        ({"outcome": "Y"}, "The outcome column must be in the data; 'Y' is not. Did you mean 'y'?"),
        ({"level": 2}, "`level` must lie strictly between 0 and 1"),
        ({"tolerance": -1}, "`tolerance` must be a positive number"),
        ({"sample": 5}, "`sample` and `exact` must be left out in memory"),
        ({"effect": "cats"}, "`effect` must be one of"),
        ({"learners": "trees"}, "`learners` must be one of 'boosting', 'linear', 'forest', 'stagewise', 'polynomial'"),
        ({"treatment": "sex"}, "`sex` must not be missing"),
        ({"outcome": 3}, "`outcome` must be the name of a column; it is 3"),
    ],
)
def test_what_a_study_refuses(trial, given, message):
    with pytest.raises(OrthocalError, match=message):
        Study(trial, **{**ROLES, **given}).assess("tau")


def test_what_is_no_table_is_refused():
    with pytest.raises(OrthocalError, match="must be a pandas, polars or pyarrow table, a path, or a dask.dataframe"):
        Study([1, 2], **ROLES)
    with pytest.raises(OrthocalError, match="must have rows; it has none"):
        Study(pd.DataFrame({"y": [], "a": []}), **ROLES)


def test_all_but_some_columns_are_covariates(trial):
    study = Study(
        trial, **{**ROLES, "covariates": None}, exclude=["arm", "fold", "later", "sex"], predictions=["tau", "right"]
    )
    assert study.roles.covariates == tuple(NAMES)


def numbers(record, path=""):
    """Yield every number of a nested record, by path; what is said of checks is left out."""
    if isinstance(record, dict):
        for name, value in record.items():
            if name not in ("checks", "figures"):
                yield from numbers(value, f"{path}/{name}")
    elif isinstance(record, list):
        for place, value in enumerate(record):
            yield from numbers(value, f"{path}/{place}")
    elif isinstance(record, float | int):
        yield path, float(record)


@pytest.mark.parametrize("method", ["linear", "histogram", "isotonic", "constant"])
def test_on_dask_the_answer_is_that_of_memory(trial, method):
    """With folds and rows held out by column, learnt nuisances included."""
    roles = {**ROLES, "learners": None, "folds": "fold", "covariates": ["x0", "x1"]}
    frame = dd.from_pandas(trial, npartitions=3)
    here = Study(trial, **roles).calibrate("tau", method, holdout="later", by="sex", cost=0.2)
    there = Study(frame, **roles, exact=True).calibrate("tau", method, holdout="later", by="sex", cost=0.2)
    one, two = dict(numbers(here.to_dict())), dict(numbers(there.to_dict()))
    in_memory = {f"/{when}/sensitivity/{what}" for when in ("before", "after") for what in ("error", "average")}
    one = {name: value for name, value in one.items() if name not in in_memory}  # strengths of a confounder need rows
    assert one.keys() == two.keys()
    np.testing.assert_allclose(list(one.values()), list(two.values()), rtol=1e-8, atol=1e-10)
    assert here.recommendation.action == there.recommendation.action
    calibrated = there.table().compute()["tau_calibrated"]
    np.testing.assert_allclose(calibrated, here.map.predict(trial["tau"]), rtol=1e-9)


def test_what_has_no_summary_form_is_refused_on_dask(trial):
    study = Study(dd.from_pandas(trial, npartitions=2), **{**ROLES, "learners": None}, sample=1000)
    for ask, message in [
        (lambda: study.calibrate("tau", "linear", redraws=1), "`redraws` must be 0 on Dask"),
        (lambda: study.assess("tau", redraws=1), "`redraws` must be 0 on Dask"),
        (lambda: study.assess({"own": trial["tau"]}), "Predictions must be a column on Dask"),
        (lambda: study.assess("tau", by={"sex": trial["sex"]}), "`by` must name columns on Dask"),
        (
            lambda: study.calibrate("tau", "linear", holdout=trial["later"]),
            "`holdout` must be a share or a column on Dask",
        ),
    ]:
        with pytest.raises(OrthocalError, match=message):
            ask()


def test_on_dask_nuisances_are_learnt_once(trial, monkeypatch):
    from orthocal.engines.partitioned import preparation

    trained, train = [], preparation.train_on_sample
    monkeypatch.setattr(preparation, "train_on_sample", lambda *a, **k: trained.append(1) or train(*a, **k))
    study = Study(dd.from_pandas(trial, npartitions=2), **ROLES)
    both = study.assess(["tau", "right"])
    assert both["tau"].error > both["right"].error
    assert study.compare("tau", "right").rivals == ("tau", "right")
    assert trained == [1]


def test_old_names_warn():
    with pytest.warns(FutureWarning, match=r"CVaRUnderTreatment\(tail=0.2\)"):
        assert orthocal.CVaRUnderTreatment(level=0.8).tail == pytest.approx(0.2)
    with pytest.warns(FutureWarning, match="expectile="):
        assert orthocal.ExpectileUnderTreatment(level=0.8).expectile == 0.8
    verdict = orthocal.assess(
        np.arange(60.0), orthocal.QuadraticLoss(np.arange(60.0) % 7, np.ones(60)), by={"half": np.arange(60) % 2}
    )
    with pytest.warns(FutureWarning, match="Assessment.subgroups"):
        assert verdict.groups == verdict.subgroups
    with pytest.warns(FutureWarning, match="Group.value"):
        assert verdict.subgroups[0].level == "0"
