"""The paper's second experiment: quantiles under treatment on synthetic data whose truth is known (l.818-866)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, ndtr

from orthocal.arrays import Floats, Integers
from orthocal.calibration.schemes import fit_calibrator
from orthocal.effects import QuantileUnderTreatment
from orthocal.effects.arms import propensity_nuisance
from orthocal.experiments.protocol import Findings, Key, Row, classifier, regressor, true_calibration_error
from orthocal.experiments.quantile_findings import (
    ACTIVE,
    BINS,
    CLIP,
    COVARIATES,
    FOLDS,
    FRESH,
    NUISANCES,
    QUANTILES,
    SIZES,
    TREE_BINS,
    findings_of,
)
from orthocal.folds import assign_folds
from orthocal.nuisances.cross_fit import cross_fit
from orthocal.nuisances.learners import Recipe
from orthocal.nuisances.wrapped import Coarse
from orthocal.observations import observe
from orthocal.orthogonal import Orthogonal, learn_cross


@dataclass(frozen=True)
class Sample:
    """Covariates, treatment, outcome, and the true mean of the outcome; its noise is standard normal."""

    X: Floats
    treatment: Integers
    y: Floats
    mean: Floats


@dataclass(frozen=True)
class Quantiles:
    """Quantile under treatment: base model, linear calibration by Algorithm 4, and what it is compared with."""

    seed: int = 0
    sizes: tuple[str, ...] = ("default",)
    name: ClassVar[str] = "quantile"
    title: ClassVar[str] = "Calibrating conditional quantiles under treatment"
    question: ClassVar[str] = "Does cross-calibration lower the true calibration error, and does it cost accuracy?"
    repeats: ClassVar[int] = 50

    def settings(self) -> Mapping[str, Any]:
        """Seed and learners."""
        return {"seed": self.seed, "learners": list(self.sizes)}

    def keys(self, repeats: int) -> list[Key]:
        """Each repetition at each sample size."""
        return [
            {"repeat": repeat, "learners": size, "n": n}
            for repeat in range(repeats)
            for size in self.sizes
            for n in SIZES
        ]

    def run(self, key: Key) -> Row:
        """Draw, train, calibrate and compare with the truth; nuisances are learnt once for all quantiles."""
        rng = np.random.default_rng([self.seed, key["repeat"]])
        slope_y, slope_a = (np.r_[rng.standard_normal(ACTIVE), np.zeros(COVARIATES - ACTIVE)] for _ in range(2))
        rng = np.random.default_rng([self.seed, key["repeat"], key["n"]])
        train, own, fresh = (draw_design(n, slope_y, slope_a, rng) for n in (key["n"], key["n"], FRESH))
        both = Sample(
            *(np.concatenate([getattr(part, name) for part in (train, own)]) for name in Sample.__annotations__)
        )
        few = Coarse(TREE_BINS).fit(train.X)
        X, X_own, X_fresh = (few.transform(part.X) for part in (train, own, fresh))
        few = Coarse(TREE_BINS).fit(both.X)
        X_both, X_fresh_both = few.transform(both.X), few.transform(fresh.X)
        size, row = key["learners"], {}
        weight, weight_both = _inverse_propensity(X, train, size, rng), _inverse_propensity(X_both, both, size, rng)
        learnt = _nuisances(X_own, own, size, rng)
        for quantile in QUANTILES:
            model = _trained(X, train, weight, quantile, size, rng)
            double = _trained(X_both, both, weight_both, quantile, size, rng)
            before = model.predict(X_fresh)
            maps = _calibrated(model.predict(X_own), own, learnt, quantile)
            predictions = {"base": before, **{name: fit.predict(before) for name, fit in maps.items()}}
            predictions["double"] = double.predict(X_fresh_both)
            for name, prediction in predictions.items():
                residual = quantile - ndtr(prediction - fresh.mean)
                row[f"q{quantile}_{name}_error"] = true_calibration_error(prediction, residual, BINS)
                row[f"q{quantile}_{name}_loss"] = expected_loss(prediction, fresh.mean, quantile)
        return row

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Means over repetitions with intervals, the paper's figures and claims."""
        return findings_of(rows, self.sizes)


def draw_design(n: int, slope_y: Floats, slope_a: Floats, rng: np.random.Generator) -> Sample:
    """Draw from the design of l.822-838: 100 normal covariates, 20 of which matter, propensities clipped at 0.05."""
    X = rng.standard_normal((n, COVARIATES))
    propensity = np.clip(expit(-X @ slope_a), CLIP, 1 - CLIP)
    treatment = (rng.random(n) < propensity).astype(np.int64)
    mean = X @ slope_y
    return Sample(X, treatment, mean + rng.standard_normal(n), mean)


def expected_loss(prediction: Floats, mean: Floats, quantile: float) -> float:
    """Return the mean pinball loss of a normal outcome, noise and treatment integrated out at the true nuisances."""
    gap = prediction - mean
    density = np.exp(-(gap**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.mean(gap * ndtr(gap) + density - quantile * gap))


def _inverse_propensity(X: Floats, sample: Sample, size: str, rng: np.random.Generator) -> Floats:
    fold = assign_folds(FOLDS, sample.treatment, None, rng)
    learners = {"propensity": classifier(size, **NUISANCES)}
    nuisance = propensity_nuisance(sample.treatment == 1)
    return np.asarray(1 / cross_fit([nuisance], X, fold, learners=learners, clip=CLIP, random_state=rng)["propensity"])


def _trained(X: Floats, sample: Sample, weight: Floats, quantile: float, size: str, rng: np.random.Generator) -> Any:
    """Boosted quantile regression of the treated, weighted by inverse propensity: the uncorrected loss of l.842."""
    treated = sample.treatment == 1
    model = regressor(
        size, loss="quantile", quantile=quantile, max_bins=TREE_BINS, random_state=int(rng.integers(2**31))
    )
    return model.fit(X[treated], sample.y[treated], sample_weight=weight[treated])


def _nuisances(X: Floats, sample: Sample, size: str, rng: np.random.Generator) -> Orthogonal:
    """Propensity and conditional distribution of the calibration rows: neither depends on the quantile."""
    learners = {name: classifier(size, **NUISANCES) for name in ("propensity", "below")}
    rows = observe(X, sample.y, treatment=sample.treatment, prediction=np.zeros(len(sample.y)))
    recipe = Recipe(learners, CLIP, int(rng.integers(2**31)))
    return learn_cross(QuantileUnderTreatment(), rows, X, None, FOLDS, recipe)


def _calibrated(prediction: Floats, sample: Sample, learnt: Orthogonal, quantile: float) -> dict[str, Any]:
    """Linear maps by Algorithm 4 as printed, with refinement, and by the uncorrected loss, whose f is Q (mathematics 3.10)."""
    effect = QuantileUnderTreatment(quantile)
    rows = observe(sample.X, sample.y, treatment=sample.treatment, prediction=prediction)
    plain = {**learnt.nuisances, "below": np.full(len(prediction), quantile)}
    corrected = learn_cross(effect, rows, sample.X, learnt.nuisances, learnt.fold, Recipe()).loss
    uncorrected = learn_cross(effect, rows, sample.X, plain, learnt.fold, Recipe()).loss
    return {
        "linear": fit_calibrator("linear", prediction, corrected, 0, learnt.fold),
        "refined": fit_calibrator("linear", prediction, corrected, 2, learnt.fold),
        "uncorrected": fit_calibrator("linear", prediction, uncorrected, 0, learnt.fold),
    }
