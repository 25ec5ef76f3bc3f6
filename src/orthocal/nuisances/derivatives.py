"""Learning derivatives in a continuous treatment, and the corrections that make their effect orthogonal.

Features are (covariates, treatment), the treatment last. MATH 3 has the formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor

from orthocal.nuisances.wrapped import bare, fit_weighted

if TYPE_CHECKING:
    from orthocal.arrays import Floats

SMALLEST_SCALE = 0.05
"""Least conditional deviation of the treatment, as a share of its overall deviation."""


def shifted(features: Floats, step: float) -> Floats:
    """Return the features with the treatment moved by `step`."""
    moved = features.copy()
    moved[:, -1] += step
    return moved


class WithDerivative(BaseEstimator):  # type: ignore[misc]
    """Learn an outcome and predict two columns: the outcome, and its symmetric difference quotient in the treatment."""

    def __init__(self, learner: Any, step: float) -> None:
        self.learner = learner
        self.step = step

    def fit(self, features: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit the learner."""
        self.model_ = fit_weighted(clone(self.learner), features, y, sample_weight)
        return self

    def predict(self, features: Floats) -> Floats:
        """Return (outcome, derivative) of each row."""
        up, down = (self.model_.predict(shifted(features, sign * self.step)) for sign in (1, -1))
        return np.column_stack([self.model_.predict(features), (up - down) / (2 * self.step)])


class GaussianCorrection(BaseEstimator):  # type: ignore[misc]
    r"""Correction of a treatment that is normal given covariates: mean and deviation learnt, both from covariates.

    :math:`\zeta_e = e^{-e^2/2\sigma^2} \sinh((a - m)e/\sigma^2)/e`, the exact counterpart of the difference quotient.
    """

    def __init__(self, learner: Any, step: float) -> None:
        self.learner = learner
        self.step = step

    def fit(self, features: Floats, treatment: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit the mean, then the logarithm of the squared residuals out of fold."""
        X, half = features[:, :-1], np.arange(len(treatment)) % 2 == 0
        residual = np.empty(len(treatment))
        for own in (half, ~half):
            weight = None if sample_weight is None else sample_weight[~own]
            residual[own] = treatment[own] - fit_weighted(
                clone(self.learner), X[~own], treatment[~own], weight
            ).predict(X[own])
        self.mean_ = fit_weighted(clone(self.learner), X, treatment, sample_weight)
        self.floor_ = SMALLEST_SCALE * float(treatment.std())
        self.variance_ = fit_weighted(_positive(self.learner), X, residual**2, sample_weight)
        return self

    def predict(self, features: Floats) -> Floats:
        """Return the correction of each row."""
        X, step = features[:, :-1], self.step
        variance = np.maximum(self.variance_.predict(X), self.floor_**2)
        argument = np.clip((features[:, -1] - self.mean_.predict(X)) * step / variance, -30, 30)
        return np.asarray(np.exp(-(step**2) / (2 * variance)) * np.sinh(argument) / step)


class ShiftCorrection(BaseEstimator):  # type: ignore[misc]
    r"""Correction by classification: rows with the treatment moved against rows as they are.

    The odds that (a, x) is a moved row are :math:`\pi(a - e \mid x)/\pi(a \mid x)`, whatever the law of the treatment.
    """

    def __init__(self, learner: Any, step: float, most_odds: float = 20.0) -> None:
        self.learner = learner
        self.step = step
        self.most_odds = most_odds

    def fit(self, features: Floats, treatment: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit one classifier for a move up and one for a move down."""
        del treatment  # it is the last feature
        label = np.repeat([0, 1], len(features))
        weight = None if sample_weight is None else np.tile(sample_weight, 2)
        self.models_ = [
            fit_weighted(clone(self.learner), np.vstack([features, shifted(features, move)]), label, weight)
            for move in (self.step, -self.step)
        ]
        return self

    def predict(self, features: Floats) -> Floats:
        """Return the correction of each row."""
        odds = []
        for model in self.models_:
            chance = model.predict_proba(features)[:, 1]
            odds.append(np.minimum(chance / np.maximum(1 - chance, 1e-12), self.most_odds))
        return np.asarray((odds[0] - odds[1]) / (2 * self.step))


class RieszCorrection(BaseEstimator):  # type: ignore[misc]
    r"""Correction by Riesz regression on a basis of (treatment, covariates): no density, no classifier.

    Minimises :math:`E_n[\zeta^2 - 2 m(\zeta)]` over :math:`\zeta = b'\rho` with :math:`m` the difference quotient: polynomials in
    the standardised treatment, alone and times each covariate.
    """

    def __init__(self, learner: Any, step: float, degree: int = 3, ridge: float = 1e-3) -> None:
        self.learner = learner
        self.step = step
        self.degree = degree
        self.ridge = ridge

    def fit(self, features: Floats, treatment: Floats, sample_weight: Floats | None = None) -> Self:
        """Solve the normal equations of the basis."""
        del treatment
        weight = np.ones(len(features)) if sample_weight is None else sample_weight
        filled = np.nan_to_num(features)
        self.centre_, self.scale_ = filled.mean(axis=0), filled.std(axis=0) + 1e-12
        basis, total = self._basis(features), float(weight.sum())
        quotient = (self._basis(shifted(features, self.step)) - self._basis(shifted(features, -self.step))) / (
            2 * self.step
        )
        gram = (basis * weight[:, None]).T @ basis / total
        penalty = self.ridge * np.trace(gram) / len(gram) * np.eye(len(gram))
        self.weights_ = np.linalg.solve(gram + penalty, quotient.T @ weight / total)
        return self

    def predict(self, features: Floats) -> Floats:
        """Return the correction of each row."""
        return np.asarray(self._basis(features) @ self.weights_)

    def _basis(self, features: Floats) -> Floats:
        scaled = (np.nan_to_num(features) - self.centre_) / self.scale_
        a, X = scaled[:, -1:], np.clip(scaled[:, :-1], -3, 3)
        powers = np.hstack([a**k for k in range(1, self.degree + 1)])
        return np.hstack([np.ones_like(a), powers, X, a * X])


def _positive(learner: Any) -> Any:
    """A learner of a positive target: the same boosted trees with a gamma loss where possible."""
    copy = clone(learner)
    trees = bare(copy)
    if isinstance(trees, HistGradientBoostingRegressor) and trees.loss == "squared_error":
        return trees.set_params(loss="gamma")  # which has no unit, and no use for a target that is centred
    return copy
