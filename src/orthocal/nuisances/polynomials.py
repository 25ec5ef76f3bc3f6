"""Polynomial starts: ridge regression on curves and products, which trees alone take many rows to find, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from orthocal.arrays import Booleans, Floats
from orthocal.nuisances.wrapped import fit_weighted

FARTHEST = 3.0
"""Curves and products take covariates no farther from their mean than this many standard deviations: tails are for lines."""
MOST_TERMS, ROWS_PER_TERM = 300, 4
"""Curves, or products, join where they are at most so many, with so many rows to each."""
KNOTS = (-1.0, 0.0, 1.0)
"""Of the curves, in standard deviations from the mean."""
MAIN = 5.0
"""Main columns count as so much larger, and so are penalised by the square of it less."""
PENALTIES = np.logspace(-5, 1, 13)
"""Of which generalised cross-validation chooses, as shares of the mean eigenvalue."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """Mean and standard deviation of each column; missing values take the mean."""

    centre: Floats
    scale: Floats

    def __call__(self, columns: Floats) -> Floats:
        """Return the columns in standard deviations from their means."""
        return np.nan_to_num((columns - self.centre) / self.scale)


def scaling(columns: Floats, weight: Floats | None = None) -> Scaling:
    """Learn the scaling of columns; one that does not vary keeps its unit."""
    seen = ~np.isnan(columns)
    share = seen * (1.0 if weight is None else weight[:, None])
    total = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    centre = (np.where(seen, columns, 0.0) * share).sum(axis=0) / total
    gap = np.where(seen, columns - centre, 0.0)
    deviation = np.sqrt((gap**2 * share).sum(axis=0) / total)
    varies = deviation > 1e-12 * np.abs(centre)
    return Scaling(centre, np.where(varies & (deviation > 0), deviation, 1.0))


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Covariates in standard deviations, and curves in them and products of two where the rows allow them.

    A curve is a square and a broken line.
    """

    scaling: Scaling
    curved: Booleans
    has_products: bool

    def __call__(self, X: Floats) -> Floats:
        """Return the terms of each row."""
        line = self.scaling(X)
        near = np.clip(line, -FARTHEST, FARTHEST)
        curved = near[:, self.curved]
        parts = [line, curved**2, *(np.maximum(curved - knot, 0.0) for knot in KNOTS)]
        if self.has_products:
            first, second = np.triu_indices(X.shape[1], 1)
            parts.append(near[:, first] * near[:, second])
        return np.hstack(parts)

    def near(self, X: Floats) -> Floats:
        """Return the covariates in standard deviations, at most `FARTHEST` of them."""
        return np.clip(self.scaling(X), -FARTHEST, FARTHEST)


def polynomial(X: Floats, weight: Floats | None = None) -> Polynomial:
    """Learn which terms to take and how to scale them; an indicator has no curve."""
    rows, columns = X.shape
    most = min(MOST_TERMS, rows // ROWS_PER_TERM)
    few = columns * (1 + len(KNOTS)) <= most
    curved = np.array([few and len(np.unique(x[~np.isnan(x)])) > 2 for x in X.T], dtype=bool)
    return Polynomial(scaling(X, weight), curved, 0 < columns * (columns - 1) // 2 <= most)


@dataclass(frozen=True, eq=False)
class RidgeLine:
    """A fitted linear function of columns."""

    scaling: Scaling
    weights: Floats
    intercept: float

    def __call__(self, columns: Floats) -> Floats:
        """Predict each row."""
        return np.asarray(self.scaling(columns) @ self.weights + self.intercept)


def ridge(columns: Floats, y: Floats, weight: Floats | None = None, *, main: int = 0) -> RidgeLine:
    """Ridge regression with the penalty that generalised cross-validation chooses; free of the units of both sides.

    The first `main` columns are hardly shrunk: a line that is shrunk leaves confounding behind.
    """
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    scale, mean = scaling(columns, weight), float(share @ y)
    scale = Scaling(scale.centre, scale.scale / np.where(np.arange(columns.shape[1]) < main, MAIN, 1.0))
    Z, gap = scale(columns), y - mean
    if not columns.shape[1]:
        return RidgeLine(scale, np.empty(0), mean)
    values, vectors = np.linalg.eigh((Z * share[:, None]).T @ Z)
    values, d = np.maximum(values, 0.0), vectors.T @ (Z.T @ (share * gap))
    penalty = (PENALTIES * values.mean())[:, None] + np.finfo(float).tiny
    coefficients = d / (values + penalty)
    left = share @ gap**2 - 2 * coefficients @ d + coefficients**2 @ values
    freedom = 1 - (1 + (values / (values + penalty)).sum(axis=1)) / len(y)
    best = int(np.argmin(left / np.maximum(freedom, 1e-3) ** 2))
    return RidgeLine(scale, vectors @ coefficients[best], mean)


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


ADDITIVE_PENALTIES = np.logspace(-2, 4, 13)
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
    additive = fit_weighted(make_pipeline(Hinges(), StandardScaler(), RidgeCV(ADDITIVE_PENALTIES)), X, y, weight)
    return Stages((additive, fit_weighted(clone(learner), X, y - additive.predict(X), weight)))
