"""The command line on Dask: the answers of the one in memory, wherever the rows are."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dask import dataframe as dd
from distributed import Client, LocalCluster
from pyarrow import csv, parquet

from orthocal import load
from orthocal.cli import cluster as connection
from orthocal.cli import commands
from orthocal.datasets import simulate_cate
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.partitioned.division import divided, division
from orthocal.files.atomic import Results
from orthocal.maps import IdentityMap
from tests.command_line import run

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning"),
]
COMMON = ["--outcome", "y", "--treatment", "a", "--prediction", "tau", "--seed", "1", "--engine", "dask"]
QUICK = ["--propensity", "0.5", "--covariates", "x0,x1", "--folds", "2", "--sample", "300", "--key", "id"]


@pytest.fixture(scope="module")
def rows():
    """2,000 rows of a trial: the prediction exaggerates, `n` has gaps and more digits than a float, `id` tells rows apart."""
    data = simulate_cate(2000, confounding=0, random_state=0)
    columns = {f"x{j}": data.X[:, j] for j in range(3)}
    more = {
        "id": [f"{j:05}" for j in range(2000)],
        "n": pa.array([None if j % 7 == 0 else 2**60 + j for j in range(2000)]),
    }
    sex = pa.array(np.where(data.X[:, 1] > 0, "f", "m").tolist())
    truth = {"tau": 1 + 2 * data.effect, "other": data.effect}
    return pa.table({**columns, "a": data.treatment, "y": data.y, **truth, **more, "sex": sex})


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """The rows in four Parquet files."""
    folder = tmp_path_factory.mktemp("rows") / "data"
    folder.mkdir()
    for part in range(4):
        parquet.write_table(rows.slice(500 * part, 500), folder / f"{part}.parquet")
    (folder / "_SUCCESS").write_text("")  # what other tools leave there is no table
    return folder


@pytest.fixture(scope="module")
def scheduler():
    """A cluster that runs before the command does, and goes on when it is done."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as local:
        yield local.scheduler_address


