"""On Spark, what the contract of engines leaves open: lost workers, bad partitions, samples, columns written back."""

import gc
import os
import signal
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from orthocal import OrthocalError, Study
from orthocal.engines.opening import opened
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.passes import PartitionWarning
from orthocal.engines.partitioned.ranges import ranges
from orthocal.engines.spark import table as spark_table
from orthocal.engines.spark.table import SparkTable
from tests.contracts.test_engines import divided, rows, source_of
from tests.spark_session import frame_of, session


@pytest.fixture(scope="module")
def trial():
    frame = rows(3000).assign(person=np.arange(3000))
    frame["fold"], frame["held"] = frame.person % 3, frame.person % 4 == 0
    return frame


@pytest.fixture(scope="module")
def partitions(trial):
    return frame_of(divided(trial, 3))


def test_a_study_gives_the_numbers_of_memory(trial, partitions):
    """Outcomes are learnt by what a user passes, on a sample of all rows; folds and rows held out are columns."""
    study = {
        "outcome": "y",
        "treatment": "a",
        "covariates": ["x"],
        "nuisances": {"propensity": "propensity"},
        "learners": {"outcome": LinearRegression()},
        "folds": "fold",
        "random_state": 0,
    }
    here, there = (
        Study(data, **study, **more).calibrate("tau", "linear", holdout="held")
        for data, more in ((trial, {}), (partitions, {"sample": 10**9, "key": "person"}))
    )
    assert there.status == here.status
    assert there.after.error == pytest.approx(here.after.error, abs=1e-8)
    written = there.table()
    assert isinstance(written, type(partitions))
    wide = written.toPandas().sort_values("person")
    np.testing.assert_allclose(wide.tau_calibrated, here.table().tau_calibrated, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(wide.y, trial.y)


def killing(folder, call):
    """Return a function of whatever a worker holds that kills the worker at the given call of all, once."""

    def kill(held, *more):
        for number in range(100):
            with suppress(FileExistsError):
                os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_EXCL))
                break
        if number == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.ones(len(held), dtype=bool)

    return kill


@pytest.mark.parametrize(("method", "call"), [("linear", 2), ("isotonic", 5)])
def test_a_worker_killed_in_the_middle_changes_no_map(partitions, tmp_path, method, call):
    """Of three partitions call 0 looks at the first, calls 1 to 3 sum or sketch all, calls 4 to 6 divide them by ranges."""
    source = source_of(SparkTable.of_frame(partitions))
    lossy = replace(source, table=source.table.where(["tau"], killing(tmp_path, call)))
    at = np.linspace(-5, 5, 101)
    right, found = (fitted(method, one, exact=True).map_.predict(at) for one in (source, lossy))
    np.testing.assert_array_equal(found, right)
    assert len(list(tmp_path.iterdir())) > call + 1


def test_a_worker_killed_with_the_ranges_it_keeps_changes_no_verdict(partitions, tmp_path, monkeypatch):
    monkeypatch.setattr("orthocal.engines.partitioned.ranges.ROWS_A_RANGE", 1000)
    pieces = ranges(source_of(SparkTable.of_frame(partitions)))
    kill = killing(tmp_path, 1)
    assert (
        [len(one) for one in pieces.answers(kill)]
        == pieces.answers(lambda piece, number: len(piece))
        == [1000, 1000, 1000]
    )
    assert len(list(tmp_path.iterdir())) == 4


def test_bad_partitions_are_named_and_empty_ones_add_nothing(trial):
    parts = divided(trial, 3)
    empty, bad = parts[0][:0], parts[1].assign(y=parts[1].y.where(parts[1].person != 1017))
    with pytest.raises(OrthocalError, match=r"^Partition 1: `y` must be finite in every row; row 17 is nan\."):
        fitted("linear", source_of(SparkTable.of_frame(frame_of([parts[0], bad]))), exact=False)
    with pytest.warns(PartitionWarning, match="Partition 1 is empty; it adds nothing"):
        found = fitted("linear", source_of(SparkTable.of_frame(frame_of([parts[0], empty, parts[2]]))), exact=False)
    assert found.rows_ == 2000
    with pytest.raises(OrthocalError, match="The data must have rows; every partition is empty"):
        source_of(SparkTable.of_frame(frame_of(parts).where("person < 0")))


