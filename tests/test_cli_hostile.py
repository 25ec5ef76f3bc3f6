"""Hostile files and words on the command line: one line, exit code 2, nothing written; or the right result."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from orthocal import cli, maps, save
from tests.command_line import run
from tests.fuzz.judgement import sentence_problem

QUICK = [
    "--outcome",
    "y",
    "--treatment",
    "a",
    "--propensity",
    "0.5",
    "--learner",
    "linear",
    "--folds",
    "2",
    "--jobs",
    "1",
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    table = {name: np.round(rng.standard_normal(80), 3) for name in ("x", "y", "tau")}
    return pa.table({**table, "a": np.tile([0, 1], 40), "town": ["Zürich", "Genève"] * 40, "code": ["007", "012"] * 40})


@pytest.fixture
def here(tmp_path, monkeypatch, rows):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(rows, "data.csv", csv.WriteOptions(quoting_style="none"))
    save(maps.AffineMap(1.0, 2.0), "map.json")
    return tmp_path


def recoded(here, name, encoding):
    text = (here / "data.csv").read_text(encoding="utf-8")
    (here / name).write_bytes(text.encode(encoding))
    return name


def refused(capsys, *words, code=2):
    before = sorted(Path().iterdir())
    assert run(*words) == code
    said = capsys.readouterr().err.strip()
    line = said.splitlines()[-1]
    assert sentence_problem(line) is None, line
    assert sorted(Path().iterdir()) == before
    return line


def assess(data, *words):
    return ["assess", data, *QUICK, "--prediction", "tau", "--covariates", "x,town", "--out", "out", *words]


def test_utf_16_is_found(here):
    assert run(*assess(recoded(here, "wide.csv", "utf-16"))) == 0
    assert run("apply", "map.json", "wide.csv", "--prediction", "tau", "--out", "new.csv") == 0
    assert (here / "new.csv").read_text(encoding="utf-8").count("Zürich") == 40


def test_latin_1_is_named_or_asked_for(here, capsys):
    narrow = recoded(here, "narrow.csv", "latin-1")
    assert "Name its encoding, as in --encoding latin-1" in refused(capsys, *assess(narrow))
    assert run(*assess(narrow, "--encoding", "latin-1")) == 0
    assert run("apply", "map.json", narrow, "--prediction", "tau", "--out", "n.parquet", "--encoding", "latin-1") == 0
    assert parquet.read_table(here / "n.parquet")["town"][0].as_py() == "Zürich"
    assert "`--encoding` must be the name of an encoding" in refused(capsys, *assess(narrow, "--encoding", "klingon"))


def test_a_header_in_another_encoding_is_named(here, capsys):
    (here / "names.csv").write_bytes("y,a,tau,âge\n1,0,1,2\n".encode("latin-1"))
    assert "must be text in UTF-8" in refused(capsys, *assess("names.csv"))


def test_007_stays_007_from_csv_to_parquet(here):
    assert run("apply", "map.json", "data.csv", "--prediction", "tau", "--out", "new.parquet") == 0
    table = parquet.read_table(here / "new.parquet")
    assert table["code"].to_pylist()[:2] == ["007", "012"]
    assert pa.types.is_floating(table["x"].type)


def test_pictures_do_not_overwrite_each_other(here, rows):
    names = ["tau_a", "tau a", "tau-a", "TAU_A", "t" * 300]
    wide = rows
    for name in names:
        wide = wide.append_column(name, rows["tau"])
    csv.write_csv(wide, "data.csv")
    words = [word for name in names for word in ("--prediction", name)]
    assert run("assess", "data.csv", *QUICK, *words, "--covariates", "x", "--out", "out") == 0
    pictures = [path.name.lower() for path in (here / "out").glob("reliability-*.png")]
    assert len(set(pictures)) == len(names)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_a_pipe_is_no_file_of_rows(here, capsys):
    os.mkfifo("pipe.csv")
    assert "must be a file; it is a pipe or device" in refused(capsys, *assess("pipe.csv"))


def test_what_is_no_file_of_rows_is_said(here, capsys):
    (here / "folder.csv").mkdir()
    assert "must be a table, a folder of them or a pattern; no file is there" in refused(capsys, *assess("folder.csv"))
    assert "must be a file; it is a folder" in refused(
        capsys, "apply", "map.json", "folder.csv", "--prediction", "tau", "--out", "n.csv"
    )
    assert "must exist; it does not" in refused(capsys, *assess("x" * 5000 + ".csv"))


@pytest.mark.parametrize("damage", ["cut", "middle", "empty", "text"])
def test_corrupt_parquet_exits_2(here, rows, capsys, damage):
    parquet.write_table(rows, "data.parquet")
    content = bytearray((here / "data.parquet").read_bytes())
    if damage == "middle":
        content[4:600] = b"\xff" * 596
    content = {"cut": content[: len(content) // 2], "empty": b"", "text": b"hello"}.get(damage, content)
    (here / "data.parquet").write_bytes(content)
    refused(capsys, "apply", "map.json", "data.parquet", "--prediction", "tau", "--out", "new.csv")
    refused(capsys, *assess("data.parquet"))


def test_an_empty_column_is_named(here, rows, capsys):
    empty = rows.append_column("nothing", pa.array([None] * 80, pa.string()))
    csv.write_csv(empty, "data.csv")
    words = ["assess", "data.csv", *QUICK, "--out", "out"]
    for role in ("--weight", "--groups", "--key"):
        assert "nothing" in refused(capsys, *words, "--prediction", "tau", "--covariates", "x", role, "nothing")
    assert "nothing" in refused(capsys, *words, "--prediction", "nothing", "--covariates", "x")
    assert run(*words, "--prediction", "tau", "--covariates", "x,nothing") == 0


@pytest.mark.parametrize("cost", ["nan", "inf", "-inf", "1e400", "a"])
def test_a_cost_that_is_none_is_said_before_any_learning(here, capsys, cost):
    line = refused(capsys, *assess("data.csv", "--cost", cost))
    assert "--cost" in line


def test_over_long_fields_and_names_are_refused(here, capsys):
    (here / "long.csv").write_text("y,a,tau,x\n1,0,1," + "z" * 200_000 + "\n")
    refused(capsys, "apply", "map.json", "long.csv", "--prediction", "tau", "--out", "new.csv")
    refused(capsys, *assess("data.csv", "--weight", "w" * 5000))


def test_an_unexpected_error_is_one_line_and_debug_the_rest(here, capsys, monkeypatch):
    def broken(*_):
        raise KeyError("lost")

    monkeypatch.setattr("orthocal.cli.maps.load", broken)
    words = ["apply", "map.json", "data.csv", "--prediction", "tau", "--out", "new.csv"]
    line = refused(capsys, *words, code=1)
    assert line == ("Failed: KeyError: 'lost'. This is a bug in orthocal: please report it, with what --debug prints.")
    with pytest.raises(SystemExit) as stop:
        cli.main([*words, "--debug"])
    assert stop.value.code == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.more
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(here, closed):
    shell = f'"{sys.executable}" -m orthocal'
    commands = {
        "export map.json --format sql": 0,
        "apply map.json data.csv --prediction tau --out new.csv --overwrite": 0,
    }
    commands["apply map.json - --prediction tau --out out.csv"] = 2
    for words, code in commands.items():
        if code == 2 and "<" not in closed:
            continue
        done = subprocess.run(["sh", "-c", f"{shell} {words} {closed}"], capture_output=True, text=True, check=False)
        assert done.returncode == code, (words, done.stderr)
        assert "Traceback" not in done.stderr


def test_names_that_are_no_utf_8(here, rows, capsys):
    odd = os.fsdecode(b"caf\xe9.csv")
    (here / odd).write_bytes((here / "data.csv").read_bytes())
    assert run(*assess(odd)) == 0
    assert "caf" in (here / "out" / "report.html").read_text(encoding="utf-8")
    assert run("apply", "map.json", odd, "--prediction", "tau", "--out", os.fsdecode(b"n\xe9w.csv")) == 0


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("broken.parquet", b"hello", "File broken.parquet must be a whole table; it cannot be read"),
        ("empty.csv", b"", "File empty.csv must be a whole table; it cannot be read: Empty CSV file."),
        ("header.csv", b"x,y,a,tau,town\n", "The data must have rows; header.csv has none"),
        ("broken.duckdb", b"hello", "File broken.duckdb must be a whole table; it cannot be read"),
    ],
)
def test_what_cannot_be_read_in_chunks_is_said(here, capsys, name, content, sentence):
    (here / name).write_bytes(content)
    line = refused(capsys, *assess(name, "--engine", "local"))
    assert sentence.removesuffix("header.csv has none") in line


def test_an_encoding_is_refused_where_it_would_not_be_used(here, capsys):
    line = refused(capsys, *assess("data.csv", "--engine", "local", "--encoding", "latin-1"))
    assert "`--encoding` must be left out with `--engine local`, which reads UTF-8" in line


def test_a_policy_in_chunks_is_refused_before_its_costs_are_looked_up(here, capsys):
    words = [
        "policy",
        "data.csv",
        *QUICK,
        "--prediction",
        "tau",
        "--covariates",
        "x",
        "--engine",
        "local",
        "--out",
        "out",
    ]
    assert "must have rows in memory" in refused(capsys, *words, "--cost", "x")


def test_an_earlier_verdict_with_a_long_name_or_other_contents_is_refused(here, capsys):
    (here / "earlier.json").write_text('{"error": [1], "tolerance": 1}')
    assert "`--since` must hold verdicts as orthocal wrote them" in refused(
        capsys, *assess("data.csv", "--since", "earlier.json")
    )
    assert "`--since` must be a file that can be read" in refused(capsys, *assess("data.csv", "--since", "x" * 3000))


BAND = {"level": 0.95, "monotone": True, "rows": 9, "lower": {"edges": [], "values": [0.0]}}
BAND["upper"] = {"edges": [], "values": [1.0]}


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"columns": 3}, "`columns` of the map file must be a list of names; it is 3"),
        ({"fitted_range": 3}, "`fitted_range` of the map file must be two numbers; it is 3"),
        ({"fitted_range": [1.0]}, "`fitted_range` of the map file must be two numbers; it is [1.0]"),
        ({"fitted_ranges": [[0.0, 1.0]] * 2}, "`fitted_ranges` of the map file must have 1, one for each prediction"),
        ({"band": {**BAND, "level": 5.0}}, "`level` must lie strictly between 0 and 1"),
        ({"band": {**BAND, "rows": "many"}}, "`rows` must be a whole number"),
        ({"band": {**BAND, "lower": {"edges": ["a"], "values": [1.0]}}}, "`edges` must be an array of numbers"),
        ({"band": [1.0]}, "A band must have level, monotone, rows, lower and upper"),
    ],
)
def test_what_a_map_file_says_of_its_map_is_checked(here, capsys, about, sentence):
    save(maps.AffineMap(1.0, 2.0), "map.json", about={"columns": ["tau"], "band": BAND, **about})
    assert sentence in refused(capsys, "apply", "map.json", "data.csv", "--out", "new.csv", "--interval")
    save(maps.AffineMap(1.0, 2.0), "map.json", about={"columns": ["tau"], "band": BAND})
    assert run("apply", "map.json", "data.csv", "--out", "new.csv", "--interval") == 0
