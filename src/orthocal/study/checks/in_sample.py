"""Whether predictions come from a model that was trained on the rows it is judged on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.assessment.parts import Check
from orthocal.folds import draw_folds
from orthocal.study.checks.evidence import FAILED, StudyEvidence, looks_at_rows, passed
from orthocal.study.checks.predictions import Predicted

FOLDS, FEWEST = 5, 50
FLOOR, ERRORS, GUARD = 0.1, 2.6, 2.0
"""Correlation, and standard errors of one, that noise must explain of the prediction in both arms; and how much each correlation
that the model might have by right counts against that. Found on other draws than those of the page on checks."""


class Noise(NamedTuple):
    """What outcome regressions leave of each row's outcome, its sign that of the arm; and how far covariates predict that."""

    covariates: Floats
    value: Floats
    predictable: float
    fold: Integers
    arms: tuple[Booleans, Booleans]


@looks_at_rows
def in_sample(evidence: StudyEvidence, predicted: Predicted) -> Check | None:
    r"""The prediction of a row does not know the noise in its outcome.

    With :math:`\varepsilon` the outcome less its out-of-fold regression, s the sign of the arm and g an out-of-fold regression of
    the prediction f on covariates, a model that saw the row has :math:`\operatorname{corr}(f - g, s\varepsilon) > 0` in *both*
    arms: it predicts more for a treated person who did well by chance, and for an untreated one who did badly. A good model that
    did not see the row may know more than the regressions do. Then covariates, or g, predict :math:`s\varepsilon` as well, which
    is taken off.
    """
    noise, prediction = evidence.noise, predicted.values
    if noise is None or not np.ptp(prediction) > 0:
        return None
    own = prediction[evidence.in_arms]
    smooth = regressed_out_of_fold(noise.covariates, own, noise.fold, trees=20, leaf=2)
    left = [correlation((own - smooth)[arm], noise.value[arm]) for arm in noise.arms]
    by_right = max(noise.predictable, 0.0) + max(
        min(correlation(smooth[arm], noise.value[arm]) for arm in noise.arms), 0.0
    )
    beyond = [
        one - max(FLOOR, ERRORS / np.sqrt(arm.sum())) - GUARD * by_right
        for one, arm in zip(left, noise.arms, strict=True)
    ]
    figure = f"correlation with the noise of the row's outcome {left[0]:.2f} and {left[1]:.2f} in the two arms"
    if min(beyond) <= 0:
        return passed("in-sample", figure, "Nothing shows that the model was trained on these rows.")
    sentence = (
        f"{predicted.name} follows the noise in each row's own outcome, as only a model trained on these rows can."
    )
    return Check(
        "in-sample",
        FAILED,
        figure,
        sentence,
        "Judge it on rows that it never saw, or use predictions made out of fold.",
    )


def noise_of(evidence: StudyEvidence) -> Noise | None:
    """Return the noise of the outcomes of a few thousand rows; None where the effect has no two arms with regressions."""
    rows, learnt, effect = evidence.rows, evidence.engine.learnt, evidence.effect
    needed = ("outcome_control", "outcome_treated")
    if not (hasattr(effect, "arm") and all(name in learnt.nuisances for name in needed)) or not evidence.names:
        return None
    some = evidence.in_arms
    treated, control = rows.treatment[some] == effect.arm, rows.treatment[some] == effect.control
    if min(treated.sum(), control.sum()) < FEWEST:
        return None
    fold = learnt.fold
    if fold is None:
        fold = draw_folds(FOLDS, effect.strata(rows), rows, 0)
    mean = np.where(treated, learnt.nuisances["outcome_treated"][some], learnt.nuisances["outcome_control"][some])
    value = np.where(treated, 1.0, -1.0) * (rows.outcome[some] - mean)
    X = rows.covariates[some]
    known = np.maximum((~np.isnan(X)).sum(axis=0), 1)
    X = np.where(np.isnan(X), np.nansum(X, axis=0) / known, X)
    predictable = correlation(regressed_out_of_fold(X, value, fold[some], trees=30, leaf=3), value)
    return Noise(X, value, predictable, fold[some], (treated, control))


def regressed_out_of_fold(X: Floats, target: Floats, fold: Integers, *, trees: int, leaf: int) -> Floats:
    """Return what other folds tell of a target: least squares, and extremely randomised trees on what it leaves."""
    from sklearn.ensemble import ExtraTreesRegressor

    spread = float(target.std())
    if not spread > 1e-12 * float(np.abs(target).max()):
        return target
    z = (target - target.mean()) / spread
    deviation = X.std(axis=0)
    design = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)])
    found = np.empty(len(z))
    for k in np.unique(fold):
        own = fold == k
        line = design @ np.linalg.lstsq(design[~own], z[~own], rcond=None)[0]
        rest = ExtraTreesRegressor(trees, min_samples_leaf=leaf, max_features=0.7, random_state=0)
        found[own] = line[own] + rest.fit(X[~own], (z - line)[~own]).predict(X[own])
    return np.asarray(target.mean() + spread * found)


def correlation(one: Floats, other: Floats) -> float:
    """Return the correlation of two columns; 0 where one does not vary."""
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else 0.0
