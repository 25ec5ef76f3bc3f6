r"""Corrections that make the derivative's loss orthogonal: estimates of :math:`\zeta_e = [\pi(a-e|x) - \pi(a+e|x)]/2e\pi(a|x)`.

Each correction offers functions of (covariates, treatment), learnt without a part of the rows; on that part `Balanced` combines
them, and a basis, by Riesz regression. Its normal equations say :math:`E_n[\zeta b] = E_n[(b(a+e) - b(a-e))/2e]` for every
function b: the correction balances the treatment and its main basis functions, whatever a learner missed (mathematics 3.5).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor

from orthocal.arrays import Floats
from orthocal.nuisances.derivatives import shifted, step_for
from orthocal.nuisances.polynomials import Remainder, deviation, parts_of, polynomial, ridge, scaling
from orthocal.nuisances.wrapped import bare, fit_weighted

SMALLEST_SCALE = 0.2
"""Least conditional deviation of the treatment, as a share of its mean conditional deviation."""
FARTHEST = 6.0
"""Deviations from the treatment's conditional mean beyond which the correction grows no further."""


class GaussianCorrection(BaseEstimator):  # type: ignore[misc]
    r"""The treatment's standardised remainder, :math:`(a - m(x))/s^2(x)`, with and without the learnt variance.

    Right for a treatment that is normal given covariates, up to a factor that `Balanced` finds.
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, features: Floats, step: float, sample_weight: Floats | None = None) -> Self:
        """Fit the mean and the variance of the treatment given covariates."""
        del step
        X, treatment = features[:, :-1], features[:, -1]
        self.mean_ = Remainder(self.learner).fit(X, treatment, sample_weight)
        remainder = treatment - self.mean_.predict(X)
        self.unit_ = deviation(remainder, sample_weight)
        self.variance_ = None
        if X.shape[1]:
            square = np.maximum((remainder / self.unit_) ** 2, 1e-6)
            self.variance_ = fit_weighted(_positive(self.learner), X, square, sample_weight)
        return self

    def functions(self, features: Floats) -> Floats:
        """Return the functions of each row, two columns."""
        X = features[:, :-1]
        u = (features[:, -1] - self.mean_.predict(X)) / self.unit_
        if self.variance_ is None:
            return u[:, None]
        scale = np.sqrt(np.maximum(self.variance_.predict(X), SMALLEST_SCALE**2))
        return np.column_stack([u, np.clip(u / scale, -FARTHEST, FARTHEST) / scale])


class ShiftCorrection(BaseEstimator):  # type: ignore[misc]
    r"""Classification of rows with the treatment moved against rows as they are.

    The odds that (a, x) is a moved row are :math:`\pi(a - e \mid x)/\pi(a \mid x)`, whatever the distribution of the treatment.
    The classifier sees the treatment's remainder beside the treatment; that remainder is a function of its own.
    """

    def __init__(self, learner: Any, most_odds: float = 20.0) -> None:
        self.learner = learner
        self.most_odds = most_odds

    def fit(self, features: Floats, step: float, sample_weight: Floats | None = None) -> Self:
        """Fit one classifier for a move up and one for a move down."""
        X, treatment = features[:, :-1], features[:, -1]
        self.terms_ = polynomial(X, sample_weight)
        self.start_ = ridge(self.terms_(X), treatment, sample_weight, main=X.shape[1])
        self.unit_ = deviation(self._remainder(features), sample_weight)
        label = np.repeat([0, 1], len(features))
        weight = None if sample_weight is None else np.tile(sample_weight, 2)
        self.models_ = [
            fit_weighted(clone(self.learner), self._seen(np.vstack([features, shifted(features, move)])), label, weight)
            for move in (step, -step)
        ]
        self.per_step_ = self.unit_ / (2 * step)
        return self

    def functions(self, features: Floats) -> Floats:
        """Return the functions of each row, two columns."""
        odds = []
        for model in self.models_:
            chance = model.predict_proba(self._seen(features))[:, 1]
            odds.append(np.minimum(chance / np.maximum(1 - chance, 1e-12), self.most_odds))
        return np.column_stack([self._remainder(features) / self.unit_, (odds[0] - odds[1]) * self.per_step_])

    def _remainder(self, features: Floats) -> Floats:
        return np.asarray(features[:, -1] - self.start_(self.terms_(features[:, :-1])))

    def _seen(self, features: Floats) -> Floats:
        return np.column_stack([features, self._remainder(features)])


class RieszCorrection(BaseEstimator):  # type: ignore[misc]
    """Powers of the remainder of the treatment's ridge regression, alone and times covariates: no learner."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, features: Floats, step: float, sample_weight: Floats | None = None) -> Self:
        """Fit the ridge regression."""
        del step
        X, treatment = features[:, :-1], features[:, -1]
        self.terms_ = polynomial(X, sample_weight)
        self.start_ = ridge(self.terms_(X), treatment, sample_weight, main=X.shape[1])
        self.unit_ = deviation(treatment - self.start_(self.terms_(X)), sample_weight)
        return self

    def functions(self, features: Floats) -> Floats:
        """Return the functions of each row."""
        X = features[:, :-1]
        u = (features[:, -1] - self.start_(self.terms_(X))) / self.unit_
        u = np.clip(u, -FARTHEST, FARTHEST)
        return np.column_stack([u, u**2, u**3, u[:, None] * self.terms_.near(X)])


