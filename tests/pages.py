"""Reports to look at: of a job that mends, of one verdict, of several, and of a quantile."""

import warnings
from dataclasses import replace

import numpy as np

from orthocal import assess, orthogonal_loss
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.datasets import simulate_cate, simulate_quantile
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


WRITERS = {"mended": write_mended, "several": write_several, "quantile": write_quantile}
