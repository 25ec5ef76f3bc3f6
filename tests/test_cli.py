import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import csv, parquet
from rich.console import Console

from orthocal import cli, load, orthogonal_loss, save
from orthocal.cli import judging, reading, screen
from orthocal.datasets import simulate_cate
from orthocal.export import EXPORTS
from orthocal.maps import AffineMap, StepMap

COMMON = ["--outcome", "y", "--treatment", "a", "--jobs", "1", "--seed", "1"]


@pytest.fixture(scope="module")
def table():
    data = simulate_cate(600, random_state=0)
    columns = {f"x{j}": data.X[:, j] for j in range(5)}
    return pa.table({**columns, "a": data.treatment, "y": data.y, "tau": 1 + 2 * data.effect, "other": data.effect})


@pytest.fixture
def data_csv(table, tmp_path):
    csv.write_csv(table, tmp_path / "data.csv")
    return tmp_path / "data.csv"


def run(*arguments):
    """Return the exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        cli.main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_calibrate_writes_everything_and_apply_repeats_it(table, tmp_path, capsys, suffix):
    data, out = tmp_path / f"data{suffix}", tmp_path / "out"
    (csv.write_csv if suffix == ".csv" else parquet.write_table)(table, data)
    arguments = ["calibrate", data, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0,x1,x2"]
    assert run(*arguments, "--method", "linear", "--out", out) == 0
    said = capsys.readouterr().out
    assert "BEFORE (180 rows)" in said
    assert "which the map never saw" in said
    assert "Calibration: improved. On rows the map never saw the error falls from" in said
    assert "over 3 draws of the folds" in said
    names = {file.name for file in out.iterdir()}
    assert names == {
        f"calibrated{suffix}",
        "map.json",
        "assessment.json",
        "before.png",
        "after.png",
        "before-after.png",
    }
    record = json.loads((out / "assessment.json").read_text())
    assert record["verified_on_unseen_rows"]
    assert record["after"]["error"] < record["before"]["error"]

    read = csv.read_csv if suffix == ".csv" else parquet.read_table
    calibrated = read(out / f"calibrated{suffix}")
    assert calibrated.column_names == [*table.column_names, "tau_calibrated"]
    by_map = load(out / "map.json").predict(table["tau"].to_numpy())
    np.testing.assert_allclose(calibrated["tau_calibrated"].to_numpy(), by_map)

    target = tmp_path / f"applied{suffix}"
    assert run("apply", out / "map.json", data, "--prediction", "tau", "--out", target) == 0
    np.testing.assert_allclose(read(target)["tau_calibrated"].to_numpy(), by_map)


def test_without_holdout_the_verdict_says_that_nothing_was_verified(data_csv, tmp_path, capsys):
    arguments = ["calibrate", data_csv, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--holdout", "0"]
    assert run(*arguments, "--out", tmp_path / "out") == 0
    assert "not verified on unseen rows" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "assessment.json").read_text())
    assert record["after"] is None
    assert not (tmp_path / "out" / "after.png").exists()


def test_assess_judges_several_columns(data_csv, tmp_path, capsys):
    arguments = ["assess", data_csv, *COMMON, "--prediction", "tau", "--prediction", "other"]
    assert run(*arguments, "--out", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert "tau\nThe predictions are miscalibrated" in said
    assert len(re.findall(r"error over 3 seeds   [\d.e-]+, [\d.e-]+, [\d.e-]+\n", said)) == 2
    record = json.loads((tmp_path / "out" / "assessment.json").read_text())
    assert set(record) == {"tau", "other"}
    assert (tmp_path / "out" / "reliability-tau.png").stat().st_size > 10_000


def test_weights_groups_arms_and_a_propensity_column(table, tmp_path):
    n = table.num_rows
    names = pa.array(np.where(table["a"].to_numpy() == 1, "drug", "placebo").tolist())
    more = table.append_column("w", pa.array(np.arange(n) % 3 + 1.0)).append_column("g", pa.array(np.arange(n) // 3))
    more = more.append_column("p", pa.array(np.full(n, 0.5))).append_column("arm", names)
    parquet.write_table(more, tmp_path / "data.parquet")
    arguments = ["assess", tmp_path / "data.parquet", "--outcome", "y", "--treatment", "arm", "--prediction", "tau"]
    arguments += ["--weight", "w", "--groups", "g", "--propensity", "p", "--arm", "drug", "--control", "placebo"]
    assert run(*arguments, "--covariates", "x0,x1", "--jobs", "1", "--out", tmp_path / "out") == 0


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_other_effects_take_their_own_settings(table, tmp_path):
    csv.write_csv(
        table.append_column("z", pa.array(np.where(np.arange(600) % 5 == 0, 0, table["a"].to_numpy()))),
        tmp_path / "data.csv",
    )
    common = ["assess", tmp_path / "data.csv", *COMMON, "--prediction", "tau", "--covariates", "x0,x1"]
    late = ["--effect", "late", "--instrument", "z", "--propensity", "0.5", "--target", "compliers"]
    assert run(*common, *late, "--out", tmp_path / "late") == 0
    assert run(*common, "--effect", "cvar", "--level", "0.8", "--out", tmp_path / "cvar") == 0


def test_demo_runs_from_nothing_to_a_verdict(tmp_path, capsys):
    assert run("demo", "--out", tmp_path / "demo", "--jobs", "1") == 0
    said = capsys.readouterr().out
    assert "9,275 households" in said
    assert "The predictions are miscalibrated" in said
    assert (tmp_path / "demo" / "before-after.png").stat().st_size > 10_000


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == "0.1.0"


def test_every_command_is_explained_with_an_example(capsys):
    assert run() == 0
    names = [command.callback.__name__ for command in cli.app.registered_commands]
    said = capsys.readouterr().out
    for name in names:
        assert name in said
        assert run(name, "--help") == 0
        assert f"orthocal {name} " in capsys.readouterr().out.partition("Examples:")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prediction", "tua"], "The prediction column must be in the data; 'tua' is not. Did you mean 'tau'?"),
        (["--prediction", "zzzzzz"], "'zzzzzz' is not. There are x0, x1"),
        (
            ["--prediction", "tau", "--covariates", "x0, xx1"],
            "covariate column must be in the data; 'xx1' is not. Did you",
        ),
        (
            ["--prediction", "tau", "--by", "x0,othr"],
            "The subgroup column must be in the data; 'othr' is not. Did you mean",
        ),
        (
            ["--prediction", "tau", "--weight", "tua"],
            "The weight column must be in the data; 'tua' is not. Did you mean",
        ),
        (
            ["--prediction", "tau", "--groups", "tua"],
            "The groups column must be in the data; 'tua' is not. Did you mean",
        ),
        (
            ["--prediction", "tau", "--instrument", "tua"],
            "The instrument column must be in the data; 'tua' is not. Did",
        ),
        (
            ["--prediction", "tau", "--propensity", "tua"],
            "The propensity column must be in the data; 'tua' is not. Did",
        ),
        (
            ["--prediction", "tau", "--outcome", "tua"],
            "The outcome column must be in the data; 'tua' is not. Did you mean",
        ),
        (
            ["--prediction", "tau", "--treatment", "tua"],
            "The treatment column must be in the data; 'tua' is not. Did you",
        ),
        (
            ["--prediction", "tau", "--treatment", "tua", "--arm", "1"],
            "The treatment column must be in the data; 'tua'",
        ),
        (["--prediction", "tau", "--propensity", "pp"], "The propensity column must be in the data"),
        (["--prediction", "tau", "--propensity", "1.0"], "strictly inside (0, 1)"),
        (["--prediction", "tau", "--effect", "lates"], "it is 'lates'. Did you mean 'late'?"),
        (["--prediction", "tau", "--effect", "effect-of-all"], "it is 'effect-of-all'.\n"),
        (["--prediction", "tau", "--method", "splines"], "it is 'splines'. Did you mean 'spline'?"),
        (
            ["--prediction", "tau", "--quantile", "0.5"],
            "`--quantile` must belong to the effect; 'cate' has arm, control",
        ),
        (["--prediction", "tau", "--effect", "late"], "must have an `instrument`"),
        (["--prediction", "tau", "--arm", "7"], "`arm`=7 must occur in the treatment column"),
        (["--prediction", "tau", "--holdout", "1.5"], "`holdout` must lie in [0, 1)"),
        (["--prediction", "tau", "--holdout", "0.999"], "leaves too few of the 600 rows"),
        (["--prediction", "tau", "--folds", "1"], "`folds` must be at least 2"),
        (["--prediction", "tau", "--jobs", "0"], "`n_jobs` must not be 0"),
        (["--prediction", "tau", "--seed", "-1"], "`random_state` must not be negative"),
        (["--prediction", "tau", "--propensity", "nan"], "`propensity` as given must be a finite number"),
        (["--prediction", "tau", "--prediction", "other"], "`--prediction` must be given once here"),
        (["--prediction", "[/bold]zz"], "'[/bold]zz' is not"),
        (["--prediction", "tau", "--folds", "x"], "Error: Invalid value for '--folds'"),
        (["--prediction", "tau", "--fold", "5"], "Error: No such option: --fold"),
        ([], "Error: Missing option '--prediction'. Try --help."),
    ],
)
def test_bad_input_exits_2_with_one_line_and_leaves_nothing(data_csv, tmp_path, capsys, arguments, message):
    assert run("calibrate", data_csv, *COMMON, *arguments, "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.strip().count("\n") == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv"]


def test_results_of_two_runs_never_mix(data_csv, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("after.png", "thesis.docx"):
        (out / name).write_text("old")
    arguments = ["calibrate", data_csv, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--holdout", "0"]
    assert run(*arguments, "--method", "linear", "--out", out) == 0
    assert not (out / "after.png").exists()
    assert (out / "thesis.docx").exists()
    assert "thesis" not in capsys.readouterr().out


def test_apply_does_not_overwrite_its_input(data_csv, tmp_path, capsys):
    save(AffineMap(0.0, 1.0), tmp_path / "map.json")
    for out in (data_csv, tmp_path):
        assert run("apply", tmp_path / "map.json", data_csv, "--prediction", "tau", "--out", out) == 2
        assert "`--out` must name a new file" in capsys.readouterr().err


def test_odd_column_names_are_taken(table, tmp_path):
    odd = table.rename_columns([*table.column_names[:-3], "y_$", "m/tau_$x", "other"])
    csv.write_csv(odd, tmp_path / "data.csv")
    arguments = ["assess", tmp_path / "data.csv", "--outcome", "y_$", "--treatment", "a", "--prediction", "m/tau_$x"]
    assert run(*arguments, "--propensity", "0.5", "--jobs", "1", "--out", tmp_path / "deep" / "out") == 0
    assert (tmp_path / "deep" / "out" / "reliability-m_tau__x.png").exists()
    (tmp_path / "twice.csv").write_text("y,y,a,tau\n1,2,0,1\n")
    assert run("assess", tmp_path / "twice.csv", *COMMON, "--prediction", "tau", "--out", tmp_path / "no" / "no") == 2
    assert not (tmp_path / "no").exists()


def test_a_trial_without_covariates_can_be_judged(table, tmp_path):
    csv.write_csv(table.select(["a", "y", "tau"]), tmp_path / "data.csv")
    arguments = ["assess", tmp_path / "data.csv", *COMMON, "--prediction", "tau", "--propensity", "0.5"]
    assert run(*arguments, "--out", tmp_path / "out") == 0


def test_bad_files_exit_2(tmp_path, data_csv, capsys):
    common = [*COMMON, "--prediction", "tau", "--out", tmp_path / "out"]
    (tmp_path / "empty.csv").write_text("y,a,tau\n")
    (tmp_path / "broken.parquet").write_text("not a parquet file")
    (tmp_path / "data.xlsx").write_text("")
    (tmp_path / "file").write_text("")
    for name, message in [
        ("none.csv", "must exist"),
        ("empty.csv", "must have rows"),
        ("broken.parquet", "cannot be read"),
        ("data.xlsx", "must end in .csv or .csv.gz or .parquet"),
    ]:
        assert run("calibrate", tmp_path / name, *common) == 2
        assert message in capsys.readouterr().err
    assert run("calibrate", data_csv, *common[:-1], tmp_path / "file") == 2
    assert "must name a folder" in capsys.readouterr().err
    assert run("apply", tmp_path / "no.json", data_csv, "--prediction", "tau", "--out", tmp_path / "x.csv") == 2
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run_leaves_nothing_half_written(data_csv, tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(judging, "write_verdict", interrupted)
    arguments = ["calibrate", data_csv, *COMMON, "--prediction", "tau", "--propensity", "0.5"]
    assert run(*arguments, "--out", tmp_path / "out") == 130
    assert capsys.readouterr().err.endswith("\nStopped.\n")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv"]


def test_warnings_are_one_line(capsys):
    screen.show_warning(UserWarning("overlap is poor"), UserWarning, "file.py", 1)
    assert capsys.readouterr().err == "Warning: overlap is poor\n"


PLAN = """\
data        {data}, 600 rows
effect      The average effect: CATE(arm=1, control=0)
outcome     y
treatment   a
prediction  tau
clusters    x0
subgroups   a
covariates  6: x1, x2, x3, x4, other, more
learners    HistGradientBoostingRegressor for outcome_control, outcome_treated; known: propensity
folds       4, draws of them 3: 24 learner fits
clip        fitted propensities are kept inside [0.02, 0.98]
seed        1
method      linear
map         fitted on 480 rows
verdict     on 120 rows the map never sees
output      {out}

