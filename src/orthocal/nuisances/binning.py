"""Covariates in bins: what histogram trees do anyway, done once and without the weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from orthocal.arrays import Floats


class Coarse(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace each covariate by the number of its bin among bins of equal count; missing values stay missing.

    With weights, scikit-learn 1.9 finds a weighted quantile for every bin and covariate of its histogram trees, which takes many
    times as long as the trees themselves. It has nothing to find in covariates of few values.

    Parameters
    ----------
    bins : int, default 255
        As many as histogram trees have.
    """

    def __init__(self, bins: int = 255) -> None:
        self.bins = bins

    def fit(self, X: Floats, y: Any = None) -> Self:
        """Learn the edges of the bins."""
        del y
        inner = np.linspace(0, 1, self.bins + 1)[1:-1]
        self.edges_ = [_edges(x[~np.isnan(x)], inner) for x in X.T]
        return self

    def transform(self, X: Floats) -> Floats:
        """Return the number of each covariate's bin."""
        coarse = np.column_stack([np.searchsorted(edges, x) for edges, x in zip(self.edges_, X.T, strict=True)])
        return np.where(np.isnan(X), np.nan, coarse.astype(np.float64))


def _edges(seen: Floats, inner: Floats) -> Floats:
    """Return the different quantiles of what was seen of a covariate; none of one that is missing everywhere.

    They are values that were seen: one computed between two would be rounded in another way in another unit.
    """
    return np.unique(np.quantile(seen, inner, method="inverted_cdf")) if len(seen) else np.empty(0)
