"""Reports to look at: of a job that mends, of verdicts, of a quantile, of models and arms side by side, and of decisions."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from orthocal import Study, assess, orthogonal_loss
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.datasets import simulate_arms, simulate_cate, simulate_quantile
from orthocal.effects import new_effect
from orthocal.engines.memory import MemoryEngine
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe
from orthocal.reporting.page import report
from orthocal.study import Calibration
from orthocal.study.calibrating import calibrated
from orthocal.study.checks import checks_of_verdict

HOW = {"data": "simulated <rows> & more", "seed": "0"}


def verified(effect, method, rows, X, *, cost=None, redraws=2, holdout=0.3, by=None, **settings):
    """A calibration of rows in memory with its verdicts."""
    engine = MemoryEngine(effect=new_effect(effect), observations=replace(rows, prediction=None), X=X, **settings)
    done = calibrated(
        engine,
        rows.prediction,
        method,
        holdout,
        Settings(cost=cost, by=by or {}),
        checks=(Check("positivity", "passed", "0% clipped", "Every row could have had either treatment."),),
        more_checks=checks_of_verdict,
        redraws=redraws,
    )
    return Calibration(name="tau", **done)


def job(n=3000, prediction=lambda effect: 1 + 2 * effect, holdout=0.5, method="linear", **settings):
    """A calibration with its verdicts, nuisances known."""
    data = simulate_cate(n, random_state=0)
    rows = observe(data.X, data.y, treatment=data.treatment, prediction=prediction(data.effect))
    given = data.nuisances
    recipe = Recipe(random_state=0)
    return verified("cate", method, rows, data.X, nuisances=given, holdout=holdout, recipe=recipe, **settings)


def write_mended(path):
    data = simulate_cate(3000, random_state=0)
    by = {"sex": np.where(data.X[:, 4] > 0, "women", "men"), "<b>": data.X[:, 3]}
    report(job(cost=0.3, by=by), path, title="Gain & <loss>, $1000", how=HOW)


def write_models(path):
    """Two calibrations side by side, and what has changed since one was made."""
    models = {"forest": job(cost=0.3), "boost & <co>": job(prediction=lambda effect: 0.5 * effect, cost=0.3)}
    then = {"forest": job(n=2000, cost=0.3).to_dict()}
    report(models, path, since=then)


def write_several(path):
    data = simulate_cate(2000, random_state=1)
    loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    report(assess({"tau": 1 + data.effect, "true": data.effect}, loss, random_state=0), path)


def write_quantile(path):
    data = simulate_quantile(800, quantile=0.9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = orthogonal_loss(
            "quantile", data.X, data.y, treatment=data.treatment, prediction=data.effect, random_state=0
        )
        report(assess(data.effect, loss, random_state=0), path)


LONG = "effect_on_quarterly_revenue_per_customer_" * 3
"""A name that nobody shortened."""


@cache
def arms_study():
    """A trial of three arms and two models, one with a long name and one with letters from right to left."""
    data = simulate_arms(3000, random_state=0)
    trial = pd.DataFrame({"y": data.y, "a": np.array(["none", "mail", "call"])[data.treatment.astype(int)]})
    models = {}
    for name, slope in {LONG: 2.0, "تأثير": 1.0}.items():
        models[name] = {arm: f"{name}{arm}" for arm in ("mail", "call")}
        for k, arm in enumerate(("mail", "call")):
            trial[f"{name}{arm}"] = slope * data.effect[:, k]
    return Study(
        trial,
        outcome="y",
        treatment="a",
        arms="all",
        control="none",
        covariates=[],
        propensity=1 / 3,
        predictions=models,
    )


def write_arms(path):
    """One model of three arms."""
    arms_study().calibrate({LONG: arms_study().predictions[LONG]})[LONG].report(path)


def write_arms_models(path):
    """Two models of three arms side by side."""
    report(arms_study().calibrate(), path)


def write_policy(path):
    """Decisions among three arms within a budget."""
    arms_study().policy(cost={"mail": 0.1, "call": 0.2}, budget=0.05).report(path, how=HOW)


def write_choice(path):
    """A choice among models of three arms."""
    arms_study().choose(cost=0.1).report(path)


def write_confounded(path):
    """One verdict with its sensitivity to unmeasured confounding."""
    data = simulate_cate(800, random_state=0)
    table = pd.DataFrame(data.X[:, :2], columns=["age", "income"]).assign(y=data.y, a=data.treatment, tau=data.effect)
    study = Study(table, outcome="y", treatment="a", covariates=["age", "income"], learners="linear")
    report(study.assess("tau"), path, sensitivity=study.sensitivity("tau"))


WRITERS = {
    "mended": write_mended,
    "models": write_models,
    "several": write_several,
    "quantile": write_quantile,
    "arms": write_arms,
    "arms_models": write_arms_models,
    "policy": write_policy,
    "choice": write_choice,
    "confounded": write_confounded,
}
