"""The demonstration: the main job on a real table, from nothing to a recommendation."""

from __future__ import annotations

from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.datasets import load_401ksubs
from orthocal.folds import MODEL, split_rows
from orthocal.observations import observe
from orthocal.study import Calibration, Study

MODEL_SHARE, HELD_OUT = 1 / 3, 0.5
ENOUGH = 10.0
"""Net financial assets, in $1000, above which a household counts as having saved."""


def t_learner(X: Floats, y: Floats, treatment: Integers, seed: int) -> Any:
    """Return a simple effect model: two boosted regressions, one per arm, subtracted."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):  # several threads on a busy machine of few cores mostly wait for each other
        arms = [
            HistGradientBoostingRegressor(random_state=seed).fit(X[treatment == a], y[treatment == a]) for a in (0, 1)
        ]
    return lambda rows: arms[1].predict(rows) - arms[0].predict(rows)


def run_demo(method: str = "auto", seed: int = 0, n_jobs: int | None = None) -> Calibration:
    """Train an effect model on a third of the 401ksubs rows, calibrate it on another, judge both on the last.

    Outcome: net financial assets above $10,000, or not. Assets themselves have tails that 9,275 households say little about.
    """
    import pyarrow as pa

    data = load_401ksubs()
    saved = (data.y > ENOUGH).astype(np.float64)
    every = observe(data.X, saved, treatment=data.treatment)
    train = split_rows(MODEL_SHARE, data.treatment, every, seed, MODEL) == 0
    model = t_learner(data.X[train], saved[train], data.treatment[train], seed)
    rest = np.flatnonzero(~train)
    columns = {name: data.X[rest, place] for place, name in enumerate(data.covariates)}
    table = pa.table({**columns, "saved": saved[rest], "e401k": data.treatment[rest], "tau": model(data.X[rest])})
    study = Study(
        table, outcome="saved", treatment="e401k", covariates=list(data.covariates), random_state=seed, n_jobs=n_jobs
    )
    done: Calibration = study.calibrate("tau", method, holdout=HELD_OUT)
    return done
