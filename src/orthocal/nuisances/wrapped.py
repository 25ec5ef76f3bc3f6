"""What estimators that contain a learner share; covariates in bins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.utils.validation import has_fit_parameter

from orthocal.arrays import Floats


def fit_weighted(
    learner: Any, X: Floats, y: Any, weight: Floats | None, validation: Mapping[str, Any] | None = None
) -> Any:
    """Return the learner fitted, with weights where it takes them, and with rows to stop early by where some were set aside.

    Metadata routing ends at the estimator that holds the learner: the setting does not reach other processes, and an answer
    must not depend on how many there are.
    """
    with config_context(enable_metadata_routing=False):
        return learner.fit(X, y, **_weight_arguments(learner, weight), **(validation or {}))


def _weight_arguments(learner: Any, weight: Floats | None) -> dict[str, Floats]:
    """Weights under the name the learner takes them, or nothing where it takes none."""
    if weight is None:
        return {}
    if has_fit_parameter(learner, "sample_weight"):
        return {"sample_weight": weight}
    steps = getattr(learner, "steps", None)
    if steps and has_fit_parameter(steps[-1][1], "sample_weight"):
        return {f"{steps[-1][0]}__sample_weight": weight}
    return {}


def monotone_in_last(learner: Any, columns: int) -> Any:
    """Return a copy that rises in its last feature, where the learner knows how to."""
    copy = clone(learner)
    if "monotonic_cst" in copy.get_params() and copy.get_params()["monotonic_cst"] is None:
        copy.set_params(monotonic_cst=[0] * (columns - 1) + [1])
    return copy


class Standardised(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that sees its target in standard units, so that what it learns does not depend on the unit.

    Boosted trees stop when their loss falls by less than a fixed number, and keep derivatives in single precision: with an
    outcome in millions or millionths they would stop at once, never, or count in coarse steps.

    Parameters
    ----------
    learner : scikit-learn regressor
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Learn mean and deviation of the target, then the rest."""
        standard = self.in_units_of(y).standard(y)
        self.model_ = fit_weighted(clone(self.learner), X, standard, sample_weight)
        return self

    def in_units_of(self, y: Floats) -> Self:
        """Learn mean and deviation of a target."""
        self.centre_, spread = float(np.mean(y)), float(np.std(y))
        self.scale_ = spread if spread > 0 else 1.0
        return self

    def standard(self, y: Any) -> Any:
        """Return a target in standard units."""
        return (y - self.centre_) / self.scale_

    def predict(self, X: Floats) -> Floats:
        """Predict, in the target's own unit."""
        return np.asarray(self.centre_ + self.scale_ * self.model_.predict(X))


class Stagewise(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Two regressors in turn: the second learns the residuals of the first, and the prediction is their sum.

    A lasso before boosted trees: trees need many splits to follow a line, and of few rows they get few. The sum stays within
    the range of the target that was learnt from, as trees alone would: far from the data a line has no bounds.

    Parameters
    ----------
    first, second : scikit-learn regressor
    """

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Learn the first, then the second."""
        self.first_ = fit_weighted(clone(self.first), X, y, sample_weight)
        self.second_ = fit_weighted(clone(self.second), X, y - self.first_.predict(X), sample_weight)
        self.low_, self.high_ = float(np.min(y)), float(np.max(y))
        return self

    def predict(self, X: Floats) -> Floats:
        """Add what both predict."""
        return np.asarray(np.clip(self.first_.predict(X) + self.second_.predict(X), self.low_, self.high_))


def bare(learner: Any) -> Any:
    """Return the learner inside one that standardises its target; any other as it is."""
    return learner.learner if isinstance(learner, Standardised) else learner


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
