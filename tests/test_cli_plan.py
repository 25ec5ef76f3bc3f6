"""What the command line says before and during long work."""

import json

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from rich.console import Console

from orthocal import orthogonal_loss
from orthocal.cli import screen
from tests.command_line import COMMON, run

PLAN = """\
data        {data}, 600 rows
effect      CATE(arm=1, control=0): The average effect of the arm against the control among people with the same covariates, \
E[Y(arm) - Y(control) | X].
contrast    a 1 against 0
outcome     y
treatment   a
prediction  tau
clusters    x0
subgroups   a
covariates  6: x1, x2, x3, x4, other, more
learners    HistGradientBoostingRegressor for outcome_control, outcome_treated; known: propensity
folds       4, drawn once: 8 learner fits
clip        fitted propensities are clipped to [0.02, 0.98]
seed        1
time        seconds
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
        "--covariates",
        "all",
    ]
    arguments += ["--folds", "4", "--clip", "0.02", "--method", "linear", "--holdout", "0.2", "--out", out, "--dry-run"]
    assert run(*arguments) == 0
    said = capsys.readouterr()
    assert said.err == PLAN.format(data=data, out=out)
    assert said.out == ""
    assert not out.exists()
    assert run(*arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["seed"] == "1"
    words = ["--prediction", "tau", "--prediction", "other", "--covariates", "all", "--redraws", "2"]
    assert run("assess", data, *COMMON, *words, "--dry-run", "--out", out) == 0
    said = capsys.readouterr().err
    assert "prediction  tau, other\n" in said
    assert "covariates  6: x0, x1, x2, x3, x4, more\n" in said
    assert "45 learner fits" in said
    assert not out.exists()


def test_a_plan_names_every_covariate(table, tmp_path, capsys):
    for j in range(10):
        table = table.append_column(f"z{j}", table["x0"])
    parquet.write_table(table, tmp_path / "data.parquet")
    common = [
        "calibrate",
        tmp_path / "data.parquet",
        *COMMON,
        "--prediction",
        "tau",
        "--covariates",
        "all",
        "--cost",
        "2",
        "--dry-run",
        "--out",
        tmp_path / "out",
    ]
    assert run(*common, "--holdout", "0") == 0
    said = capsys.readouterr().err
    assert "covariates  16: x0, x1, x2, x3, x4, other, z0, z1, z2, z3, z4, z5, z6, z7, z8, z9\n" in said
    assert "cost        2 for treating one person\n" in said
    assert "drawn once: 15 learner fits" in said
    assert "verdict     none: no rows are held out" in said


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


def test_the_plan_predicts_the_rows_of_the_job(table, tmp_path, capsys):
    """Clusters of unequal size: which are held out decides how many rows are."""
    clusters = np.repeat(np.arange(30), np.arange(1, 61, 2)[:30])[: table.num_rows]
    clusters = np.concatenate([clusters, np.arange(1000, 1000 + table.num_rows - len(clusters))])
    csv.write_csv(table.append_column("g", pa.array(clusters)), tmp_path / "d.csv")
    arguments = [
        "calibrate",
        tmp_path / "d.csv",
        *COMMON,
        "--prediction",
        "tau",
        "--propensity",
        "0.5",
        "--groups",
        "g",
        "--covariates",
        "x0,x1",
    ]
    assert run(*arguments, "--method", "linear", "--folds", "3", "--json", "--out", tmp_path / "out") == 0
    said = capsys.readouterr()
    rows = json.loads(said.out)["before"]["rows"]
    assert f"on {rows} rows the map never sees" in said.err


def test_covariates_must_not_give_the_answer_away(table, tmp_path, capsys):
    csv.write_csv(table, tmp_path / "d.csv")
    for name in ("y", "a"):
        arguments = ["assess", tmp_path / "d.csv", *COMMON, "--prediction", "tau", "--covariates", f"x0,{name}"]
        assert run(*arguments, "--out", tmp_path / "out") == 2
        assert f"{name!r} is it" in capsys.readouterr().err