def test_a_broken_rule_is_raised_wherever_it_is_found(partitions):
    table = SparkTable.of_frame(partitions)

    def refuse(*held):
        raise OrthocalError(f"{held[1]}: no.")

    for work in (
        lambda: table.answers(refuse),
        lambda: table.merged(refuse, max),
        lambda: table.calls(refuse, [(0, "Partition 0")]),
        lambda: table.ranges(refuse, refuse, np.array([]), pd.DataFrame()).answers(refuse),
    ):
        with pytest.raises(OrthocalError, match=r"^Partition \d: no\.$"):
            work()


def test_a_table_does_what_a_partitioned_table_must(trial, monkeypatch):
    """Names with dots, a tree of merges in order, ranges of which some are empty, calls; and ranges are let go."""
    monkeypatch.setattr(spark_table, "AT_ONCE", 2)
    spark = session()
    table = opened(frame_of([part.rename(columns={"tau": "a.tau"}) for part in divided(trial, 5)]))
    assert table.columns[3] == "a.tau"
    persons = table.select(["person"])
    found = persons.merged(lambda part, name: part.person.tolist(), lambda some: sum(some, []))  # noqa: RUF017
    assert found == trial.person.tolist()
    high = persons.where(["a.tau"], lambda part, least: (part["a.tau"] > least).to_numpy(), 1.0)
    assert sum(high.answers(lambda part, name: len(part))) == (trial.tau > 1).sum()
    third = high.answers(lambda part, name, by: (len(part), name + by), "!", parts=[3])
    assert third == [((trial.tau[1800:2400] > 1).sum(), "Partition 3!")]
    assert table.select([]).answers(lambda part, name: len(part), parts=[0]) == [600]
    assert table.calls(lambda one, other, more: one + other + more, [(1, 2), (3, 4)], 10) == [13, 17]
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    ranges_of = table.ranges(
        lambda part, name: (pd.DataFrame({"prediction": part["a.tau"]}), name),
        lambda held: np.sort(held.prediction.to_numpy()),
        np.array([0.0, 1.0, 1e6]),
        pd.DataFrame({"prediction": []}),
    )
    rows = ranges_of.changed(lambda held, below: held[held < below], 2.0).answers(
        lambda held, number: (number, len(held))
    )
    tau = trial.tau
    assert rows == [
        (0, (tau <= 0).sum()),
        (1, ((tau > 0) & (tau <= 1)).sum()),
        (2, ((tau > 1) & (tau < 2)).sum()),
        (3, 0),
    ]
    assert ranges_of.notes == list(table.names)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before + 1
    del ranges_of
    gc.collect()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before


def test_workers_hold_a_chunk_at_a_time():
    """However large partitions are, and asked for one by one or all together."""
    table = opened(session().range(0, 2_500_000, 1, 2).selectExpr("id AS person"))
    assert table.names == [
        "Partition 0",
        "Partition 0, from row 1,048,576",
        "Partition 1",
        "Partition 1, from row 1,048,576",
    ]
    whole = table.answers(lambda part, name: (name, len(part), part.person.min()))
    chunk = 2**20
    assert whole == [
        ("Partition 0", chunk, 0),
        ("Partition 0, from row 1,048,576", 1_250_000 - chunk, chunk),
        ("Partition 1", chunk, 1_250_000),
        ("Partition 1, from row 1,048,576", 1_250_000 - chunk, 1_250_000 + chunk),
    ]
    some = table.answers(lambda part, name: (name, len(part), part.person.min()), parts=[3, 0, 1])
    assert some == [whole[3], whole[0], whole[1]]
    assert table.merged(lambda part, name: [len(part)], lambda found: sum(found, [])) == [one[1] for one in whole]  # noqa: RUF017


def test_learners_see_a_sample(partitions):
    study = Study(partitions, outcome="y", treatment="a", covariates=["x"], random_state=0)
    with pytest.raises(OrthocalError, match="Nuisances must be learnt on a sample on Spark"):
        study.rows.engine.table.trained(None, None, None)
