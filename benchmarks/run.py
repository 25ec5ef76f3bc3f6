"""Speed as ratios against the work that must be done anyway. Absolute times mean nothing across machines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import QuantileRegressor
from threadpoolctl import threadpool_limits

from orthocal import CATE, HingeLoss, Isotonic, Linear, QuadraticLoss, assess, orthogonal_loss
from orthocal.datasets import simulate_cate
from orthocal.folds import assign_folds
from orthocal.nuisances import default_learner
from orthocal.observations import observe
from timing import interleaved

MILLION = 10**6


def scored_rows(n: int) -> tuple[np.ndarray, QuadraticLoss]:
    """Return predictions and a loss whose nuisances are given."""
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(n)
    weight = rng.uniform(0.5, 2, n)
    return prediction, QuadraticLoss(weight * (prediction + rng.standard_normal(n)), weight)


def isotonic_fit() -> float:
    """Fit of Isotonic against argsort, its gathers and scipy's isotonic regression."""
    prediction, loss = scored_rows(MILLION)
    target = loss.target

    def floor() -> None:
        order = np.argsort(prediction)
        prediction[order]
        isotonic_regression(target[order], weights=loss.denominator[order])

    return interleaved(lambda: Isotonic().fit(prediction, loss), floor)


def judging() -> float:
    """Full assess against one argsort of the predictions."""
    prediction, loss = scored_rows(MILLION)
    return interleaved(lambda: assess(prediction, loss, random_state=0), lambda: np.argsort(prediction))


def cross_fitting() -> float:
    """orthogonal_loss against the bare loop of learner fits and predictions."""
    data = simulate_cate(50_000, random_state=0)
    rows = observe(data.X, data.y, treatment=data.treatment)
    fold = assign_folds(5, data.treatment, random_state=0)
    nuisances = CATE().nuisances(rows)
    learners = {n.name: default_learner(n).set_params(random_state=0) for n in nuisances}

    def floor() -> None:
        with threadpool_limits(limits=1):
            for nuisance in nuisances:
                for k in range(5):
                    train = fold != k if nuisance.rows is None else (fold != k) & nuisance.rows
                    model = clone(learners[nuisance.name]).fit(data.X[train], nuisance.target[train])
                    (model.predict_proba if nuisance.is_probability else model.predict)(data.X[fold == k])

    def ours() -> None:
        orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, learners=learners, folds=fold)

    return interleaved(ours, floor, repeats=9, typical=min)


def hinge_rows(n: int) -> tuple[np.ndarray, HingeLoss]:
    """Return predictions and a corrected pinball loss, half of the rows treated."""
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(n)
    slope = 2.0 * (rng.random(n) < 0.5)
    return prediction, HingeLoss(prediction + rng.standard_normal(n), slope, 0.5 + (slope - 1) * rng.random(n))


def hinge_isotonic() -> float:
    """Isotonic of the hinge loss against scikit-learn's, of squared loss, on the same arrays."""
    prediction, loss = hinge_rows(MILLION)
    peer = IsotonicRegression()
    return interleaved(
        lambda: Isotonic(min_samples=1).fit(prediction, loss), lambda: peer.fit(prediction, loss.outcome)
    )


def hinge_affine() -> float:
    """A line under the hinge loss against scikit-learn's quantile regression by HiGHS."""
    prediction, loss = hinge_rows(10**4)
    peer = QuantileRegressor(quantile=0.5, alpha=0, solver="highs")
    return interleaved(
        lambda: Linear().fit(prediction, loss), lambda: peer.fit(prediction[:, None], loss.outcome), repeats=5
    )


def import_time() -> float:
    """Seconds by which `import orthocal` is slower than `import sklearn`, medians of nine."""
    return slower("import orthocal")


def slower(code: str) -> float:
    """Return seconds by which an import is slower than scikit-learn's, medians of nine."""

    def seconds(code: str) -> float:
        timed = f"import time; s = time.perf_counter(); {code}; print(time.perf_counter() - s)"
        return float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)

    ours, peer = zip(*[(seconds(code), seconds("import sklearn")) for _ in range(9)], strict=True)
    return median(ours) - median(peer)


BENCHMARKS = {
    "isotonic fit, 10^6 rows / argsort + gathers + scipy isotonic_regression": (isotonic_fit, 3.0),
    "assess, 10^6 rows / argsort": (judging, 10.0),
    "cross-fitting, 50,000 rows / bare learner fits and predictions": (cross_fitting, 1.05),
    "isotonic of the hinge loss, 10^6 rows / sklearn IsotonicRegression": (hinge_isotonic, 1.5),
    "affine of the hinge loss, 10^4 rows / sklearn QuantileRegressor (highs)": (hinge_affine, 0.02),
    "import orthocal minus import sklearn, seconds": (import_time, 0.2),
}


def main() -> None:
    """Print every ratio beside its target and keep them in results.json."""
    results, missed = {}, []
    for name, (work, target) in BENCHMARKS.items():
        value = work()
        results[name] = {"value": round(value, 3), "at most": target}
        missed += [name] if value > target else []
        print(f"{value:8.3f}   (at most {target})   {name}", flush=True)
    Path(__file__).with_name("results.json").write_text(json.dumps(results, indent=1) + "\n")
    if missed:
        sys.exit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
