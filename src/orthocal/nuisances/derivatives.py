"""Learning an outcome together with its derivative in a continuous treatment.

Features are (covariates, treatment), the treatment last. Formulas: mathematics 3.4.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.nuisances.polynomials import FARTHEST, InParts, Remainder, deviation, polynomial, ridge
from orthocal.nuisances.wrapped import fit_weighted

DEFAULT_STEP = 0.25
"""Step of the difference quotient, in standard deviations of what covariates leave of the treatment."""
LEAST_REMAINING = 1e-3


def step_for(features: Floats, step: float | None, weight: Floats | None = None) -> float:
    """Return the step, or a quarter of the standard deviation of what a ridge regression on covariates leaves of the treatment.

    All nuisances of a fold learn from the same rows, and so find the same step.
    """
    if step is not None:
        return step
    X, treatment = features[:, :-1], features[:, -1]
    terms = polynomial(X, weight)(X)
    remaining, overall = (
        deviation(treatment - ridge(terms, treatment, weight, main=X.shape[1])(terms), weight),
        deviation(treatment, weight),
    )
    if not remaining > LEAST_REMAINING * overall:
        raise OrthocalError(
            f"The treatment must vary among people with the same covariates; they leave {remaining / overall:.1e} of its "
            "standard deviation. Leave out the covariate that is the treatment under another name."
        )
    return DEFAULT_STEP * remaining


def shifted(features: Floats, step: float) -> Floats:
    """Return the features with the treatment moved by `step`."""
    moved = features.copy()
    moved[:, -1] += step
    return moved


class WithDerivative(BaseEstimator):  # type: ignore[misc]
    r"""Learn an outcome and predict two columns: the outcome, and its symmetric difference quotient in the treatment.

    In three steps, so that strong confounding does not end up in the slope (Robinson 1988): the means of outcome and treatment
    given covariates; the outcome's remainder on the treatment's, times covariates and powers; the learner on what that leaves.
    """

    def __init__(self, learner: Any, step: float | None = None) -> None:
        self.learner = learner
        self.step = step

    def fit(self, features: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit the means, the response to the treatment's remainder, and the learner."""
        X, treatment = features[:, :-1], features[:, -1]
        self.step_ = step_for(features, self.step, sample_weight)
        mean = InParts(Remainder(self.learner))
        self.outcome_ = clone(mean).fit(X, y, sample_weight)
        self.treatment_ = mean.fit(X, treatment, sample_weight)
        remainder = treatment - self.treatment_.unseen_
        self.unit_ = deviation(remainder, sample_weight)
        self.terms_ = polynomial(X, sample_weight)
        columns = self._columns(X, remainder)
        left = y - self.outcome_.unseen_
        self.response_ = ridge(columns, left, sample_weight, main=1 + X.shape[1])
        left = left - self.response_(columns)
        self.scale_ = deviation(left, sample_weight)
        self.model_ = None
        if self.scale_ > 1e-9 * deviation(y, sample_weight):
            everything = np.column_stack([features, remainder])
            self.model_ = fit_weighted(clone(self.learner), everything, left / self.scale_, sample_weight)
        return self

    def predict(self, features: Floats) -> Floats:
        """Return (outcome, derivative) of each row."""
        X = features[:, :-1]
        outcome, treatment = self.outcome_.predict(X), self.treatment_.predict(X)
        at, up, down = (self._response(shifted(features, by), treatment) for by in (0.0, self.step_, -self.step_))
        return np.column_stack([outcome + at, (up - down) / (2 * self.step_)])

    def _response(self, features: Floats, mean: Floats) -> Floats:
        """How far the outcome is from its mean given covariates."""
        remainder = features[:, -1] - mean
        line = self.response_(self._columns(features[:, :-1], remainder))
        if self.model_ is None:
            return line
        return np.asarray(line + self.scale_ * self.model_.predict(np.column_stack([features, remainder])))

    def _columns(self, X: Floats, remainder: Floats) -> Floats:
        u, near = remainder / self.unit_, self.terms_.near(X)
        bent = np.clip(u, -FARTHEST, FARTHEST)
        return np.column_stack([u, u[:, None] * near, u[:, None] * near[:, self.terms_.curved] ** 2, bent**2, bent**3])
