"""Whoever watches a pass over partitions is told how many partitions and rows are done."""

import time

import dask
import numpy as np
import pandas as pd
import pytest
from dask import dataframe as dd

from orthocal.engines.dask import watch
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.local.table import LocalTable
from orthocal.progress import watching


def rows_of(part, name):
    del name
    time.sleep(0.05)
    return len(part)


def on_dask(frame, folder):
    del folder
    return DaskTable(dd.from_pandas(frame, npartitions=6))


def in_files(frame, folder):
    for number in range(6):
        frame.iloc[50 * number : 50 * (number + 1)].to_parquet(folder / f"{number}.parquet")
    return LocalTable.of_files(folder)


def told_of(table, ask):
    told = []
    with watching(lambda *done: told.append(done)):
        ask(table)
    return told


ASKED = {
    "answers": lambda table: table.answers(rows_of),
    "merged": lambda table: table.merged(rows_of, sum),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("made", [on_dask, in_files])
def test_partitions_and_rows_are_told_as_they_are_done(tmp_path, monkeypatch, made, ask):
    monkeypatch.setattr(watch, "PERIOD", 0.02)
    table = made(pd.DataFrame({"x": np.arange(300.0)}), tmp_path)
    with dask.config.set(scheduler="threads", num_workers=1):
        told = told_of(table, ask)
    assert told == sorted(told)
    assert told[-1] == (6, 6, 300)
    assert {(done, rows) for done, _, rows in told} <= {(done, 50 * done) for done in range(7)}
    assert len(set(told)) >= 3  # on the way, not only at the end


def test_a_pass_over_some_partitions_counts_those(monkeypatch):
    monkeypatch.setattr(watch, "PERIOD", 0.02)
    table = on_dask(pd.DataFrame({"x": np.arange(300.0)}), None)
    with dask.config.set(scheduler="threads", num_workers=1):
        assert told_of(table, lambda one: one.answers(rows_of, parts=[0, 4]))[-1] == (2, 2, 100)


def test_nothing_is_counted_where_nobody_watches():
    table = on_dask(pd.DataFrame({"x": np.arange(300.0)}), None)
    before = dict(watch._done)
    with dask.config.set(scheduler="threads"):
        assert table.answers(rows_of) == [50] * 6
    assert watch._done == before
    assert watch.PassWatch(6).counting(rows_of) is rows_of


def test_a_process_remembers_few_passes():
    for number in range(100):
        watch.counted(f"pass {number}", lambda part: part, [1, 2])
    assert len(watch._done) <= watch.MOST_PASSES
    assert watch.done_here("pass 99") == (1, 2)


@pytest.mark.more
def test_workers_of_a_cluster_are_asked(monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(watch, "PERIOD", 0.1)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None) as local,
        Client(local),
    ):
        told = told_of(on_dask(pd.DataFrame({"x": np.arange(300.0)}), None), ASKED["merged"])
    assert told[-1] == (6, 6, 300)
    assert told == sorted(told)
