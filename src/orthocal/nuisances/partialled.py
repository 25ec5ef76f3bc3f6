"""Regressions that start from a polynomial and predict the rows they learn from without having seen them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import Booleans, Floats
from orthocal.nuisances.polynomials import polynomial, ridge
from orthocal.nuisances.wrapped import fit_weighted

PARTS = 4
"""Rows are predicted by models of the other parts."""


def parts_of(rows: int) -> Iterator[Booleans]:
    """Yield the rows of each part; neighbours are in different ones."""
    for part in range(PARTS):
        yield np.arange(rows) % PARTS == part


class Remainder(BaseEstimator):  # type: ignore[misc]
    """Ridge regression on a polynomial of the covariates, and the learner on what that leaves, in its standard deviations.

    Shallow trees find a line of eight covariates only with many rows, and what they miss of it confounds.
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit the ridge regression, then the learner."""
        self.terms_ = polynomial(X, sample_weight)
        terms = self.terms_(X)
        self.start_ = ridge(terms, y, sample_weight, main=X.shape[1])
        left = y - self.start_(terms)
        self.scale_ = deviation(left, sample_weight)
        self.model_ = None
        if X.shape[1] and self.scale_ > 1e-9 * deviation(y, sample_weight):  # otherwise nothing is left to learn
            self.model_ = fit_weighted(clone(self.learner), X, left / self.scale_, sample_weight)
        return self

    def predict(self, X: Floats) -> Floats:
        """Predict each row."""
        start = self.start_(self.terms_(X))
        return start if self.model_ is None else np.asarray(start + self.scale_ * self.model_.predict(X))


class InParts(BaseEstimator):  # type: ignore[misc]
    """An estimator fitted without each part of the rows: `unseen_` predicts a part by the others, `predict` is the mean."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit without each part."""
        self.unseen_, self.models_ = np.empty(len(y)), []
        for own in parts_of(len(y)):
            weight = None if sample_weight is None else sample_weight[~own]
            model = clone(self.estimator).fit(X[~own], y[~own], weight)
            self.unseen_[own] = model.predict(X[own])
            self.models_.append(model)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the mean prediction of all."""
        return np.asarray(np.mean([model.predict(X) for model in self.models_], axis=0))


def deviation(values: Floats, weight: Floats | None = None) -> float:
    """Return the standard deviation."""
    mean = np.average(values, weights=weight)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
