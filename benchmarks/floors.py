"""Calibrators and the verdict against the numpy and scipy operations that must be done anyway, and against scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from scipy.optimize import isotonic_regression
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import QuantileRegressor
from sklearn.utils.validation import has_fit_parameter

from orthocal import CausalCalibrator, HingeLoss, Histogram, Isotonic, Linear, QuadraticLoss, assess, orthogonal_loss
from orthocal.datasets import simulate_cate
from orthocal.folds import draw_folds
from orthocal.observations import observe
from timing import Skipped, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

MILLION = 10**6


def scored_rows(n: int = MILLION) -> tuple[np.ndarray, QuadraticLoss]:
    """Return predictions and the CATE's loss, nuisances given."""
    data = simulate_cate(n, random_state=0)
    loss: Any = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    return 1 + 2 * data.effect, loss


def isotonic_floor() -> float:
    """Fit and predict of Isotonic against argsort, its gathers, scipy's isotonic regression and a lookup."""
    prediction, loss = scored_rows()
    target, weight = loss.target, loss.denominator

    def floor() -> np.ndarray:
        order = np.argsort(prediction)
        level = prediction[order]
        fit = isotonic_regression(target[order], weights=weight[order])
        starts = fit.blocks[:-1]
        return fit.x[starts][np.searchsorted(level[starts[1:] - 1], prediction)]

    def plain() -> np.ndarray:
        return Isotonic(min_samples=1).fit(prediction, loss).predict(prediction)

    np.testing.assert_allclose(plain(), floor(), rtol=1e-9, atol=1e-9)
    return interleaved(lambda: Isotonic().fit(prediction, loss).predict(prediction), floor)


def isotonic_sklearn() -> float:
    """Fit and predict of Isotonic against scikit-learn's."""
    prediction, loss = scored_rows()
    target, peer = loss.target, IsotonicRegression(out_of_bounds="clip")
    theirs = peer.fit(prediction, target).predict(prediction)
    np.testing.assert_allclose(Isotonic(min_samples=1).fit(prediction, loss).predict(prediction), theirs, atol=1e-9)
    return interleaved(
        lambda: Isotonic().fit(prediction, loss).predict(prediction),
        lambda: peer.fit(prediction, target).predict(prediction),
    )


def linear() -> float:
    """Fit of Linear against numpy.polyfit of degree 1."""
    prediction, loss = scored_rows()
    target = loss.target
    own = Linear().fit(prediction, loss).map_
    np.testing.assert_allclose((own.slope, own.intercept), np.polyfit(prediction, target, 1), rtol=1e-9)
    return interleaved(lambda: Linear().fit(prediction, loss), lambda: np.polyfit(prediction, target, 1))


def histogram() -> float:
    """Fit of Histogram against one argsort and one pass of bincount over the bins."""
    prediction, loss = scored_rows()
    target, bins = loss.target, 20
    own = Histogram(bins=bins).fit(prediction, loss).map_
    group = np.searchsorted(own.edges, prediction)
    np.testing.assert_allclose(own.values, np.bincount(group, target) / np.bincount(group))
    return interleaved(
        lambda: Histogram(bins=bins).fit(prediction, loss),
        lambda: (np.argsort(prediction), np.bincount(group, target)),
    )


def calibrating(method: str) -> tuple[Callable[[], CausalCalibrator], np.ndarray]:
    """Return what a user calls, with every nuisance given, and the predictions it calibrates."""
    data = simulate_cate(MILLION, random_state=0)
    prediction = 1 + 2 * data.effect

    def ours() -> CausalCalibrator:
        return CausalCalibrator(method=method, random_state=0).fit(
            data.X, data.y, treatment=data.treatment, prediction=prediction, nuisances=data.nuisances
        )

    return ours, prediction


def calibrator_isotonic() -> float:
    """CausalCalibrator.fit, every nuisance given, against its solver on the same loss."""
    ours, prediction = calibrating("isotonic")
    loss = ours().loss_
    np.testing.assert_array_equal(ours().map_.values, Isotonic().fit(prediction, loss).map_.values)
    return interleaved(ours, lambda: Isotonic().fit(prediction, loss))


def calibrator_linear() -> float:
    """CausalCalibrator.fit, every nuisance given, against one argsort of the predictions."""
    ours, prediction = calibrating("linear")
    return interleaved(ours, lambda: np.argsort(prediction))


