"""The demonstration: the main job on a real table, from nothing to a verdict."""

from __future__ import annotations

from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.datasets import load_401ksubs
from orthocal.effects import new_effect
from orthocal.engines.memory import MemoryEngine
from orthocal.engines.verification import Verified, calibrate_and_verify
from orthocal.folds import MODEL, split_rows
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe


def t_learner(X: Floats, y: Floats, treatment: Integers, seed: int) -> Any:
    """Return a simple effect model: two boosted regressions, one per arm, subtracted."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):  # several threads on a busy machine of few cores mostly wait for each other
        arms = [
            HistGradientBoostingRegressor(random_state=seed).fit(X[treatment == a], y[treatment == a]) for a in (0, 1)
        ]
    return lambda rows: arms[1].predict(rows) - arms[0].predict(rows)


def run_demo(method: str = "auto", seed: int = 0, n_jobs: int | None = None) -> Verified:
    """Train an effect model on a third of the 401ksubs rows, calibrate it on another, judge both on the last."""
    data = load_401ksubs()
    every = observe(data.X, data.y, treatment=data.treatment)
    model_rows = split_rows(1 / 3, data.treatment, every, seed, MODEL) == 0
    model = t_learner(data.X[model_rows], data.y[model_rows], data.treatment[model_rows], seed)
    rest = np.flatnonzero(~model_rows)
    X = data.X[rest]
    observations = observe(X, data.y[rest], treatment=data.treatment[rest], prediction=model(X))
    recipe = Recipe(random_state=seed, n_jobs=n_jobs)
    engine = MemoryEngine(effect=new_effect("cate"), observations=observations, X=X, holdout=0.5, recipe=recipe)
    return calibrate_and_verify(engine, method)
