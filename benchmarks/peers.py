"""The verdict and cross-fitting against EconML and DoubleML, on the same rows with the same learners."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CATE, assess, orthogonal_loss
from orthocal.datasets import simulate_cate
from orthocal.folds import assign_folds
from orthocal.nuisances import default_learner
from orthocal.observations import observe
from timing import Skipped, interleaved, seeded


def judging() -> float:
    """Full assess against DRTester's calibration, best linear predictor and uplift tests, nuisances fitted already."""
    _require("econml")
    from econml.validate import DRTester

    train, rows = simulate_cate(100_000, random_state=1), simulate_cate(100_000, random_state=0)

    class Model:
        """The true effect, asked as EconML asks."""

        def effect(self, X: np.ndarray, T0: Any = 0, T1: Any = 1) -> np.ndarray:
            del T0, T1
            return X[:, 0] / 2 + np.sin(X[:, 1])

    tester = DRTester(model_regression=LinearRegression(), model_propensity=LogisticRegression(), cate=Model())
    tester.fit_nuisance(rows.X, rows.treatment, rows.y, train.X, train.treatment, train.y)
    loss = orthogonal_loss("cate", rows.X, rows.y, treatment=rows.treatment, nuisances=rows.nuisances)

    def peer() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tester.evaluate_cal(rows.X, train.X)
            tester.evaluate_blp(rows.X, train.X)
            tester.evaluate_uplift(rows.X, train.X)

    return interleaved(lambda: assess(rows.effect, loss, random_state=0), peer, repeats=5)


def cross_fitting(jobs: int | None = None) -> float:
    """CATE nuisances on two cores against DoubleMLIRM.fit with the same learners and folds."""
    _require("doubleml")
    import doubleml

    n, extra = 50_000, np.random.default_rng(1).standard_normal((50_000, 15))
    data = simulate_cate(n, random_state=0)
    X = np.column_stack([data.X, extra])
    fold = assign_folds(5, data.treatment, random_state=0)
    learner: dict[str, Any] = {}
    for nuisance in CATE().nuisances(observe(X, data.y, treatment=data.treatment)):
        learner[nuisance.role] = seeded(default_learner(nuisance))
    table = doubleml.DoubleMLData.from_arrays(X, data.y, data.treatment)
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]

    def peer() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = doubleml.DoubleMLIRM(
                table, clone(learner["outcome"]), clone(learner["propensity"]), draw_sample_splitting=False
            )
            model.set_sample_splitting([parts])
            return model.fit(n_jobs_cv=jobs)

    def ours() -> Any:
        return orthogonal_loss(
            "cate", X, data.y, treatment=data.treatment, learners=learner, folds=fold, random_state=0, n_jobs=2
        )

    np.testing.assert_allclose(ours().target.mean(), peer().coef[0], atol=1e-3)
    return interleaved(ours, peer, repeats=5)


def cross_fitting_told() -> float:
    """The same, DoubleML told to use two cores as well."""
    return cross_fitting(jobs=2)


def causal_calibration() -> float:
    """Isotonic against van der Laan's causalCalibration, where the package index has it."""
    raise Skipped("causalCalibration is not on the package index")


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise Skipped(f"{package} is not installed")


BENCHMARKS = {
    "isotonic, 10^6 rows, fit / causalCalibration": (causal_calibration, 0.02),
    "assess, 10^5 rows / econml DRTester cal + blp + uplift": (judging, 0.2),
    "cross-fitting, 50,000 x 20, two cores / doubleml IRM.fit()": (cross_fitting, 0.75),
    "cross-fitting, 50,000 x 20, two cores / doubleml IRM.fit(n_jobs_cv=2)": (cross_fitting_told, 1.0),
}
