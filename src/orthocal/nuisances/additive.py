"""A smooth additive fit, and a learner for what it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from orthocal.arrays import Floats
from orthocal.nuisances.wrapped import fit_weighted

PENALTIES = np.logspace(-2, 4, 13)
"""Of the ridge regression on standardised columns; which one is left to leave-one-out errors."""
FEWEST = 20
"""Rows below which a regression is a mean: there is nothing to choose a penalty by, nor a split of a tree."""


class Hinges(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Return each covariate, standardised, and what it exceeds each of a few of its quantiles by: broken lines to add up.

    A covariate that is missing is at its mean.

    Parameters
    ----------
    knots : int
        Of each covariate.
    most : int
        Of all covariates together, so that wide tables stay cheap.
    """

    def __init__(self, knots: int = 4, most: int = 100) -> None:
        self.knots = knots
        self.most = most

    def fit(self, X: Floats, y: Any = None) -> Self:
        """Learn centre and scale of each covariate, and where its lines break."""
        del y
        seen = [x[~np.isnan(x)] for x in X.T]
        self.centre_ = np.array([x.mean() if len(x) else 0.0 for x in seen])
        self.scale_ = np.array([(x.std() if len(x) else 0.0) or 1.0 for x in seen])
        inner = np.linspace(0, 1, min(self.knots, self.most // max(X.shape[1], 1)) + 2)[1:-1]
        self.knots_ = [_between(x, inner) for x in self._standard(X).T]
        return self

    def transform(self, X: Floats) -> Floats:
        """Return the columns."""
        standard = self._standard(X)
        broken = [np.maximum(x[:, None] - knots, 0) for x, knots in zip(standard.T, self.knots_, strict=True)]
        return np.asarray(np.hstack([standard, *broken]))

    def _standard(self, X: Floats) -> Floats:
        return np.asarray(np.nan_to_num((X - self.centre_) / self.scale_))


def _between(x: Floats, inner: Floats) -> Floats:
    """Return the different values at these quantiles strictly inside the range: none of a covariate of two values."""
    knots = np.unique(np.quantile(x, inner, method="inverted_cdf"))
    return np.asarray(knots[(knots > x.min()) & (knots < x.max())])


@dataclass(frozen=True)
class Stages:
    """Models whose predictions add up."""

    models: tuple[Any, ...]

    def predict(self, X: Floats) -> Floats:
        """Return the sum."""
        return np.asarray(sum(model.predict(X) for model in self.models), dtype=np.float64)


def fit_in_stages(learner: Any, X: Floats, y: Floats, weight: Floats | None) -> Stages:
    """Fit an additive ridge regression, then the learner to its residuals.

    Trees need many rows for what a line or a bend says in one column, and a line cannot see an interaction.
    """
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(y) < FEWEST or X.shape[1] == 0:
        return Stages((fit_weighted(DummyRegressor(), X, y, weight),))
    additive = fit_weighted(make_pipeline(Hinges(), StandardScaler(), RidgeCV(PENALTIES)), X, y, weight)
    return Stages((additive, fit_weighted(clone(learner), X, y - additive.predict(X), weight)))
