import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from orthocal import cli, load
from orthocal.cli import commands, plan, screen
from tests.command_line import COMMON, run


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_calibrate_writes_everything_and_apply_repeats_it(table, tmp_path, capsys, suffix):
    data, out = tmp_path / f"data{suffix}", tmp_path / "out"
    (csv.write_csv if suffix == ".csv" else parquet.write_table)(table, data)
    arguments = ["calibrate", data, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0,x1,x2"]
    assert run(*arguments, "--method", "linear", "--redraws", "2", "--out", out) == 0
    said = capsys.readouterr().out
    assert "BEFORE (180 rows)" in said
    assert "which the map never saw" in said
    assert "Calibration: improved. On rows the map never saw the error falls from" in said
    assert "over 3 draws of the folds" in said
    assert "Do not use it. x0: not distributed as the known propensity says." in said
    names = {file.name for file in out.iterdir()}
    assert names == {
        f"calibrated{suffix}",
        "map.json",
        "report.html",
        "assessment.json",
        "before.png",
        "after.png",
        "before-after.png",
        ".orthocal.json",
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
    arguments = [
        "calibrate",
        data_csv,
        *COMMON,
        "--prediction",
        "tau",
        "--propensity",
        "0.5",
        "--covariates",
        "all",
        "--holdout",
        "0",
    ]
    assert run(*arguments, "--out", tmp_path / "out") == 0
    assert "not verified on unseen rows" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "assessment.json").read_text())
    assert record["after"] is None
    assert not (tmp_path / "out" / "after.png").exists()


