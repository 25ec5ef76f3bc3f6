"""Checks are the same on every engine: counted in all rows, or looked at in a sample that is stated."""

import numpy as np
import pandas as pd
import pytest
from dask import dataframe as dd

from orthocal import LATE, OrthocalError, RestrictedMeanTime, Study
from orthocal.datasets import simulate_late
from orthocal.study import partitioned_checks
from tests.contracts.test_engines import ENGINES, GIVEN, divided, every_engine, rows
from tests.contracts.test_engines import threads as threads  # noqa: PLC0414  # a fixture

pytestmark = [
    pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning"),
    pytest.mark.filterwarnings("ignore::orthocal.SkewWarning"),
    pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning"),
    pytest.mark.usefixtures("threads"),
]
ROLES = {"outcome": "y", "treatment": "a", "nuisances": {name: name for name in GIVEN}}


def people(weight=None):
    """A clean table with words, gaps and a column of rows to be judged on."""
    frame, rng = rows(1500, weight=weight), np.random.default_rng(5)
    frame["word"] = rng.choice(["red", "blue", "green"], len(frame))
    frame["gaps"] = np.where(rng.random(len(frame)) < 0.1, np.nan, rng.standard_normal(len(frame)))
    return frame.assign(later=rng.random(len(frame)) < 0.4)


def spoilt():
    """A table with everything wrong that checks look for; its propensities are as before, which treatment is not."""
    frame, rng = people(), np.random.default_rng(6)
    frame["days"], frame["died"] = frame.y - frame.y.min(), rng.integers(0, 2, len(frame))
    frame["school"] = rng.integers(0, 60, len(frame))
    frame["a"] = (frame.school % 2 == 1).astype(int)
    frame["cents"], frame["number"], frame["copy"] = 100 * frame.days, np.arange(len(frame)), frame.tau
    frame["visit"] = np.arange(len(frame)) % 300  # rises within a partition only
    return frame.assign(heavy=rng.pareto(0.6, len(frame)) + 0.01, days_again=frame.days)


CASES = {
    "clean": (people, {**ROLES, "covariates": ["x", "word", "gaps"], "predictions": ["tau"]}),
    "spoilt": (
        spoilt,
        {
            **ROLES,
            "outcome": "days",
            "covariates": ["x", "cents", "number", "copy", "word", "visit"],
            "predictions": ["tau", "days_again"],
            "weight": "heavy",
            "limits": (0, 1),
        },
    ),
    "no covariates": (people, {**ROLES, "covariates": [], "predictions": ["tau"]}),
}
EXPECTED = {
    "failed": {"balance", "leakage", "outcome among covariates", "outcome as prediction"},
    "warning": {
        "censoring",
        "hidden clusters",
        "identifiers",
        "possible values",
        "prediction among covariates",
        "weights",
    },
}


@every_engine
@pytest.mark.parametrize(
    ("case", "weight", "groups"),
    [*((case, None, None) for case in CASES), ("clean", "w", None), ("clean", None, "cluster")],
)
def test_checks_are_those_of_memory(tmp_path, engine, case, weight, groups):
    made, roles = CASES[case]
    frame = made() if weight is None else people("whole")
    roles = {"weight": weight, "groups": groups} | roles
    here = Study(frame, **roles).checks()
    how = 5 if case == "spoilt" else "uneven"  # numbers of rows are in order
    there = Study(ENGINES[engine](divided(frame, how), tmp_path), **roles).checks()
    assert there == here
    if case == "spoilt":
        for result, names in EXPECTED.items():
            assert names <= {check.name for check in there if check.result == result}


def instrumented():
    data = simulate_late(n=3000, random_state=0)
    frame = pd.DataFrame({"x": data.X[:, 0], "y": data.y, "a": data.treatment, "z": data.instrument})
    return frame.assign(tau=data.effect, cluster=np.arange(len(frame)) % 70, **data.nuisances), data.nuisances


@pytest.mark.parametrize("engine", ["dask", "local"])
@pytest.mark.parametrize("groups", [None, "cluster"])
def test_the_strength_of_an_instrument_is_that_of_memory(tmp_path, engine, groups):
    frame, known = instrumented()
    roles = {"outcome": "y", "treatment": "a", "instrument": "z", "covariates": ["x"], "effect": LATE()}
    roles |= {"nuisances": {name: name for name in known}, "groups": groups, "predictions": ["tau"]}
    there = Study(ENGINES[engine](divided(frame, 4), tmp_path), **roles).checks()
    assert there == Study(frame, **roles).checks()
    assert "instrument strength" in {check.name for check in there}


def test_follow_up_is_checked_on_partitions():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(1500), "a": rng.integers(0, 2, 1500), "days": rng.exponential(9, 1500)})
    frame["seen"], frame["tau"] = rng.random(1500) < 0.7, frame.x
    roles = {"outcome": "days", "event": "seen", "treatment": "a", "covariates": ["x"], "propensity": 0.5}
    roles |= {"effect": RestrictedMeanTime(horizon=5), "learners": "linear", "predictions": ["tau"]}
    there, here = (
        {check.name: check for check in Study(table, **roles).checks()}
        for table in (dd.from_pandas(frame, npartitions=3), frame)
    )
    assert there.keys() == here.keys()
    assert "follow-up" in there
    assert there["follow-up"].figure.split(",")[0] == here["follow-up"].figure.split(",")[0]