"""


def test_a_dry_run_says_what_would_be_done_and_does_nothing(table, tmp_path, capsys):
    data, out = tmp_path / "d.csv", tmp_path / "out"
    csv.write_csv(table.append_column("more", table["x0"]), data)
    arguments = [
        "calibrate",
        data,
        *COMMON,
        "--prediction",
        "tau",
        "--propensity",
        "0.5",
        "--groups",
        "x0",
        "--by",
        "a",
    ]
    arguments += ["--folds", "4", "--clip", "0.02", "--method", "linear", "--holdout", "0.2", "--out", out, "--dry-run"]
    assert run(*arguments) == 0
    said = capsys.readouterr()
    assert said.err == PLAN.format(data=data, out=out)
    assert said.out == ""
    assert not out.exists()
    assert run(*arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["seed"] == "1"
    assert run("assess", data, *COMMON, "--prediction", "tau", "--prediction", "other", "--dry-run", "--out", out) == 0
    said = capsys.readouterr().err
    assert "prediction  tau, other\n" in said
    assert "covariates  6: x0, x1, x2, x3, x4, more\n" in said
    assert "45 learner fits" in said
    assert not out.exists()


def test_a_plan_names_a_few_covariates_and_counts_the_rest(table, tmp_path, capsys):
    for j in range(10):
        table = table.append_column(f"z{j}", table["x0"])
    parquet.write_table(table, tmp_path / "data.parquet")
    common = [
        "calibrate",
        tmp_path / "data.parquet",
        *COMMON,
        "--prediction",
        "tau",
        "--dry-run",
        "--out",
        tmp_path / "out",
    ]
    assert run(*common, "--holdout", "0") == 0
    said = capsys.readouterr().err
    assert "covariates  16: x0, x1, x2, x3, x4, other, z0, z1 and 8 more\n" in said
    assert "draws of them 1: 15 learner fits" in said
    assert "verdict     none: no rows are held out" in said


@pytest.mark.parametrize("command", ["calibrate", "assess"])
def test_machines_get_one_json_document(command, data_csv, tmp_path, capsys):
    arguments = [command, data_csv, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0"]
    assert run(*arguments, "--out", tmp_path / "out", "--json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == json.loads((tmp_path / "out" / "assessment.json").read_text())
    assert "The predictions are miscalibrated" in said.err
    assert "Wrote to" in said.err


def test_gzip_in_and_out(table, tmp_path):
    data, out = tmp_path / "data.csv.gz", tmp_path / "out"
    with pa.output_stream(data) as stream:
        csv.write_csv(table, stream)
    common = [*COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0", "--method", "linear"]
    assert run("calibrate", data, *common, "--holdout", "0", "--out", out) == 0
    got = csv.read_csv(out / "calibrated.csv.gz")
    expected = load(out / "map.json").predict(table["tau"].to_numpy())
    np.testing.assert_allclose(got["tau_calibrated"].to_numpy(), expected)


def test_calibrated_tables_keep_the_text_of_other_columns(table, tmp_path):
    names = pa.array([f"{j:05d}" for j in range(table.num_rows)])
    csv.write_csv(table.append_column("id", names), tmp_path / "data.csv", csv.WriteOptions(quoting_style="none"))
    common = [*COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0", "--method", "linear"]
    assert run("calibrate", tmp_path / "data.csv", *common, "--holdout", "0", "--out", tmp_path / "out") == 0
    before = (tmp_path / "data.csv").read_text().splitlines()
    after = (tmp_path / "out" / "calibrated.csv").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in after[1:]] == before[1:]


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
        (["json", "--prediction", "p"], "`--prediction` must belong to the format; 'json' names no column"),
        (["sqll"], "it is 'sqll'. Did you mean 'sql'?"),
        (["sql", "--prediction", ""], "`column` must be the name of a column"),
        (["sql", "--out", tmp_path / "no" / "file"], "must exist; it does not"),
    ]:
        assert run(*common, *arguments) == 2
        said = capsys.readouterr()
        assert message in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""


def command_line(*arguments, **settings):
    """Start the command line as a process of its own."""
    words = [sys.executable, "-m", "orthocal", *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, **pipes, **settings)


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


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_killed_run_leaves_no_half_written_file(sent, code, tmp_path):
    save(AffineMap(1.0, 2.0), tmp_path / "map.json")
    target = tmp_path / "out.csv"
    target.write_text("earlier")
    process = command_line("apply", tmp_path / "map.json", "-", "--prediction", "tau", "--out", target)
    process.stdin.write(b"tau\n" + b"1.25\n" * 200_000)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not [file for file in tmp_path.rglob("out.csv") if file != target] and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(sent)
    said = process.communicate()[1]
    assert process.returncode == code
    assert target.read_text() == "earlier"
    if sent == signal.SIGINT:
        assert said == b"Stopped.\n"
        assert sorted(file.name for file in tmp_path.iterdir()) == ["map.json", "out.csv"]


def test_a_failure_of_the_machine_is_one_line_and_exit_1(data_csv, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("orthocal.streams._require_full", full)
    save(AffineMap(0.0, 1.0), tmp_path / "map.json")
    assert run("apply", tmp_path / "map.json", data_csv, "--prediction", "tau", "--out", tmp_path / "x.csv") == 1
    assert capsys.readouterr().err == "Failed: [Errno 28] No space left on device\n"
    assert not (tmp_path / "x.csv").exists()


def test_progress_counts_learner_fits_of_all_draws(monkeypatch, simulated):
    seen = []
    monkeypatch.setattr("rich.progress.Progress.update", lambda self, task, **now: seen.append(now))
    with screen.learning(3):
        for seed in range(3):
            orthogonal_loss("cate", simulated.X, simulated.y, treatment=simulated.treatment, folds=2, random_state=seed)
    assert {now["total"] for now in seen} == {18}
    assert sum(now["advance"] for now in seen) == 18
    assert seen[0] == {"total": 18, "advance": 0}


def test_progress_is_for_terminals_only(monkeypatch, capsys):
    with screen.counting_rows(10) as tell:
        tell(10)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(screen, "to_person", Console(stderr=True, force_terminal=True))
    with screen.counting_rows(10) as tell:
        tell(10)
    assert "10/10" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "text", "wanted"),
    [
        ([0, 1], "1", 1),
        ([0.0, 0.5], "0.5", 0.5),
        ([True, False], "true", True),
        (["drug", "1"], "1", "1"),
        ([0, 1], "drug", "drug"),
        ([0, 1], None, None),
    ],
)
def test_levels_have_the_type_of_the_column(column, text, wanted):
    assert reading.level_of(text, pa.table({"a": column}), "a") == wanted