class Balanced(BaseEstimator):  # type: ignore[misc]
    r"""Combine a correction's functions with a basis so that the whole balances.

    Minimises :math:`E_n[\zeta^2 - 2 m(\zeta)]` over :math:`\zeta = f'\alpha + b'\rho`, with :math:`m` the difference quotient, f
    the correction's functions on rows it was not learnt from, and b the treatment, its square, covariates, their squares, and the
    treatment times covariates. All but the first of f are shrunk, by a quarter of the number of functions to a row.
    """

    def __init__(self, correction: Any, step: float | None = None) -> None:
        self.correction = correction
        self.step = step

    def fit(self, features: Floats, treatment: Floats, sample_weight: Floats | None = None) -> Self:
        """Learn the functions without each part, then solve the normal equations."""
        del treatment  # it is the last feature
        self.step_ = step_for(features, self.step, sample_weight)
        self.scaling_ = scaling(features[:, -1:], sample_weight)
        self.terms_ = polynomial(features[:, :-1], sample_weight)
        own = list(parts_of(len(features)))
        self.corrections_ = [
            clone(self.correction).fit(
                features[~rows], self.step_, None if sample_weight is None else sample_weight[~rows]
            )
            for rows in own
        ]
        pairs = [self._with_quotient(model, features[rows]) for model, rows in zip(self.corrections_, own, strict=True)]
        order = np.argsort(np.concatenate([np.flatnonzero(rows) for rows in own]))
        functions, quotient = (np.concatenate(parts)[order] for parts in zip(*pairs, strict=True))
        basis = np.column_stack([functions, self._basis(features)])
        moved = [self._basis(shifted(features, by)) for by in (self.step_, -self.step_)]
        change = np.column_stack([quotient, (moved[0] - moved[1]) / (2 * self.step_)])
        self.weights_ = riesz_weights(basis, change, len(basis.T) / len(basis) / 4, sample_weight)
        return self

    def predict(self, features: Floats) -> Floats:
        """Return the correction of each row."""
        functions = np.mean([correction.functions(features) for correction in self.corrections_], axis=0)
        return np.asarray(np.column_stack([functions, self._basis(features)]) @ self.weights_)

    def _with_quotient(self, correction: Any, features: Floats) -> tuple[Floats, Floats]:
        """Return a correction's functions and their difference quotients."""
        at, up, down = (correction.functions(shifted(features, by)) for by in (0.0, self.step_, -self.step_))
        return at, (up - down) / (2 * self.step_)

    def _basis(self, features: Floats) -> Floats:
        X, a = features[:, :-1], self.scaling_(features[:, -1:])
        near = self.terms_.near(X)
        squares = near[:, self.terms_.curved] ** 2
        return np.hstack([np.ones_like(a), a, a**2, self.terms_.scaling(X), squares, a * near])


def riesz_weights(basis: Floats, change: Floats, penalty: float, weight: Floats | None = None) -> Floats:
    """Solve the normal equations of Riesz regression; all but the first function are shrunk, by a share of their mean square."""
    share = np.full(len(basis), 1 / len(basis)) if weight is None else weight / weight.sum()
    gram = (basis * share[:, None]).T @ basis
    size = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    shrunk = np.where(np.arange(len(gram)) > 0, max(penalty, 1e-9), 1e-9)
    solved = np.linalg.solve(gram / np.outer(size, size) + np.diag(shrunk), share @ change / size)
    return np.asarray(solved / size)


def _positive(learner: Any) -> Any:
    """A learner of a positive target: the same boosted trees with a gamma loss where possible."""
    copy = clone(learner)
    trees = bare(copy)
    if isinstance(trees, HistGradientBoostingRegressor) and trees.loss == "squared_error":
        return trees.set_params(loss="gamma")  # which has no unit, and no use for a target that is centred
    return copy
