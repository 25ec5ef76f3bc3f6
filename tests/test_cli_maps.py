"""The command line that applies and exports maps, and how it ends: well, badly, or killed."""

import os
import signal
import time

import pyarrow as pa
import pytest
import typer
from pyarrow import parquet

from orthocal import OrthocalError, cli, save
from orthocal.export import EXPORTS
from orthocal.maps import AffineMap, StepMap
from tests.command_line import command_line, run


def test_apply_does_not_overwrite_its_input(data_csv, tmp_path, capsys):
    save(AffineMap(0.0, 1.0), tmp_path / "map.json")
    save(AffineMap(0.0, 1.0), tmp_path / "map.csv")
    for out, what in ((data_csv, "the data itself"), (tmp_path, "a folder"), (tmp_path / "map.csv", "the map itself")):
        words = ["apply", tmp_path / "map.csv", data_csv, "--prediction", "tau", "--out", out]
        for more in ([], ["--overwrite"]):
            assert run(*words, *more) == 2
            assert f"`--out` must name a new file; {out} is {what}" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["sql", "json", "python"])
def test_export_prints_or_writes(form, tmp_path, capsys):
    map_ = StepMap([0.0], [1.0, 2.0])
    save(map_, tmp_path / "map.json")
    assert run("export", tmp_path / "map.json", "--format", form) == 0
    said = capsys.readouterr().out
    assert said.rstrip("\n") == EXPORTS[form](map_).rstrip("\n")
    assert run("export", tmp_path / "map.json", "--format", form, "--out", tmp_path / "file") == 0
    assert (tmp_path / "file").read_text() == said
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("recommended", ["use the calibrated prediction", "do not use it", None])
def test_a_map_that_was_not_recommended_says_so(recommended, data_csv, tmp_path, capsys):
    save(AffineMap(0.1, 1.0), tmp_path / "map.json", about=recommended and {"recommendation": recommended})
    for command in (
        ["apply", tmp_path / "map.json", data_csv, "--prediction", "tau", "--out", tmp_path / "new.csv", "--overwrite"],
        ["export", tmp_path / "map.json", "--format", "python"],
    ):
        assert run(*command) == 0
        said = capsys.readouterr().err
        assert ("was not the calibrated prediction, but: 'do not use it'" in said) == (recommended == "do not use it")


def test_export_of_json_is_the_map_file_itself(tmp_path, capsys):
    save(AffineMap(0.1, 1.0), tmp_path / "map.json")
    assert run("export", tmp_path / "map.json", "--format", "json") == 0
    assert capsys.readouterr().out == (tmp_path / "map.json").read_text()


def test_export_names_the_column_where_there_is_one(tmp_path, capsys):
    save(AffineMap(0.0, 1.0), tmp_path / "map.json")
    common = ["export", tmp_path / "map.json", "--format"]
    assert run(*common, "sql", "--prediction", 'a"b') == 0
    assert '"a""b"' in capsys.readouterr().out
    for arguments, message in [
        (
            ["json", "--prediction", "p"],
            "`--prediction`, `--dialect` and `--quote` must belong to the format; 'json' names no column",
        ),
        (["sqll"], "it is 'sqll'. Did you mean 'sql'?"),
        (["sql", "--prediction", ""], "`column` must be the name of a column"),
        (["sql", "--out", tmp_path / "no" / "file"], "must exist; it does not"),
    ]:
        assert run(*common, *arguments) == 2
        said = capsys.readouterr()
        assert message in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""


def test_apply_as_a_filter(tmp_path):
    save(AffineMap(1.0, 2.0), tmp_path / "map.json")
    process = command_line("apply", tmp_path / "map.json", "-", "--prediction", "tau", "--out", "-")
    out, err = process.communicate(b"id,tau\n007,1\n")
    assert (process.returncode, out) == (0, b"id,tau,tau_calibrated\n007,1,3.0\n")
    assert err == b"Wrote -: 1 rows, column tau_calibrated.\n"


def test_a_reader_that_has_enough_is_left_in_peace(tmp_path):
    """Far more than a pipe holds, so that the writer does notice."""
    save(AffineMap(1.0, 2.0), tmp_path / "map.json")
    (tmp_path / "data.csv").write_text("tau\n" + "1.25\n" * 1_000_000)
    process = command_line("apply", tmp_path / "map.json", tmp_path / "data.csv", "--prediction", "tau", "--out", "-")
    assert process.stdout.readline() == b"tau,tau_calibrated\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
    process.stdin.close()
    process.stderr.close()


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_a_little_that_nobody_reads_is_no_error(kind, tmp_path):
    """So little that it is written at the very end: by the table's own stream or, from Parquet, by standard output's."""
    save(AffineMap(1.0, 2.0), tmp_path / "map.json")
    (tmp_path / "data.csv").write_text("tau\n1\n")
    parquet.write_table(pa.table({"tau": [1.0]}), tmp_path / "data.parquet")
    data = tmp_path / f"data{kind}"
    process = command_line("apply", tmp_path / "map.json", data, "--prediction", "tau", "--out", "-")
    process.stdout.close()
    process.stdin.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert b"Exception" not in said
    assert b"Failed" not in said


@pytest.mark.parametrize("stop", [KeyboardInterrupt, typer.Abort])
def test_stopping_is_one_line_and_exit_130(stop, monkeypatch, capsys):
    def stopped(**_):
        raise stop

    monkeypatch.setattr(cli, "app", stopped)
    assert run("demo") == 130
    assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.parametrize("sent", cli.STOPPING)
def test_whatever_a_library_makes_of_a_signal_the_command_was_stopped(sent, monkeypatch, capsys):
    def converted(**_):
        try:
            signal.raise_signal(sent)
        except KeyboardInterrupt:
            raise OrthocalError("No such number.") from None

    before = signal.getsignal(sent)
    monkeypatch.setattr(cli, "app", converted)
    assert run("demo") == {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}[signal.Signals(sent).name]
    assert capsys.readouterr().err == "Stopped.\n"
    assert signal.getsignal(sent) is before


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals between processes")
@pytest.mark.parametrize(("sent", "code"), [("SIGINT", 130), ("SIGKILL", -9)])
def test_a_killed_run_leaves_no_half_written_file(sent, code, tmp_path):
    save(AffineMap(1.0, 2.0), tmp_path / "map.json")
    target = tmp_path / "out.csv"
    target.write_text("earlier")
    words = ["apply", tmp_path / "map.json", "-", "--prediction", "tau", "--out", target, "--overwrite"]
    process = command_line(*words)
    process.stdin.write(b"tau\n" + b"1.25\n" * 200_000)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not [file for file in tmp_path.rglob("out.csv") if file != target] and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.Signals[sent])
    said = process.communicate()[1]
    assert process.returncode == code
    assert target.read_text() == "earlier"
    if sent == "SIGINT":
        assert said == b"Stopped.\n"
        assert sorted(file.name for file in tmp_path.iterdir()) == ["map.json", "out.csv"]


def test_a_failure_of_the_machine_is_one_line_and_exit_1(data_csv, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("orthocal.files.streams.require_full", full)
    save(AffineMap(0.0, 1.0), tmp_path / "map.json")
    assert run("apply", tmp_path / "map.json", data_csv, "--prediction", "tau", "--out", tmp_path / "x.csv") == 1
    assert capsys.readouterr().err == "Failed: [Errno 28] No space left on device\n"
    assert not (tmp_path / "x.csv").exists()