def test_assess_judges_several_columns(data_csv, tmp_path, capsys):
    arguments = ["assess", data_csv, *COMMON, "--prediction", "tau", "--prediction", "other", "--covariates", "all"]
    assert run(*arguments, "--redraws", "2", "--out", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert "tau\nThe predictions are miscalibrated" in said
    assert len(re.findall(r"  by draw of the folds  +[\d.e-]+, [\d.e-]+, [\d.e-]+ ", said)) == 2
    record = json.loads((tmp_path / "out" / "assessment.json").read_text())
    assert set(record) == {"tau", "other"}
    assert (tmp_path / "out" / "reliability-tau.png").stat().st_size > 10_000


def test_a_page_says_what_has_changed_since_last_time(data_csv, tmp_path, capsys):
    arguments = ["calibrate", data_csv, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "all"]
    since = ["--since", tmp_path / "out" / "assessment.json"]
    assert run(*arguments, *since, "--out", tmp_path / "none") == 2
    assert "`--since` must be a file that can be read" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert run(*arguments, "--out", tmp_path / "out") == 0
    assert "Since last time" not in (tmp_path / "out" / "report.html").read_text()
    assert run(*arguments, *since, "--out", tmp_path / "out") == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h2>Since last time</h2>" in page
    assert "Then and now: before" in page


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
    assert run(*common, "--effect", "cvar", "--tail", "0.2", "--out", tmp_path / "cvar") == 0


def test_demo_runs_from_nothing_to_a_verdict(tmp_path, capsys):
    assert run("demo", "--out", tmp_path / "demo", "--jobs", "1") == 0
    said = capsys.readouterr().out
    assert "9,275 households" in said
    assert "The predictions are miscalibrated" in said
    assert "Use the average effect. Over all rows it is 0.1" in said
    assert "Neither the prediction nor its calibration beats a constant effect for everyone (" in said
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
        (["--prediction", "tau", "--propensity", "pp"], "The propensity column must be in the data"),
        (["--prediction", "tau", "--propensity", "1.0"], "strictly inside (0, 1)"),
        (["--prediction", "tau", "--effect", "lates"], "it is 'lates'. Did you mean 'late'?"),
        (["--prediction", "tau", "--effect", "effect-of-all"], "it is 'effect-of-all'.\n"),
        (["--prediction", "tau", "--method", "splines"], "it is 'splines'. Did you mean 'spline'?"),
        (
            ["--prediction", "tau", "--quantile", "0.5"],
            "`--quantile` must belong to the effect; 'cate' has arm, control",
        ),
        (["--prediction", "tau", "--effect", "late"], "must have an `--instrument`"),
        (["--prediction", "tau", "--arm", "7"], "`--arm`=7 must occur in the treatment column"),
        (["--prediction", "tau", "--holdout", "1.5"], "`--holdout` must lie in [0, 1)"),
        (["--prediction", "tau", "--holdout", "0.999"], "leaves too few of the 600 rows"),
        (["--prediction", "tau", "--folds", "1"], "`--folds` must be at least 2"),
        (["--prediction", "tau", "--clip", "0.7"], "`--clip` must lie strictly between 0 and 0.5"),
        (["--prediction", "tau", "--propensity", "nan"], "`--propensity` as given must be a finite number"),
        (["--prediction", "tau", "--prediction", "other"], "`--prediction` must be given once here"),
        (["--prediction", "[/bold]zz"], "'[/bold]zz' is not"),
        (["--prediction", "tau", "--folds", "x"], "The fold column must be in the data; 'x' is not."),
        (["--prediction", "tau", "--clip", "x"], "Error: Invalid value for '--clip'"),
        (["--prediction", "tau", "--seed", "2"], "`--seed` must be given once; it was given 2 times."),
        (["--prediction", "tau", "--fail-if", "wrong"], "`--fail-if` must be one of 'miscalibrated', 'inconclusive'"),
        (["--prediction", "TAU"], "'TAU' is not. Did you mean 'tau'?"),
        (["--prediction", "tau", "--tolerance", "0"], "`--tolerance` must be a positive number"),
        (
            ["--prediction", "tau", "--learner", "trees"],
            "`--learner` must be one of 'boosting', 'linear', 'forest', 'stagewise', 'polynomial'",
        ),
        (["--prediction", "tau", "--fold", "5"], "Error: No such option"),
        ([], "Error: `--prediction` must be given, or for several arms --arm VALUE=COLUMN for each; neither was."),
    ],
)
def test_bad_input_exits_2_with_one_line_and_leaves_nothing(data_csv, tmp_path, capsys, arguments, message):
    named = [] if "--covariates" in arguments else ["--covariates", "all"]
    assert run("calibrate", data_csv, *COMMON, *arguments, *named, "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.strip().count("\n") == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--outcome", "tua", "The outcome column must be in the data; 'tua' is not. Did you mean 'tau'?"),
        ("--treatment", "tua", "The treatment column must be in the data; 'tua' is not. Did you mean 'tau'?"),
        ("--jobs", "0", "`--jobs` must be a whole number other than 0"),
        ("--seed", "-1", "`--seed` must not be negative"),
    ],
)
def test_other_words_for_what_all_commands_are_asked(data_csv, tmp_path, capsys, option, value, message):
    words = list(COMMON)
    words[words.index(option) + 1] = value
    arguments = ["--prediction", "tau", "--covariates", "x0", "--out", tmp_path / "out"]
    assert run("calibrate", data_csv, *words, *arguments) == 2
    assert message in capsys.readouterr().err


def test_covariates_are_never_guessed(data_csv, tmp_path, capsys):
    arguments = ["calibrate", data_csv, *COMMON, "--prediction", "tau", "--out", tmp_path / "out"]
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert "a column measured after treatment, taken for a covariate, biases everything" in said
    assert "Choose among --covariates x0,x1,x2,x3,x4,other those measured before treatment." in said
    assert run(*arguments, "--exclude", "other", "--dry-run") == 0
    assert "covariates  5: x0, x1, x2, x3, x4\n" in capsys.readouterr().err


def test_a_status_can_fail_a_pipeline(data_csv, tmp_path, capsys):
    arguments = ["assess", data_csv, *COMMON, "--prediction", "tau", "--covariates", "x0,x1", "--out", tmp_path / "out"]
    assert run(*arguments, "--fail-if", "miscalibrated") == 3
    assert "Wrote to" in capsys.readouterr().out
    assert run(*arguments, "--fail-if", "inconclusive") == 0


