"""Learning a conditional distribution, or a conditional quantile and the mean beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.folds import generator
from orthocal.nuisances.polynomials import fit_in_stages
from orthocal.nuisances.tree_tables import probability_table
from orthocal.nuisances.wrapped import fit_weighted, monotone_in_last


class ConditionalDistribution(BaseEstimator):  # type: ignore[misc]
    """Learn P(Y <= level | x) at every level at once.

    Every row is shown at several levels, spread over all of them, with the answer to "is the outcome at most this?". Where the
    learner can be monotone in a feature it is made so in the level; in any case a distribution is made to rise.

    A learner that stops early is stopped by rows none of whose answers it was taught, if its ``fit`` takes such rows (``X_val``,
    as in scikit-learn's histogram trees from 1.7). The answers of one row at its levels say much about each other: stopped by
    some of them, trees do not stop before they have learnt the rows by heart.

    Parameters
    ----------
    learner : scikit-learn classifier
    levels : array
        Where the distribution is tabulated; the last is the largest outcome.
    copies : int
        At how many levels each row is shown; at fewer, but not below `FEWEST_COPIES`, where that makes more than `MOST_STACKED`.
    random_state : int, optional
    """

    def __init__(self, learner: Any, levels: Floats, copies: int = 6, random_state: Any = None) -> None:
        self.learner = learner
        self.levels = levels
        self.copies = copies
        self.random_state = random_state

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Stack the rows at their levels and fit the classifier."""
        rng, n, count = generator(self.random_state), len(y), len(self.levels)
        copies = min(self.copies, max(FEWEST_COPIES, MOST_STACKED // n), count)
        # Each row's levels are evenly spaced from a random start, so that every part of the distribution is seen.
        place = (rng.integers(0, count, n)[:, None] + np.arange(copies) * count // copies) % count
        level = self.levels[place]
        learner = monotone_in_last(self.learner, X.shape[1] + 1)
        aside = rows_to_stop_by(learner, n, rng)
        spared = _has_both_answers(y[~aside], level[~aside])  # of a handful of rows none may be
        kept = ~aside if spared else np.ones(n, dtype=bool)
        taught, held_out = (
            stacked(X[own], y[own], level[own], None if sample_weight is None else sample_weight[own])
            for own in (kept, aside)
        )
        validation = dict(zip(VALIDATION, held_out, strict=True)) if aside.any() else {}
        self.model_ = fit_weighted(learner, *taught, validation) if _has_both_answers(y, level) else None
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the distribution of each row at every level."""
        table = np.ones((len(X), len(self.levels)))
        if self.model_ is not None:
            table = probability_table(self.model_, X, self.levels)
        table[:, -1] = 1.0
        return np.maximum.accumulate(table, axis=1)


FEWEST_COPIES, MOST_STACKED = 3, 160_000
"""With rows in plenty, showing them at more levels costs time and adds little: the answers of one row are much alike."""
VALIDATION = ("X_val", "y_val", "sample_weight_val")
"""How ``fit`` of scikit-learn's histogram trees calls the rows that they are stopped by."""


def stacked(X: Floats, y: Floats, level: Floats, weight: Floats | None) -> tuple[Floats, Integers, Floats | None]:
    """Return every row at each of its levels, whether its outcome is at most the level, and its weight."""
    copies = level.shape[1]
    features = np.column_stack([np.repeat(X, copies, axis=0), level.ravel()])
    answer = (y[:, None] <= level).astype(np.int64).ravel()
    return features, answer, None if weight is None else np.repeat(weight, copies)


def rows_to_stop_by(learner: Any, rows: int, rng: np.random.Generator) -> Booleans:
    """Return which rows are set aside for a learner to stop early by: none where it does not, or does not take them."""
    settings, aside = learner.get_params(), np.zeros(rows, dtype=bool)
    share = settings.get("validation_fraction")
    if share and settings.get("early_stopping") and has_fit_parameter(learner, "X_val"):
        count = int(np.ceil(share * rows)) if share < 1 else int(share)
        aside[rng.permutation(rows)[: min(count, rows // 2)]] = True
    return aside


def _has_both_answers(y: Floats, level: Floats) -> bool:
    """Return whether some outcome is at most a level of its row, and some is not."""
    answer = y[:, None] <= level
    return bool(answer.any() and not answer.all())


LEAST_SCALE = 0.15
"""Least conditional scale, as a share of the average one."""
TAIL_ROWS = 10
"""Expected rows beyond the quantile in a leaf of the trees that learn the shape."""


class TailModel(BaseEstimator):  # type: ignore[misc]
    r"""Learn a quantile far from the middle mostly from all rows: location, scale, and the quantile of standardised residuals.

    It is done twice, :math:`q_j(x) = m_j(x) + s_j(x) (t_j(x) + c)` on either half j of the rows, so that there are two quantiles
    whose errors are independent: their mean is the one to use, and how far they are apart says what their errors do to a mean
    beyond the quantile (`orthocal.effects.cvar.tail_value`). A half therefore uses nothing of the other but :math:`c`, one
    number, which makes q have its level on rows that it has not seen.

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
        """Fit either half, and what their quantiles leave on the other."""
        self.centre_, self.unit_ = float(np.median(y)), float(y.std()) or 1.0
        y = (y - self.centre_) / self.unit_
        self.range_ = float(y.min()), float(y.max())
        rng = generator(self.random_state)
        half, seed = rng.permutation(len(y)) % 2, int(rng.integers(2**31))
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        self.halves_ = [
            fit_half(self.learner, self.level, X[one], y[one], None if sample_weight is None else weights[one], seed)
            for one in (np.flatnonzero(half == j) for j in np.unique(half))
        ]
        self._learn_residuals(_standardised(self.halves_[::-1], X, y, half), weights)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the quantile of each row, the mean of its corrected tail value, and how far its two quantiles are apart."""
        base, scale = (np.column_stack(part) for part in zip(*(one.parts(X) for one in self.halves_), strict=True))
        both = np.clip(base + scale * self.shift_, *self.range_)
        quantile, apart, spread = both.mean(axis=1), both[:, 0] - both[:, -1], scale.mean(axis=1)
        below = self._below((both - base.mean(axis=1)[:, None]) / spread[:, None])
        mean = quantile + spread * self.excess_ - (below[:, 0] - below[:, -1]) * apart / (8 * (1 - self.level))
        columns = np.column_stack([quantile, mean, apart])
        return np.asarray(columns * self.unit_ + np.array([self.centre_, self.centre_, 0.0]))

    def _learn_residuals(self, residual: Floats, weight: Floats) -> None:
        """Keep the distribution of residuals from the other half's quantile, its own quantile, and the mean excess over that."""
        order = np.argsort(residual, kind="stable")
        self.residuals_, self.shares_ = residual[order], np.append(0.0, np.cumsum(weight[order]) / weight.sum())
        reached = np.searchsorted(self.shares_[1:-1], self.level)  # the last residual where no other is enough
        self.shift_ = float(self.residuals_[reached])
        self.excess_ = float(np.average(np.maximum(residual - self.shift_, 0), weights=weight)) / (1 - self.level)

    def _below(self, residual: Floats) -> Floats:
        """Share of the residuals at most this."""
        return np.asarray(self.shares_[np.searchsorted(self.residuals_, residual, side="right")])


@dataclass(frozen=True)
class Half:
    """Location, scale and shape learnt on half of the rows; no scale is smaller than `least`."""

    location: Any
    scale: Any
    shape: Any
    least: float

    def parts(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the quantile of each row, up to a shift in scales, and its scale."""
        scale = np.maximum(self.scale.predict(X), self.least)
        return self.location.predict(X) + scale * self.shape.predict(X), scale


def fit_half(learner: Any, level: float, X: Floats, y: Floats, weight: Floats | None, seed: int) -> Half:
    """Learn location, scale from the sizes of residuals, and shape: the quantile of residuals over scale."""
    location = fit_in_stages(learner, X, y, weight)
    residual = y - location.predict(X)
    scale = fit_in_stages(learner, X, np.abs(residual), weight)
    least = LEAST_SCALE * float(np.average(np.abs(residual), weights=weight)) or 1.0
    shape = _quantile_learner(level, len(y) if X.shape[1] else 0, seed)
    standard = residual / np.maximum(scale.predict(X), least)
    return Half(location, scale, fit_weighted(shape, X, standard, weight), least)


def _quantile_learner(level: float, rows: int, seed: int) -> Any:
    """Return trees whose leaves have rows beyond the quantile; where there are too few for two of them, a constant."""
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor

    leaf = int(np.ceil(TAIL_ROWS / min(level, 1 - level)))
    if rows < 2 * leaf:
        return DummyRegressor(strategy="quantile", quantile=level)
    return HistGradientBoostingRegressor(
        loss="quantile",
        quantile=level,
        learning_rate=0.05,
        max_iter=300,
        max_depth=3,
        min_samples_leaf=leaf,
        early_stopping=True,
        validation_fraction=0.15,
        random_state=seed,
    )


def _standardised(models: list[Half], X: Floats, y: Floats, half: Integers) -> Floats:
    """Residuals of the rows of half j from the quantile of model j, in its scales."""
    answer = np.empty(len(X))
    for j, model in enumerate(models):
        own = half == j
        base, scale = model.parts(X[own])
        answer[own] = (y[own] - base) / scale
    return answer
