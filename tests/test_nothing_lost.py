"""Nothing of the user's is lost: what a command may replace, what it refuses, and what a killed one leaves."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import csv

from orthocal import save
from orthocal.files.scratch import PREFIX, held
from orthocal.maps import AffineMap
from tests.command_line import COMMON, command_line, run

QUICK = [*COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0", "--folds", "2"]
CALIBRATE = [*QUICK, "--method", "identity", "--holdout", "0"]


def calibrate(data, out, *more):
    return run("calibrate", data, *CALIBRATE, "--out", out, *more)


def contents(folder):
    """Return every file below a folder by name, those that are hidden too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refused(capsys, *words):
    """One sentence, with these words."""
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    for word in words:
        assert str(word) in said
    return True


@pytest.fixture
def out(data_csv, tmp_path, capsys):
    """A folder with results of `calibrate`."""
    assert calibrate(data_csv, tmp_path / "out") == 0
    capsys.readouterr()
    return tmp_path / "out"


def test_files_that_only_look_like_results_stay(data_csv, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    mine = {name: f"my {name}".encode() for name in ("calibrated.sql", "calibrated.xlsx", "calibrated.parquet")}
    for name, content in mine.items():
        (out / name).write_bytes(content)
    for _ in range(2):
        assert calibrate(data_csv, out) == 0
        assert mine.items() <= contents(out).items()
    assert (out / "calibrated.csv").exists()


@pytest.mark.parametrize("name", ["report.html", "map.json", "calibrated.csv", "before.png"])
def test_a_file_in_the_way_is_refused(name, data_csv, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    before = contents(tmp_path)
    assert calibrate(data_csv, tmp_path / "out") == 2
    assert refused(capsys, tmp_path / "out" / name)
    assert contents(tmp_path) == before


def test_a_folder_in_the_way_is_refused_and_the_results_stay(out, data_csv, capsys):
    (out / "map.json").unlink()
    (out / "map.json").mkdir()
    (out / "map.json" / "notes.txt").write_text("mine")
    before = contents(out)
    assert calibrate(data_csv, out) == 2
    assert refused(capsys, out / "map.json", "folder")
    assert contents(out) == before


def test_the_data_are_not_overwritten(table, tmp_path, capsys):
    data = tmp_path / "calibrated.csv"
    csv.write_csv(table, data)
    before = contents(tmp_path)
    assert calibrate(data, tmp_path) == 2
    assert refused(capsys, "the data")
    assert contents(tmp_path) == before


def test_our_own_table_as_data_is_not_overwritten(out, capsys):
    before = contents(out)
    assert calibrate(out / "calibrated.csv", out) == 2
    assert refused(capsys, "the data")
    assert contents(out) == before


def test_results_of_two_commands_never_mix(out, data_csv, tmp_path, capsys):
    before = contents(out)
    assert run("assess", data_csv, *QUICK, "--out", out) == 2
    assert refused(capsys, "holds the results of `calibrate`", "Choose another --out")
    assert run("demo", "--out", out) == 2
    assert contents(out) == before
    assert run("assess", data_csv, *QUICK, "--out", tmp_path / "assessed") == 0
    capsys.readouterr()
    before = contents(tmp_path / "assessed")
    assert calibrate(data_csv, tmp_path / "assessed") == 2
    assert refused(capsys, "holds the results of `assess`")
    assert contents(tmp_path / "assessed") == before


def test_a_result_that_was_edited_is_the_users(out, data_csv, capsys):
    with (out / "report.html").open("a") as file:
        file.write("<!-- my note -->")
    before = contents(out)
    assert calibrate(data_csv, out, "--clip", "0.02") == 2
    assert refused(capsys, out / "report.html", "changed")
    assert contents(out) == before


def test_apply_and_export_replace_nothing_unless_asked(data_csv, tmp_path, capsys):
    save(AffineMap(1.0, 2.0), tmp_path / "map.json")
    target = tmp_path / "out.csv"
    target.write_text("mine")
    apply = ["apply", tmp_path / "map.json", data_csv, "--prediction", "tau", "--out", target]
    export = ["export", tmp_path / "map.json", "--format", "json", "--out", target]
    for words in (apply, export):
        assert run(*words) == 2
        assert refused(capsys, target, "--overwrite")
        assert target.read_text() == "mine"
        assert run(*words, "--overwrite") == 0
        assert target.read_text() != "mine"
        target.write_text("mine")
        capsys.readouterr()


def until(found):
    deadline = time.monotonic() + 60
    while not found() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found()


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_killed_run_leaves_nothing_for_long(sent, code, tmp_path):
    save(AffineMap(1.0, 2.0), tmp_path / "map.json")
    apply = ["apply", tmp_path / "map.json", "-", "--prediction", "tau", "--out"]
    process = command_line(*apply, tmp_path / "out.csv")
    process.stdin.write(b"tau\n" + b"1.25\n" * 200_000)
    process.stdin.flush()
    until(lambda: [file for file in tmp_path.rglob("out.csv") if file.stat().st_size])
    process.send_signal(sent)
    said = process.communicate()[1]
    assert process.returncode == code
    if sent != signal.SIGKILL:
        assert said == b"Stopped.\n"
        assert set(contents(tmp_path)) == {"map.json"}
    process = command_line(*apply, tmp_path / "other.csv")
    process.communicate(b"tau\n1\n")
    assert process.returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["map.json", "other.csv"]


def test_one_run_at_a_time_and_a_dry_run_refuses_what_a_run_does(out, data_csv, capsys):
    before = contents(out)
    with held(out / f"{PREFIX}results", out, lambda _: None):
        for more in ([], ["--dry-run"]):
            assert calibrate(data_csv, out, *more) == 2
            assert refused(capsys, f"Another run is writing {out}. Wait for it")
    assert contents(out) == before
    (out / "map.json").write_text("edited")
    assert calibrate(data_csv, out, "--dry-run") == 2
    assert refused(capsys, "map.json was changed after it was written")


def test_kills_of_the_command_line_at_random_moments_lose_nothing(tmp_path):
    """The quick commands; 200 kills of all of them are in the slow tests."""
    words = [sys.executable, "-m", "tests.kill_commands", str(tmp_path), "12", "1", "apply", "export"]
    done = subprocess.run(words, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kills"] == 12