def test_checks_rest_on_the_nuisances_that_were_learnt_and_on_their_folds(tmp_path):
    """A model that follows the noise of half of the rows is found out by the same figure as in memory."""
    frame, rng = people(), np.random.default_rng(7)
    frame["tau"] += np.where(rng.random(len(frame)) < 0.5, 2 * (2 * frame.a - 1) * (frame.y - frame.y.mean()), 0)
    roles = {"outcome": "y", "treatment": "a", "covariates": ["x", "word"], "predictions": ["tau"]}
    roles |= {"folds": "fold", "learners": "linear"}
    frame["fold"] = rng.integers(0, 3, len(frame))
    there = Study(ENGINES["local"](divided(frame, 3), tmp_path), **roles).checks()
    assert there == Study(frame, **roles).checks()


@pytest.mark.parametrize("engine", ["dask", "local"])
def test_a_calibration_has_the_checks_of_memory(tmp_path, engine):
    frame, roles = people(), CASES["clean"][1]
    here = Study(frame, **roles).calibrate("tau", "linear", holdout="later")
    table = ENGINES[engine](divided(frame, 3), tmp_path)
    there = Study(table, **roles).calibrate("tau", "linear", holdout="later")
    assert there.checks == here.checks
    assert {"map inside the band", "ranking", "in-sample"} <= {check.name for check in there.checks}
    assert Study(table, **roles).assess("tau").checks == Study(frame, **roles).assess("tau").checks


@every_engine
def test_a_failed_check_means_do_not_use_it(tmp_path, engine):
    frame = people().assign(tau=lambda table: table.y)
    study = Study(ENGINES[engine](divided(frame, 4), tmp_path), **CASES["clean"][1])
    done = study.calibrate("tau", "linear", holdout="later")
    assert done.recommendation.action == "do not use it"
    assert done.recommendation.reasons[0] == "tau is the outcome itself. Pass predicted effects."


def sampled_study(tmp_path, engine, how, frame, roles):
    folder = tmp_path / f"{engine}-{how}"
    folder.mkdir()
    return Study(ENGINES[engine](divided(frame, how), folder), **roles)


def test_rows_are_looked_at_in_a_sample_that_is_stated_and_the_same_on_every_engine(tmp_path, monkeypatch):
    monkeypatch.setattr(partitioned_checks, "ROWS", 700)
    frame, roles = CASES["spoilt"][0](), CASES["spoilt"][1]
    studies = [sampled_study(tmp_path, *how, frame, roles) for how in (("dask", 3), ("local", 7), ("duckdb", 1))]
    first, *others = [study.checks() for study in studies]
    assert all(found == first for found in others)
    found = {check.name: check for check in first}
    seen = studies[0].rows.evidence().evidence.rows
    assert 600 < len(seen) < 800
    stated = {"balance", "leakage", "identifiers", "hidden clusters", "censoring", "in-sample"}
    assert {name for name, check in found.items() if f"on a sample of {len(seen):,} rows" in check.figure} == stated
    whole = {check.name: check for check in Study(frame, **roles).checks()}
    assert {name for name in found if found[name] == whole[name]} == found.keys() - stated
    assert {name: check.result for name, check in found.items()} == {
        name: check.result for name, check in whole.items()
    }


def test_rows_that_hold_the_same_have_a_chance_each(monkeypatch):
    """Two columns of 0 and 1 tell four kinds of rows apart: the sample has about as many of each as the table."""
    monkeypatch.setattr(partitioned_checks, "ROWS", 2000)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.random(20_000) < 0.3, "a": rng.integers(0, 2, 20_000), "tau": 0.0}).astype(float)
    roles = {"outcome": "y", "treatment": "a", "covariates": [], "nuisances": {"propensity": 0.5}}
    roles["nuisances"] |= {"outcome_control": 0.3, "outcome_treated": 0.3}
    seen = Study(dd.from_pandas(frame, npartitions=4), **roles).rows.evidence().evidence.rows
    assert 1800 < len(seen) < 2200
    assert abs(seen.outcome.mean() - frame.y.mean()) < 4 * np.sqrt(0.21 / 2000)
    assert abs(seen.treatment.mean() - 0.5) < 4 * np.sqrt(0.25 / 2000)


def test_text_where_other_partitions_have_numbers_is_refused(tmp_path):
    frame = people().assign(person=np.arange(1500))
    table = ENGINES["local"]([frame.iloc[:700], frame.iloc[700:].assign(x=lambda rows: rows.word)], tmp_path)
    with pytest.raises(OrthocalError, match="part-1.parquet: Covariates must hold the same kind of value in every"):
        Study(table, **ROLES, covariates=["x"], key="person").checks()