def drawing_folds() -> float:
    """Folds of 10^6 rows by their ten covariates and the treatment, against one argsort."""
    rng = np.random.default_rng(0)
    treatment, prediction = rng.integers(0, 2, MILLION), rng.standard_normal(MILLION)
    rows = observe(rng.standard_normal((MILLION, 10)), prediction, treatment=treatment)
    return interleaved(lambda: draw_folds(5, treatment, rows, 0), lambda: np.argsort(prediction))


def judging() -> float:
    """Full assess against one argsort of the predictions."""
    prediction, loss = scored_rows()
    return interleaved(lambda: assess(prediction, loss, random_state=0), lambda: np.argsort(prediction))


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


def hinge_affine(n: int = 10**4, repeats: int = 5) -> float:
    """A line under the pinball loss against scikit-learn's quantile regression by HiGHS."""
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(n)
    outcome = prediction + rng.standard_normal(n)
    loss = HingeLoss(outcome, np.ones(n), np.full(n, 0.5))
    peer = QuantileRegressor(quantile=0.5, alpha=0, solver="highs").fit(prediction[:, None], outcome)
    own = Linear().fit(prediction, loss)
    theirs = loss.value(peer.predict(prediction[:, None])).sum()
    np.testing.assert_allclose(loss.value(own.predict(prediction)).sum(), theirs, rtol=1e-8)
    return interleaved(
        lambda: Linear().fit(prediction, loss), lambda: peer.fit(prediction[:, None], outcome), repeats=repeats
    )


def hinge_affine_large() -> float:
    """The same at 10^5 rows, where the peer needs minutes: once."""
    return hinge_affine(10**5, repeats=1)


def conditional_distribution(n: int = 10**4) -> float:
    """The nuisances of a quantile, with a whole conditional distribution, against those of the CATE on the same rows."""
    if not has_fit_parameter(HistGradientBoostingClassifier, "X_val"):
        raise Skipped(f"scikit-learn {sklearn.__version__} cannot stop trees by rows of their own; 1.7 or later can")
    data = simulate_cate(n, random_state=0)

    def learnt(effect: str) -> Any:
        return orthogonal_loss(
            effect, data.X, data.y, treatment=data.treatment, prediction=data.effect, random_state=0, n_jobs=1
        )

    return interleaved(lambda: learnt("quantile"), lambda: learnt("cate"), repeats=3, typical=min)


def conditional_distribution_large() -> float:
    """The same at 40,000 rows."""
    return conditional_distribution(40_000)


def import_time() -> float:
    """Seconds by which `import orthocal` is slower than `import sklearn`, medians of nine."""

    def seconds(code: str) -> float:
        timed = f"import time; s = time.perf_counter(); {code}; print(time.perf_counter() - s)"
        return float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)

    ours, peer = zip(*[(seconds("import orthocal"), seconds("import sklearn")) for _ in range(9)], strict=True)
    return median(ours) - median(peer)


BENCHMARKS = {
    "isotonic, 10^6 rows, fit + predict / argsort + gathers + scipy isotonic_regression + searchsorted": (
        isotonic_floor,
        1.5,
    ),
    "isotonic, 10^6 rows, fit + predict / sklearn IsotonicRegression": (isotonic_sklearn, 0.5),
    "linear, 10^6 rows / numpy polyfit": (linear, 1.5),
    "histogram, 10^6 rows / argsort + bincount": (histogram, 1.5),
    "isotonic of the hinge loss, 10^6 rows / sklearn IsotonicRegression": (hinge_isotonic, 1.5),
    "affine of the hinge loss, 10^4 rows / sklearn QuantileRegressor (highs)": (hinge_affine, 0.02),
    "CausalCalibrator.fit, isotonic, nuisances given, 10^6 rows / its solver": (calibrator_isotonic, 2.0),
    "CausalCalibrator.fit, linear, nuisances given, 10^6 rows / argsort": (calibrator_linear, 1.5),
    "folds of 10^6 x 10 rows / argsort": (drawing_folds, 4.0),
    "assess, 10^6 rows / argsort": (judging, 10.0),
    "nuisances of a quantile, 10^4 rows / those of the CATE": (conditional_distribution, 4.0),
    "nuisances of a quantile, 4 x 10^4 rows / those of the CATE": (conditional_distribution_large, 4.0),
    "import orthocal minus import sklearn, seconds": (import_time, 0.2),
}
FULL = {"affine of the hinge loss, 10^5 rows / sklearn QuantileRegressor (highs)": (hinge_affine_large, 0.02)}
