"""Several arms, choices and policies on the command line."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from orthocal import load
from orthocal.datasets import simulate_arms
from tests.command_line import run

LABELS = np.array(["none", "mail", "call"])
COMMON = ["--outcome", "y", "--treatment", "a", "--covariates", "x0,x1", "--learner", "linear", "--jobs", "1"]
ARMS = ["--control", "none", "--arm", "mail=tau_mail", "--arm", "call=tau_call", "--propensity", "1/3"]
ONE = ["--control", "none", "--arm", "mail"]


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    data = simulate_arms(3000, random_state=0)
    table = pd.DataFrame(
        {
            "x0": data.X[:, 0],
            "x1": data.X[:, 1],
            "y": data.y,
            "a": LABELS[data.treatment],
            "tau_mail": 1 + 2 * data.effect[:, 0],
            "tau_call": data.effect[:, 1],
            "fee": 0.1,
            "gap": np.where(np.arange(3000) == 7, np.nan, 0.1),
        }
    )
    file = tmp_path_factory.mktemp("trial") / "trial.csv"
    table.to_csv(file, index=False)
    return file


def test_several_arms_are_calibrated_applied_and_exported(trial, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("calibrate", trial, *COMMON, *ARMS, "--decisions", "--out", out) == 0
    assert "error, call vs mail" in capsys.readouterr().out
    names = {file.name for file in out.iterdir()}
    assert names == {"calibrated.csv", "map.json", "report.html", "assessment.json", "contrasts.png", ".orthocal.json"}
    record = json.loads((out / "assessment.json").read_text())
    assert list(record["after"]["contrasts"]) == ["mail vs none", "call vs none", "call vs mail"]
    table = pd.read_csv(out / "calibrated.csv")
    wanted = load(out / "map.json").predict(table[["tau_mail", "tau_call"]])
    new = ["tau_mail_calibrated", "tau_call_calibrated"]
    np.testing.assert_allclose(table[new], wanted)
    for suffix in (".csv", ".parquet"):
        target = tmp_path / f"applied{suffix}"
        assert run("apply", out / "map.json", trial, "--out", target) == 0
        read = pd.read_csv if suffix == ".csv" else pd.read_parquet
        np.testing.assert_allclose(read(target)[new], wanted)
    named = ["--prediction", "tau_call", "--prediction", "tau_mail"]
    assert run("apply", out / "map.json", trial, *named, "--out", tmp_path / "turned.csv") == 0
    turned = pd.read_csv(tmp_path / "turned.csv")
    np.testing.assert_allclose(
        turned[["tau_call_calibrated", "tau_mail_calibrated"]],
        load(out / "map.json").predict(table[["tau_call", "tau_mail"]]),
    )
    capsys.readouterr()
    assert run("export", out / "map.json", "--format", "sql") == 0
    assert "END AS tau_call_calibrated" in capsys.readouterr().out
    assert run("apply", out / "map.json", trial, "--prediction", "tau_mail", "--out", tmp_path / "no.csv") == 2
    assert "must be given 2 times, for the arms mail, call in this order; it was given 1" in capsys.readouterr().err


def test_several_arms_are_assessed(trial, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("assess", trial, *COMMON, *ARMS, "--out", out, "--fail-if", "miscalibrated") == 3
    assert "All contrasts together: miscalibrated." in capsys.readouterr().out
    assert json.loads((out / "assessment.json").read_text())["status"] == "miscalibrated"
    assert (out / "reliability-call_vs_mail.png").exists()


def test_choose_and_policy(trial, tmp_path, capsys):
    chosen, decided = tmp_path / "chosen", tmp_path / "decided"
    models = ["--prediction", "tau_mail", "--prediction", "x0", "--propensity", "1/3", "--propensity-control", "1/3"]
    models = [*models, "--covariates", "x1"]
    common = [word for word in COMMON if word not in {"--covariates", "x0,x1"}]
    assert run("choose", trial, *common, *ONE, *models, "--cost", "0.1", "--method", "linear", "--out", chosen) == 0
    assert "has the lowest mean loss" in capsys.readouterr().out
    assert {file.name for file in chosen.iterdir()} == {
        "report.html",
        "choice.json",
        "leaderboard.png",
        ".orthocal.json",
    }
    record = json.loads((chosen / "choice.json").read_text())
    assert {rival["rival"] for rival in record["rivals"]} >= {
        "tau_mail, calibrated",
        "x0",
        "average effect",
        "no effect",
    }
    costs = ["--cost", "mail=fee", "--cost", "call=0.2", "--budget", "0.05"]
    assert run("policy", trial, *COMMON, *ARMS, *costs, "--method", "linear", "--out", decided) == 0
    assert "outcome if no one is treated" in capsys.readouterr().out
    assert {file.name for file in decided.iterdir()} == {
        "report.html",
        "policy.json",
        "top-shares.csv",
        "policy.png",
        "budget.png",
        ".orthocal.json",
    }
    with (decided / "top-shares.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["rule"] for row in rows} == {"prediction", "prediction, calibrated"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arm", "mail=tau_mail", "--arm", "call"], "with a column for every arm"),
        ([*ARMS, "--prediction", "tau_mail"], "`--prediction` must be left out where arms name their columns"),
        ([*ARMS, "--quantile", "0.5"], "`--quantile` must be left out with several arms"),
        (
            ["--arm", "mail=tau_mail", "--arm", "cal=tau_call", "--control", "none"],
            "Every arm must occur in the treatment",
        ),
        (["--arm", "mail=tau_mail", "--arm", "call=tau_cal", "--control", "none"], "Did you mean 'tau_call'"),
    ],
)
def test_bad_arms_get_one_line_and_leave_nothing(trial, tmp_path, capsys, arguments, message):
    assert run("calibrate", trial, *COMMON, *arguments, "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert message in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cost", "-1"], "`--cost` must be at least 0, finite and without gaps; it is -1"),
        (["--cost", "gap"], "`gap` must be finite in every row; row 7 is nan"),
        (["--cost", "0.1", "--budget", "9"], "`--budget` must not exceed"),
        (["--cost", "0.1", "--budget", "-1"], "`--budget` must"),
        (["--cost", "mail=0.1", "--cost", "0.2"], "here it is both"),
        (["--cost", "post=0.1"], "post"),
        (["--cost", "nowhere"], "The cost column must be in the data; 'nowhere' is not"),
        (["--spend", "nowhere"], "The spend column must be in the data"),
        (["--redraws", "2"], "does not apply to policy"),
    ],
)
def test_bad_costs_get_one_line_and_leave_nothing(trial, tmp_path, capsys, arguments, message):
    assert run("policy", trial, *COMMON, *ARMS, *arguments, "--method", "linear", "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert message in said
    assert not any(tmp_path.glob("out/*.json"))
