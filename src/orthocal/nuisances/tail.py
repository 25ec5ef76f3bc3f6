"""Learning a conditional quantile and the mean beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.folds import generator
from orthocal.nuisances.additive import fit_in_stages

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers

LEAST_SCALE = 0.15
"""Least conditional scale, as a share of the average one."""


class TailModel(BaseEstimator):  # type: ignore[misc]
    r"""Learn a quantile far from the middle from all rows: location, scale and how standardised residuals are distributed.

    It is done twice, :math:`q_j(x) = m_j(x) + s_j(x) z_Q` with location and scale of either half j of the rows, so that there are
    two quantiles whose errors are independent: their mean is the one to use, and how far they are apart says what their errors
    do to a mean beyond the quantile (`orthocal.effects.cvar.tail_value`). The scale is learnt from residuals by the same half's
    location, for a residual by the other's would make the errors dependent. :math:`z_Q`, one number, is the quantile of
    residuals standardised by the other half's location and scale, so that q has its level on rows it has not seen.

    Parameters
    ----------
    learner : scikit-learn regressor
        Of location and scale, in units of the outcome's standard deviation, beyond what an additive fit says.
    level : float
        Q.
    random_state : int, optional
        Of the halves.
    """

    def __init__(self, learner: Any, level: float, random_state: Any = None) -> None:
        self.learner = learner
        self.level = level
        self.random_state = random_state

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit location and scale on either half, and the distribution of the residuals on both."""
        self.centre_, self.unit_ = float(np.median(y)), float(y.std()) or 1.0
        y = (y - self.centre_) / self.unit_
        self.range_ = float(y.min()), float(y.max())
        half = generator(self.random_state).permutation(len(y)) % 2
        self.locations_ = self._on_halves(X, y, half, sample_weight)
        size = np.abs(y - _by_half(self.locations_, X, half))
        self.scales_ = self._on_halves(X, size, half, sample_weight)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.floor_ = LEAST_SCALE * float(np.average(size, weights=weight)) or 1.0
        scale = np.maximum(_by_half(self.scales_[::-1], X, half), self.floor_)
        self._learn_residuals((y - _by_half(self.locations_[::-1], X, half)) / scale, weight)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the quantile of each row, the mean of its corrected tail value, and how far its two quantiles are apart."""
        location = np.column_stack([model.predict(X) for model in self.locations_])
        scale = np.maximum(np.column_stack([model.predict(X) for model in self.scales_]), self.floor_)
        both = np.clip(location + scale * self.quantile_, *self.range_)
        quantile, apart, spread = both.mean(axis=1), both[:, 0] - both[:, -1], scale.mean(axis=1)
        below = self._below((both - location.mean(axis=1)[:, None]) / spread[:, None])
        mean = quantile + spread * self.excess_ - (below[:, 0] - below[:, -1]) * apart / (8 * (1 - self.level))
        columns = np.column_stack([quantile, mean, apart])
        return np.asarray(columns * self.unit_ + np.array([self.centre_, self.centre_, 0.0]))

    def _on_halves(self, X: Floats, target: Floats, half: Integers, weight: Floats | None) -> list[Any]:
        rows = [np.flatnonzero(half == j) for j in np.unique(half)]
        return [
            fit_in_stages(self.learner, X[one], target[one], None if weight is None else weight[one]) for one in rows
        ]

    def _learn_residuals(self, standard: Floats, weight: Floats) -> None:
        """Keep the distribution of the standardised residuals, its quantile, and the mean excess over that."""
        order = np.argsort(standard, kind="stable")
        self.residuals_, self.shares_ = standard[order], np.append(0.0, np.cumsum(weight[order]) / weight.sum())
        reached = np.searchsorted(self.shares_[1:-1], self.level)  # the last residual where no other is enough
        self.quantile_ = float(self.residuals_[reached])
        self.excess_ = float(np.average(np.maximum(standard - self.quantile_, 0), weights=weight)) / (1 - self.level)

    def _below(self, z: Floats) -> Floats:
        """Share of the standardised residuals at most z."""
        return np.asarray(self.shares_[np.searchsorted(self.residuals_, z, side="right")])


def _by_half(models: list[Any], X: Floats, half: Integers) -> Floats:
    """Predict the rows of half j by model j."""
    answer = np.empty(len(X))
    for j, model in enumerate(models):
        answer[half == j] = model.predict(X[half == j])
    return answer
