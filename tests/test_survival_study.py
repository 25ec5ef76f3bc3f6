"""Censored times through the other doors: a study and its checks, the command line, Dask."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from orthocal import OrthocalError, RestrictedMeanTime, Study, SurvivalProbability, assess, orthogonal_loss, plots
from orthocal.datasets import simulate_cate, simulate_survival
from tests.command_line import run

NAMES = ["x1", "x2", "x3", "x4"]
EFFECT = SurvivalProbability(time=0.8, grid=8)


@pytest.fixture(scope="module")
def table():
    """Predictions are too large by 0.5."""
    data = simulate_survival(600, time=0.8, random_state=0)
    columns = {"years": data.y, "died": data.event.astype(int), "drug": data.treatment, "tau": data.effect + 0.5}
    return pd.DataFrame({**dict(zip(NAMES, data.X.T, strict=True)), **columns})


def study_of(table, **settings):
    roles = {"outcome": "years", "event": "died", "treatment": "drug", "covariates": NAMES, "effect": EFFECT}
    return Study(table, **{**roles, "learners": "linear", **settings})


def test_a_study_says_what_the_array_door_says(table):
    found = study_of(table).assess("tau")
    columns = {"treatment": table["drug"], "event": table["died"], "learners": "linear", "random_state": 0}
    loss = orthogonal_loss(EFFECT, table[NAMES], table["years"], **columns)
    expected = assess(table["tau"], loss, random_state=0)
    assert found.error == pytest.approx(expected.error, rel=1e-12)
    assert found.status == "miscalibrated"


def test_a_study_calibrates_and_the_report_is_written(table, tmp_path):
    done = study_of(table, effect=RestrictedMeanTime(horizon=0.8, grid=8)).calibrate("tau", "linear")
    assert done.before.status == "miscalibrated"
    done.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "competing risks" in page
    assert "Survival probability over time had everyone got each arm" in page


def test_policies_and_choices_know_censored_times(table):
    study = study_of(table)
    assert "everyone" in study.policy("tau").summary()
    rivals = study.choose({"tau": "tau", "right": table["tau"] - 0.5}, method="linear")
    assert "right" in rivals.summary()


def test_the_event_is_no_covariate_and_must_have_a_use(table):
    whole = study_of(table, covariates="all", predictions=["tau"])
    assert list(whole.roles.covariates) == NAMES
    with pytest.raises(OrthocalError, match="`event` must go with an effect on censored times; CATE does not use it"):
        study_of(table, effect="cate")
    with pytest.raises(OrthocalError, match="must have an `event`"):
        study_of(table, event=None)
    with pytest.raises(OrthocalError, match=r"`time` must be given.*as in SurvivalProbability\(time=365\)"):
        study_of(table, effect="survival")
    with pytest.raises(OrthocalError, match="Did you mean 'died'"):
        study_of(table, event="dies")


def test_the_curves_of_both_arms_are_drawn(table):
    verdict = study_of(table).assess("tau")
    ax = plots.survival_curves(verdict)
    treated, control = (line.get_ydata() for line in ax.get_lines())
    assert treated[0] == control[0] == 1.0
    assert treated[-1] - control[-1] == pytest.approx(verdict.average.effect)
    assert len(ax.collections) == 2
    assert verdict.to_dict()["overlap"]["curves"]["times"][-1] == 0.8
    plt.close("all")
    data = simulate_cate(200, random_state=0)
    loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    with pytest.raises(OrthocalError, match="no survival curves to draw"):
        plots.survival_curves(assess(data.effect, loss, random_state=0))


def check_named(study, name):
    return next((check for check in study.checks() if check.name == name), None)


def test_the_check_of_follow_up_says_who_was_followed(table):
    check = check_named(study_of(table), "follow-up")
    share = np.mean((table["died"] == 1) | (table["years"] >= 0.8))
    assert check.result == "passed"
    assert check.figure.startswith(f"{share:.0%} of rows followed to the event or to 0.8, chance of it below 0.2 in ")
    assert check_named(study_of(table), "censoring") is None


@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
def test_the_check_of_follow_up_names_a_time_that_would_do():
    data = simulate_survival(2000, censoring_rate=2.0, random_state=0)
    columns = {"years": data.y, "died": data.event.astype(int), "drug": data.treatment}
    table = pd.DataFrame({**dict(zip(NAMES, data.X.T, strict=True)), **columns})
    check = check_named(study_of(table, effect=SurvivalProbability(time=1.0)), "follow-up")
    assert check.result == "warning"
    assert check.advice.startswith("Choose an earlier time: 0.")
    positivity = check_named(study_of(table, effect=SurvivalProbability(time=1.0)), "positivity")
    assert positivity.figure.startswith("0.0% clipped")  # of propensities; chances of follow-up are another matter


def test_impossible_predictions_are_found(table):
    def found(effect):
        study = study_of(table.assign(tau=0.9), effect=effect, predictions=["tau"])
        return check_named(study, "possible values").result

    assert found(EFFECT) == "passed"
    assert found(RestrictedMeanTime(horizon=0.8, grid=8)) == "warning"  # nobody gains 0.9 of 0.8


def test_a_time_that_looks_censored_is_told_what_to_pass(table):
    plain = table.rename(columns={"years": "survival_time"})
    study = study_of(plain, outcome="survival_time", event=None, effect="cate")
    check = check_named(study, "censoring")
    assert check.result == "warning"
    assert "Pass event='died' and the effect SurvivalProbability(time=...)" in check.advice


OPTIONS = [
    *(
        "--outcome",
        "years",
        "--event",
        "died",
        "--treatment",
        "drug",
        "--prediction",
        "tau",
        "--covariates",
        "x1,x2,x3,x4",
    ),
    *("--learner", "linear", "--jobs", "1"),
]


def test_the_command_line_judges_censored_times(table, tmp_path, capsys):
    file = tmp_path / "trial.csv"
    table.to_csv(file, index=False)
    asked = ["--effect", "survival", "--time", "0.8", "--json", "--out", tmp_path / "out"]
    assert run("assess", file, *OPTIONS, *asked) == 0
    said = capsys.readouterr().out
    found = json.loads(said)
    assert "miscalibrated" in json.dumps(found)
    assert "SurvivalProbability(time=0.8" in json.dumps(found)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--effect", "survival"], "`--time` must be given"),
        (["--effect", "rmst", "--time", "1"], "`--time` must belong to the effect; 'rmst' has horizon"),
        (["--effect", "cate"], "`--event` must go with an effect on censored times"),
    ],
)
def test_the_command_line_says_what_is_missing(words, sentence, table, tmp_path, capsys):
    file = tmp_path / "trial.csv"
    table.to_csv(file, index=False)
    assert run("assess", file, *OPTIONS, *words, "--out", tmp_path / "out") == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_on_dask_partitions_do_not_show():
    dd = pytest.importorskip("dask.dataframe")
    import dask

    from orthocal.distributed import CausalCalibrator
    from orthocal.distributed import assess as assess_on_dask

    data = simulate_survival(600, time=0.8, random_state=0)
    columns = {"years": data.y, "died": data.event.astype(int), "drug": data.treatment, "tau": data.effect + 0.5}
    table = pd.DataFrame({**dict(zip(NAMES, data.X.T, strict=True)), **columns}).sort_values("years", ignore_index=True)
    roles = {"outcome": "years", "event": "died", "treatment": "drug", "prediction": "tau", "covariates": NAMES}
    with dask.config.set(scheduler="synchronous"):
        slopes = [
            CausalCalibrator(EFFECT, "linear", learners="linear", sample=10**6, random_state=0)
            .fit(dd.from_pandas(table, npartitions=parts), **roles)
            .map_.slope
            for parts in (1, 4)
        ]
        frame = dd.from_pandas(table, npartitions=3)
        verdict = assess_on_dask(
            frame,
            **roles,
            effect=EFFECT,
            learners="linear",
            sample=10**6,
            random_state=0,
        )
        with pytest.raises(
            OrthocalError,
            match="Curves must be learnt where rows come in partitions",
        ):
            assess_on_dask(frame, **roles, effect=EFFECT, nuisances={"event_survival_treated": lambda X, time: 0.5})
        with pytest.raises(OrthocalError, match="`event` must go with an effect on censored times"):
            assess_on_dask(frame, **roles)
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-9)
    assert verdict.status == "miscalibrated"
