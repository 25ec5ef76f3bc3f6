"""What verdicts say of models whose truth is known: orthocal, EconML's DRTester, and the regression of grf's test_calibration.

An experiment of 4,000 rows (known propensity, linear outcome regressions) and three predictions: the effect itself, one that
says twice the effect, and one that tells nobody apart. Run with `python benchmarks/verdicts.py [draws]` where EconML is
installed; writes verdicts.md.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import Auto, Isotonic, assess, orthogonal_loss
from orthocal.datasets import simulate_cate

ROWS = 4000


class Model:
    """A function of the rows, as EconML wants it."""

    def __init__(self, predict: Any) -> None:
        self.predict = predict

    def effect(self, X: np.ndarray, T0: Any = 0, T1: Any = 1) -> np.ndarray:
        """Return the predicted effects."""
        del T0, T1
        return self.predict(X)


def truth(X: np.ndarray) -> np.ndarray:
    """Return the effect of `simulate_cate`."""
    return X[:, 0] / 2 + np.sin(X[:, 1])


MODELS = {
    "right": (truth, truth),
    "says twice the effect": (lambda X: 2 * truth(X), truth),
    "noise": (lambda X: np.sin(7 * X[:, 3]) + 0.05, lambda X: np.zeros(len(X))),
}
"""Predictions, and the average effect of people with that prediction."""


def ours(predict: Any, loss: Any, test: Any, error: float) -> dict[str, float]:
    """Return what orthocal's verdict says."""
    begun = process_time()
    verdict = assess(predict(test.X), loss, random_state=0)
    low, high = verdict.interval
    return {
        "orthocal: says miscalibrated": verdict.status == "miscalibrated",
        "orthocal: interval holds the true error": low <= error <= high,
        "orthocal: seconds": process_time() - begun,
    }


def drtester(predict: Any, train: Any, test: Any) -> dict[str, float]:
    """Return what DRTester's tables say."""
    from econml.validate import DRTester

    begun = process_time()
    tester = DRTester(model_regression=LinearRegression(), model_propensity=LogisticRegression(), cate=Model(predict))
    tester.fit_nuisance(test.X, test.treatment, test.y, train.X, train.treatment, train.y)
    calibration, line = tester.evaluate_cal(test.X, train.X), tester.evaluate_blp(test.X, train.X)
    return {
        "DRTester: calibration R2": float(np.ravel(calibration.cal_r_squared)[0]),
        "DRTester: slope significant": float(np.ravel(line.pvals)[0]) < 0.05,
        "DRTester: seconds": process_time() - begun,
    }


def regression(predict: Any, loss: Any, test: Any) -> dict[str, float]:
    """Return what the regression of test_calibration says: are the coefficients of mean and spread above 0? (HC3)."""
    prediction, score = predict(test.X), loss.target
    mean = prediction.mean()
    design = np.column_stack([np.full(len(score), mean), prediction - mean])
    bread = np.linalg.inv(design.T @ design)
    slope = bread @ design.T @ score
    leverage = np.einsum("ij,jk,ik->i", design, bread, design)
    meat = design * ((score - design @ slope) / (1 - leverage))[:, None]
    error = np.sqrt(np.diag(bread @ meat.T @ meat @ bread))
    return {"test_calibration: spread significant": norm.sf(slope[1] / error[1]) < 0.05}


def fixed(predict: Any, loss: Any, test: Any, fresh: Any) -> dict[str, float]:
    """Return the true mean squared error of calibrated predictions over that of the prediction, on fresh rows."""
    before = np.mean((predict(fresh.X) - truth(fresh.X)) ** 2)
    found = {}
    for name, method in {
        "orthocal auto": Auto(),
        "isotonic, as causalCalibration has it": Isotonic(min_samples=1),
    }.items():
        after = method.fit(predict(test.X), loss).predict(predict(fresh.X))
        found[f"{name}: error after"] = float(np.mean((after - truth(fresh.X)) ** 2))
    return {**found, "error before": float(before)}


def main(draws: int) -> None:
    """Run all draws and write the table."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MODELS}
    fresh = simulate_cate(50_000, confounding=0, random_state=10**6)
    for draw in range(draws):
        train, test = (simulate_cate(ROWS, confounding=0, random_state=2 * draw + half) for half in (0, 1))
        loss = orthogonal_loss(
            "cate",
            test.X,
            test.y,
            treatment=test.treatment,
            nuisances={"propensity": 0.5},
            learners={"outcome": LinearRegression()},
            random_state=0,
        )
        for name, (predict, average) in MODELS.items():
            error = float(np.sqrt(np.mean((predict(fresh.X) - average(fresh.X)) ** 2)))
            parts = (ours(predict, loss, test, error), drtester(predict, train, test), regression(predict, loss, test))
            for part in (*parts, fixed(predict, loss, test, fresh)):
                for key, value in part.items():
                    found[name][key].append(float(value))
    keys = list(found["right"])
    lines = [f"| mean of {draws} draws | " + " | ".join(MODELS) + " |", "|---|" + "---|" * len(MODELS)]
    lines += [f"| {key} | " + " | ".join(f"{np.mean(found[name][key]):.3g}" for name in MODELS) + " |" for key in keys]
    text = "\n".join(["# Verdicts on models whose truth is known", "", (__doc__ or "").strip(), "", *lines, ""])
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