def test_calibrate_reads_a_pattern_and_writes_everything(rows, folder, scheduler, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["calibrate", folder / "*.parquet", *COMMON, *QUICK, "--scheduler", scheduler, "--by", "sex"]
    assert run(*arguments, "--method", "isotonic", "--cost", "0.4", "--out", out) == 0
    said = capsys.readouterr()
    assert f"data        {folder / '*.parquet'}, 2,000 rows in 4 partitions\n" in said.err
    assert "method      isotonic\n" in said.err
    assert "sample      nuisances are learnt on about 300 rows\n" in said.err
    assert "Calibration: improved. On rows the map never saw the error falls from" in said.out
    assert "At cost 0.4 it changes the decision" in said.out
    assert "draws of the folds" not in said.out
    files = {"map.json", "report.html", "assessment.json", "before.png", "after.png", "before-after.png", "calibrated"}
    assert {file.name for file in out.iterdir()} == {*files, ".orthocal.json"}
    assert f"Wrote to {out}: {', '.join(sorted(files))}\n" in said.out
    record = json.loads((out / "assessment.json").read_text())
    assert record["after"]["error"] < record["before"]["error"]
    assert [group["value"] for group in record["after"]["subgroups"]] == ["f", "m"]
    assert f"on {record['before']['rows']:,} rows the map never sees" in said.err
    assert [file.name for file in sorted((out / "calibrated").iterdir())] == [
        f"part-00000{j}.parquet" for j in range(4)
    ]
    calibrated = parquet.read_table(out / "calibrated")
    assert calibrated.column_names == [*rows.column_names, "tau_calibrated"]
    assert calibrated["id"].to_pylist() == rows["id"].to_pylist()
    assert calibrated["n"].to_pylist() == rows["n"].to_pylist()
    assert calibrated.schema.field("n").type == pa.int64()
    by_map = load(out / "map.json").predict(rows["tau"].to_numpy())
    np.testing.assert_allclose(calibrated["tau_calibrated"].to_numpy(), by_map)


def test_partitions_do_not_change_the_answer(rows, folder, scheduler, tmp_path):
    """Which rows are held out, folds and sample come from keys: one file gives what four give."""
    parquet.write_table(rows, tmp_path / "one.parquet")
    found = []
    for data in (folder, tmp_path / "one.parquet"):
        out = tmp_path / f"of-{data.name}"
        arguments = ["calibrate", data, *COMMON, *QUICK, "--method", "linear", "--scheduler", scheduler]
        assert run(*arguments, "--out", out) == 0
        found.append(
            json.loads((out / "map.json").read_text()) | json.loads((out / "assessment.json").read_text())["after"]
        )
    for name in ("slope", "intercept", "rows", "error", "standard_error"):
        assert found[0][name] == pytest.approx(found[1][name], rel=1e-9), name


def test_a_grid_tells_its_bound_and_an_exact_map_needs_none(folder, scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr("orthocal.engines.partitioned.source.CELLS", 8)
    steps = {}
    for how in ("--exact", "--no-exact"):
        arguments = ["calibrate", folder, *COMMON, *QUICK, "--holdout", "0", "--scheduler", scheduler, how]
        assert run(*arguments, "--method", "isotonic", "--out", tmp_path / how) == 0
        steps[how] = len(load(tmp_path / how / "map.json").edges)
        assert ("bound of the grid" in (tmp_path / how / "report.html").read_text()) == (how == "--no-exact")
    assert steps["--exact"] > 8 > steps["--no-exact"]


def test_processes_of_its_own_are_started_and_ended(folder, tmp_path):
    """As users start it: in a process of its own, without a scheduler, from CSV that is one file."""
    table = parquet.read_table(folder).drop_columns(["n", "sex"])
    csv.write_csv(table, tmp_path / "rows.csv")
    words = ["calibrate", tmp_path / "rows.csv", *COMMON, *QUICK, "--jobs", "1", "--json", "--holdout", "0", "--exact"]
    words += ["--method", "isotonic"]
    command = [sys.executable, "-m", "orthocal", *map(str, words), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "  Dask, workers here: 1\n" in done.stderr
    assert re.search(r"^grid +none$", done.stderr, re.MULTILINE)
    assert "Warning" not in done.stderr
    record = json.loads(done.stdout)
    assert record["after"] is None
    assert record["before"]["rows"] == 2000
    assert len(parquet.read_table(tmp_path / "out" / "calibrated")) == 2000


def test_assess_judges_several_columns(folder, scheduler, tmp_path, capsys):
    arguments = ["assess", folder, *COMMON, "--prediction", "other", *QUICK, "--scheduler", scheduler]
    assert run(*arguments, "--json", "--out", tmp_path / "out") == 0
    said = capsys.readouterr()
    record = json.loads(said.out)
    assert record == json.loads((tmp_path / "out" / "assessment.json").read_text())
    assert record["other"]["error"] < record["tau"]["error"]
    assert record["tau"]["rows"] == 2000
    assert "4 learner fits" in said.err  # two outcome regressions of two folds, for both predictions
    assert (tmp_path / "out" / "reliability-tau.png").stat().st_size > 10_000


def test_a_dry_run_says_what_would_be_done_and_does_nothing(folder, scheduler, tmp_path, capsys):
    arguments = ["calibrate", folder, *COMMON, "--groups", "id", "--dry-run", "--json", "--scheduler", scheduler]
    arguments += ["--covariates", "all", "--method", "linear"]
    assert run(*arguments, "--out", tmp_path / "out") == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["engine"] == f"Dask, scheduler at {scheduler}"
    assert plan["key"] == "id"
    assert plan["covariates"] == "6: x0, x1, x2, other, n, sex"
    assert run(*arguments, "--key", "x0", "--out", tmp_path / "out") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["covariates"] == "5: x1, x2, other, n, sex"
    assert plan["folds"] == "5, drawn once: 15 learner fits"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prediction", "tua"], "The prediction column must be in the data; 'tua' is not. Did you mean 'tau'?"),
        (["--key", "idd"], "The key column must be in the data; 'idd' is not."),
        (["--covariates", "x0, xx1"], "The covariate column must be in the data; 'xx1' is not. Did you mean"),
        (["--covariates", "x0,y"], "`--covariates` must not name the outcome"),
        (["--by", "sx"], "The subgroup column must be in the data; 'sx' is not. Did you mean 'sex'?"),
        (["--propensity", "pp"], "The propensity column must be in the data; 'pp' is not."),
        (["--weight", "tua"], "The weight column must be in the data; 'tua' is not."),
        (
            ["--engine", "dusk"],
            "`--engine` must be one of 'memory', 'local', 'dask', 'auto'; it is 'dusk'. Did you mean 'dask'?",
        ),
        (["--holdout", "1.5"], "`--holdout` must lie in [0, 1)"),
        (["--folds", "1"], "`--folds` must be a whole number of at least 2"),
        (["--sample", "0"], "`--sample` must be a whole number of at least 1"),
        (["--seed", "-1"], "`--seed` must not be negative"),
        (["--jobs", "0"], "`--jobs` must be a whole number other than 0"),
        (["--scheduler", "tcp://127.0.0.1:1"], "'tcp://127.0.0.1:1' does not answer. Start one with: dask scheduler"),
        (["--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"], "`--jobs` must be left out with `--scheduler`"),
        (
            ["--engine", "memory", "--sample", "5"],
            "`--sample` must go with `--engine dask` or `local`; the engine is 'memory'.",
        ),
        (
            ["--engine", "memory", "--no-exact"],
            "`--exact` must go with `--engine dask` or `local`; the engine is 'memory'.",
        ),
    ],
)
def test_bad_input_exits_2_with_one_line_and_starts_nothing(folder, tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(connection, "PATIENCE", 0.3)
    monkeypatch.setattr(connection, "_processes", None)
    words = (
        COMMON if "--prediction" not in arguments else [word for word in COMMON if word not in {"--prediction", "tau"}]
    )
    words = [*words, *([] if "--covariates" in arguments else ["--covariates", "x0"])]
    words += [] if "--method" in arguments else ["--method", "linear"]
    if "--engine" in arguments:
        words = [word for word in words if word not in {"--engine", "dask"}]
    if "--seed" in arguments:
        words = [word for word in words if word not in {"--seed", "1"}]
    assert run("calibrate", folder, *words, *arguments, "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.strip().count("\n") == 0
    assert list(tmp_path.iterdir()) == []


def test_bad_files_exit_2(folder, tmp_path, capsys, scheduler):
    for name in ("broken", "mixed", "empty"):
        (tmp_path / name).mkdir()
    shutil.copy(folder / "0.parquet", tmp_path / "mixed")
    (tmp_path / "mixed" / "1.csv").write_text("y,a,tau\n1,0,2\n")
    (tmp_path / "broken" / "0.parquet").write_text("no parquet at all")
    for name, message in [
        ("broken", "must be tables that can be worked on; Error creating dataset. Could not read schema from"),
        ("mixed", "must be of one kind; there are .csv and .parquet. Use a pattern."),
        ("empty", "no file is there"),
        ("none/*.parquet", "no file is there"),
        ("none://rows", "cannot be read: Protocol not known"),
    ]:
        data = name if "://" in name else tmp_path / name
        words = ["--covariates", "all", "--method", "linear", "--scheduler", scheduler]
        assert run("calibrate", data, *COMMON, *words, "--out", tmp_path / "out") == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.strip().count("\n") == 0
    assert not (tmp_path / "out").exists()


def test_a_bad_partition_is_named_and_nothing_stays_behind(rows, folder, scheduler, tmp_path, capsys):
    data = tmp_path / "data"
    shutil.copytree(folder, data)
    table = rows.slice(1000, 500)
    broken = np.where(np.arange(500) == 3, np.nan, table["y"].to_numpy())
    parquet.write_table(table.set_column(table.column_names.index("y"), "y", pa.array(broken)), data / "2.parquet")
    arguments = ["calibrate", data, *COMMON, *QUICK, "--method", "linear", "--scheduler", scheduler]
    assert run(*arguments, "--out", tmp_path / "deep" / "out") == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].startswith("Error: Partition ")
    assert "`y` must be finite in every row; row " in said[-1]
    assert [file.name for file in tmp_path.iterdir()] == ["data"]


def test_rows_that_are_all_alike_need_a_key(scheduler, tmp_path, capsys):
    rng = np.random.default_rng(0)
    few = {name: rng.integers(2, size=2000) for name in ("y", "a", "tau", "x0")}
    parquet.write_table(pa.table(few), tmp_path / "d.parquet")
    arguments = ["calibrate", tmp_path / "d.parquet", *COMMON, "--scheduler", scheduler, "--out", tmp_path / "out"]
    arguments += ["--covariates", "x0", "--method", "linear"]
    assert run(*arguments) == 2
    assert "are alike in every column. Name a column that differs with `--key`" in capsys.readouterr().err
    parquet.write_table(pa.table({**few, "id": np.arange(2000)}), tmp_path / "d.parquet")
    assert run(*arguments, "--key", "id", "--dry-run") == 0
    assert run(*arguments, "--key", "id", "--dry-run", "--holdout", "0.9999") == 2
    assert "leaves too few of the 2000 rows on one side" in capsys.readouterr().err


def test_results_of_two_runs_never_mix(folder, scheduler, tmp_path, monkeypatch, capsys):
    """Parts of an earlier run go, a part that it did not write is refused; a run that fails changes nothing."""
    out, parts = tmp_path / "out", tmp_path / "out" / "calibrated"
    with Results(out, "calibrate", ("calibrated/",)).written() as new:
        (new / "calibrated").mkdir()
        (new / "calibrated" / "part-000009.parquet").write_text("old")
    (out / "thesis.docx").write_text("mine")
    words = ["calibrate", folder, *COMMON, *QUICK, "--method", "identity", "--holdout", "0", "--scheduler", scheduler]

    def full(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as context:
        context.setattr(commands, "write_verdict", full)
        assert run(*words, "--out", out) == 1
    there = {".orthocal.json", "calibrated", "part-000009.parquet", "thesis.docx"}
    assert {file.name for file in out.rglob("*")} == there
    (parts / "part-000010.parquet").write_text("mine")
    assert run(*words, "--out", out) == 2
    assert "part-000010.parquet was not written by this command" in capsys.readouterr().err
    (parts / "part-000010.parquet").unlink()
    assert run(*words, "--out", out) == 0
    assert {file.name for file in parts.iterdir()} == {f"part-00000{j}.parquet" for j in range(4)}
    assert (out / "thesis.docx").read_text() == "mine"


def test_results_do_not_become_data(folder, scheduler, tmp_path, capsys):
    data = tmp_path / "data"
    shutil.copytree(folder, data / "calibrated")
    words = ["calibrate", *COMMON, *QUICK, "--method", "linear", "--scheduler", scheduler, "--out"]
    for source, out, message in [
        (data, data / "out", "must not lie in the folder of the data"),
        (data / "calibrated" / "*.parquet", data, "is the data file itself"),
    ]:
        assert run(*words, out, source) == 2
        assert message in capsys.readouterr().err
    assert len(list(data.rglob("*"))) == 1 + len(list(folder.iterdir()))


def test_rows_that_do_not_arrive_are_missed(folder, tmp_path):
    with pytest.raises(
        Exception, match=r"`--out` must name a folder that every worker sees; of 2,001 rows 2,000 arrived"
    ):
        connection.write_parts(IdentityMap(), str(folder), tmp_path, "tau", 2001)


def test_without_dask_the_way_out_is_named(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run("calibrate", folder, *COMMON, "--out", tmp_path / "out") == 2
    assert "Use: pip install 'orthocal[dask]'" in capsys.readouterr().err


def test_workers_lost_for_good_are_a_failure(scheduler, monkeypatch):
    from distributed.scheduler import KilledWorker

    def work():
        with connection.connected(scheduler, -1):
            assert Client.current().scheduler.address == scheduler
            raise KilledWorker("task", None, 3)

    with pytest.raises(OSError, match="A task lost its worker 4 times, most likely for want of memory"):
        work()


def test_rows_held_out_have_nothing_to_do_with_folds_samples_and_partitions():
    from orthocal.engines.partitioned.keys import folds_of, keys_of, sampled

    table = pd.DataFrame({"id": np.arange(20000)})
    kept, held = divided(DaskTable(dd.from_pandas(table, npartitions=3)), ["id"], 0.3, seed=0)
    held, kept = held.frame.compute(), kept.frame.compute()
    assert len(held) + len(kept) == 20000
    counts = division(DaskTable(dd.from_pandas(table, npartitions=7)), ["id"], 0.3, seed=0)
    assert counts.held == len(held) == pytest.approx(6000, abs=300)
    assert counts.alike == pytest.approx(1, abs=0.4)
    assert sampled(keys_of(held), 0.3, 0).mean() == pytest.approx(0.3, abs=0.03)
    assert np.bincount(folds_of(keys_of(held), 2, 0)) / len(held) == pytest.approx([0.5, 0.5], abs=0.03)
    both = DaskTable(dd.from_pandas(pd.concat([table] * 30, ignore_index=True), npartitions=2))
    assert division(both, ["id"], 0.3, seed=0).alike == pytest.approx(30, rel=0.3)