def test_rows_with_missing_values_are_dropped_only_when_asked(table, tmp_path, capsys):
    y = table["y"].to_pylist()
    y[3] = y[7] = None
    tau = table["tau"].to_pylist()
    tau[7] = tau[8] = None
    holes = table.set_column(table.column_names.index("y"), "y", pa.array(y))
    holes = holes.set_column(table.column_names.index("tau"), "tau", pa.array(tau))
    parquet.write_table(holes, tmp_path / "d.parquet")
    arguments = ["calibrate", tmp_path / "d.parquet", *COMMON, "--prediction", "tau", "--covariates", "x0,x1"]
    assert run(*arguments, "--out", tmp_path / "out") == 2
    assert "`y` must be finite in every row; row 3 is nan" in capsys.readouterr().err
    assert run(*arguments, "--drop-missing", "--method", "linear", "--out", tmp_path / "out") == 0
    assert "Dropped 3 of 600 rows: 2 without y, 2 without tau.\n" in capsys.readouterr().err
    calibrated = parquet.read_table(tmp_path / "out" / "calibrated.parquet")["tau_calibrated"]
    assert calibrated.null_count == 2


def test_results_of_two_runs_never_mix(data_csv, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.docx").write_text("mine")
    arguments = ["calibrate", data_csv, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0"]
    assert run(*arguments, "--method", "linear", "--out", out) == 0
    assert (out / "after.png").exists()
    assert run(*arguments, "--method", "linear", "--holdout", "0", "--out", out) == 0
    assert not (out / "after.png").exists()
    assert (out / "thesis.docx").exists()
    assert "thesis" not in capsys.readouterr().out


def test_odd_column_names_are_taken(table, tmp_path):
    odd = table.rename_columns([*table.column_names[:-3], "y_$", "m/tau_$x", "other"])
    csv.write_csv(odd, tmp_path / "data.csv")
    arguments = ["assess", tmp_path / "data.csv", "--outcome", "y_$", "--treatment", "a", "--prediction", "m/tau_$x"]
    arguments += ["--propensity", "0.5", "--covariates", "all", "--jobs", "1"]
    assert run(*arguments, "--out", tmp_path / "deep" / "out") == 0
    assert (tmp_path / "deep" / "out" / "reliability-m_tau__x.png").exists()
    (tmp_path / "twice.csv").write_text("y,y,a,tau\n1,2,0,1\n")
    assert run("assess", tmp_path / "twice.csv", *COMMON, "--prediction", "tau", "--out", tmp_path / "no" / "no") == 2
    assert not (tmp_path / "no").exists()


def test_a_trial_without_covariates_can_be_judged(table, tmp_path):
    csv.write_csv(table.select(["a", "y", "tau"]), tmp_path / "data.csv")
    arguments = ["assess", tmp_path / "data.csv", *COMMON, "--prediction", "tau", "--propensity", "1/2"]
    assert run(*arguments, "--covariates", "none", "--out", tmp_path / "out") == 0


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

    monkeypatch.setattr(commands, "write_verdict", interrupted)
    arguments = ["calibrate", data_csv, *COMMON, "--prediction", "tau", "--propensity", "0.5", "--covariates", "x0"]
    assert run(*arguments, "--out", tmp_path / "out") == 130
    assert capsys.readouterr().err.endswith("\nStopped.\n")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv"]


def test_warnings_are_one_line(capsys):
    screen.show_warning(UserWarning("overlap is poor"), UserWarning, "file.py", 1)
    assert capsys.readouterr().err == "Warning: overlap is poor\n"


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


@pytest.mark.parametrize(
    ("column", "text", "wanted"),
    [
        ([0, 1], "1", 1),
        ([0.0, 0.5], "0.5", 0.5),
        ([True, False], "true", True),
        (["drug", "1"], "1", "1"),
        ([0, 1], "drug", "drug"),
    ],
)
def test_arms_have_the_type_of_the_column(column, text, wanted):
    assert plan.arm_of(text, pa.array(column).type) == wanted
