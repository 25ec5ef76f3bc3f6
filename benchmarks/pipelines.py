"""Whole jobs against what they cannot do without: learner fits and predictions, reading and writing a file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from joblib import Parallel, delayed
from pyarrow import parquet
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from orthocal import CATE, Isotonic, assess, cli, orthogonal_loss, save
from orthocal.datasets import simulate_cate
from orthocal.folds import assign_folds
from orthocal.maps import StepMap
from orthocal.nuisances import default_learner
from orthocal.observations import observe
from timing import interleaved, seeded


def _fit(learner, X, target, train, test, *, probability):
    with threadpool_limits(limits=1):
        model = clone(learner).fit(X[train], target[train])
        return model.predict_proba(X[test])[:, 1] if probability else model.predict(X[test])


def _rows(n: int, columns: int):
    data = simulate_cate(n, random_state=0)
    more = np.random.default_rng(1).standard_normal((n, columns - data.X.shape[1]))
    X = np.column_stack([data.X, more])
    fold = assign_folds(5, data.treatment, random_state=0)
    nuisances = CATE().nuisances(observe(X, data.y, treatment=data.treatment))
    learners = {n.name: seeded(default_learner(n)) for n in nuisances}
    return data, X, fold, nuisances, learners


def _bare(X, fold, nuisances, learners, jobs: int):
    work = []
    for nuisance in nuisances:
        for k in range(5):
            train = fold != k if nuisance.rows is None else (fold != k) & nuisance.rows
            work.append(
                delayed(_fit)(
                    learners[nuisance.name], X, nuisance.target, train, fold == k, probability=nuisance.is_probability
                )
            )
    return Parallel(n_jobs=jobs)(work)


def cross_fitting() -> float:
    """orthogonal_loss against the bare loop of learner fits and predictions."""
    data, X, fold, nuisances, learners = _rows(50_000, 5)

    def ours() -> None:
        orthogonal_loss("cate", X, data.y, treatment=data.treatment, learners=learners, folds=fold)

    return interleaved(ours, lambda: _bare(X, fold, nuisances, learners, 1), repeats=9, typical=min)


def everything() -> float:
    """Nuisances, isotonic calibration and verdict on 10^6 x 10 against the bare learner fits and predictions."""
    data, X, fold, nuisances, learners = _rows(10**6, 10)
    prediction = 1 + 2 * data.effect

    def ours() -> None:
        loss = orthogonal_loss("cate", X, data.y, treatment=data.treatment, learners=learners, folds=fold)
        assess(Isotonic().fit(prediction, loss).predict(prediction), loss, random_state=0)

    return interleaved(ours, lambda: _bare(X, fold, nuisances, learners, 1), repeats=5, typical=min)


def applying() -> float:
    """`orthocal apply` on a Parquet file of 10^7 rows against reading and writing it with pyarrow."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = {f"x{j}": rng.standard_normal(10**7) for j in range(4)}
        parquet.write_table(pa.table({"tau": rng.standard_normal(10**7), **columns}), folder / "in.parquet")
        save(StepMap(np.linspace(-2, 2, 200), np.linspace(-1, 1, 201)), folder / "map.json")
        words = ["apply", str(folder / "map.json"), str(folder / "in.parquet"), "--prediction", "tau"]

        def ours() -> None:
            try:
                cli.main([*words, "--out", str(folder / "out.parquet"), "--overwrite"])
            except SystemExit as stop:
                if stop.code:
                    raise

        def floor() -> None:
            parquet.write_table(parquet.read_table(folder / "in.parquet"), folder / "copy.parquet")

        return interleaved(ours, floor, repeats=5)


BENCHMARKS = {
    "cross-fitting, 50,000 rows / bare learner fits and predictions": (cross_fitting, 1.05),
    "nuisances + isotonic + assess, 10^6 x 10 / bare learner fits and predictions": (everything, 1.05),
    "apply, Parquet of 10^7 rows / reading and writing it": (applying, 1.5),
}
