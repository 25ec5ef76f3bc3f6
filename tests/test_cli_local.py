"""The command line on files that are read in chunks: the answers of the one in memory."""

import json

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from orthocal import load
from orthocal.datasets import simulate_cate
from orthocal.engines import opening
from tests.command_line import run

COMMON = ["--outcome", "y", "--treatment", "a", "--prediction", "tau", "--seed", "1", "--method", "linear"]
QUICK = ["--propensity", "0.5", "--covariates", "x0,x1", "--folds", "2", "--sample", "300", "--key", "id"]


@pytest.fixture(scope="module")
def rows():
    data = simulate_cate(2000, confounding=0, random_state=0)
    columns = {f"x{j}": data.X[:, j] for j in range(2)}
    more = {
        "id": [f"{j:05}" for j in range(2000)],
        "n": pa.array([None if j % 7 == 0 else 2**60 + j for j in range(2000)]),
    }
    return pa.table({**columns, "a": data.treatment, "y": data.y, "tau": 1 + 2 * data.effect, **more})


def written(rows, folder, kind):
    """The rows in four Parquet files, in two CSV files or in a DuckDB file; and how the command line names them."""
    if kind == "duckdb":
        with duckdb.connect(folder / "rows.duckdb") as connection:
            connection.register("given", rows)
            connection.execute("CREATE TABLE rows AS FROM given")
        return folder / "rows.duckdb"
    for part in range(2):
        own = rows.slice(1000 * part, 1000)
        if kind == "csv":
            csv.write_csv(own, folder / f"{part}.csv")
        else:
            parquet.write_table(own, folder / f"{part}.parquet", row_group_size=300)
    return f"{folder}/*.{kind}"


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb"])
def test_files_in_chunks_are_calibrated_and_written(rows, tmp_path, capsys, kind):
    data = written(rows, tmp_path, kind)
    assert run("calibrate", data, *COMMON, *QUICK, "--json", "--out", tmp_path / "out") == 0
    printed, said = capsys.readouterr()
    assert "read in chunks (--engine local)" in said
    assert "local files, chunks at once" in said
    assert json.loads(printed)["comparison"]["verdict"] == "improved"
    files = sorted((tmp_path / "out" / "calibrated").iterdir())
    assert len(files) == (1 if kind == "duckdb" else 2)
    read = csv.read_csv if kind == "csv" else parquet.read_table
    wide = pa.concat_tables([read(file) for file in files])
    assert wide.num_rows == 2000
    assert {"tau_calibrated", "n", "id"} <= set(wide.column_names)
    if kind == "parquet":  # whole numbers with gaps keep their digits
        assert wide["n"].to_pylist() == rows["n"].to_pylist()
    map_ = load(tmp_path / "out" / "map.json")
    np.testing.assert_allclose(np.asarray(wide["tau_calibrated"]), map_.predict(np.asarray(wide["tau"])))


def test_a_large_file_is_read_in_chunks_and_a_small_one_is_not(rows, tmp_path, capsys, monkeypatch):
    parquet.write_table(rows, tmp_path / "rows.parquet")
    arguments = ["assess", tmp_path / "rows.parquet", *COMMON[:-2], "--covariates", "x0,x1", "--propensity", "0.5"]
    assert run(*arguments, "--dry-run", "--out", tmp_path / "out") == 0
    assert "in chunks" not in capsys.readouterr().err
    monkeypatch.setattr(opening, "memory", lambda: 1000)
    assert run(*arguments, "--dry-run", "--out", tmp_path / "out") == 0
    assert "more than a quarter of the memory: read in chunks (--engine local)" in capsys.readouterr().err
    assert run(*arguments, "--dry-run", "--engine", "memory", "--out", tmp_path / "out") == 0
    assert "in chunks" not in capsys.readouterr().err


def test_rows_without_a_value_are_dropped_and_counted(rows, tmp_path, capsys):
    gaps = pa.array([None if j % 5 == 0 else value for j, value in enumerate(rows["y"].to_pylist())])
    parquet.write_table(rows.set_column(rows.column_names.index("y"), "y", gaps), tmp_path / "rows.parquet")
    arguments = [
        "calibrate",
        tmp_path / "rows.parquet",
        "--engine",
        "local",
        *COMMON,
        *QUICK,
        "--out",
        tmp_path / "out",
    ]
    assert run(*arguments) == 2
    assert "`y` must be finite in every row; row 0 is nan" in capsys.readouterr().err
    assert run(*arguments, "--drop-missing", "--dry-run") == 0
    assert "Dropped 400 rows: 400 without y." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "`--scheduler` must go with `--engine dask`; the engine is 'local'."),
        (["--by", "nothing"], "The subgroup column must be in the data; 'nothing' is not."),
    ],
)
def test_bad_input_exits_2_with_one_line(rows, tmp_path, capsys, arguments, message):
    data = written(rows, tmp_path, "parquet")
    assert run("calibrate", data, "--engine", "local", *COMMON, *QUICK, *arguments, "--out", tmp_path / "out") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
