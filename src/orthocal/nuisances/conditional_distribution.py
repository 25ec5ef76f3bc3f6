"""Learning a conditional law: one classifier of {outcome <= level} on (covariates, level)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.folds import generator
from orthocal.nuisances.wrapped import fit_weighted, monotone_in_last


class ConditionalLaw(BaseEstimator):  # type: ignore[misc]
    """Learn P(Y <= level | x) at every level at once.

    Every row is shown at several levels, spread over all of them, with the answer to "is the outcome at most this?". Where the
    learner can be monotone in a feature it is made so in the level; in any case a law is made to rise.

    Parameters
    ----------
    learner : scikit-learn classifier
    levels : array
        Where the law is tabulated; the last is the largest outcome.
    copies : int
        At how many levels each row is shown.
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
        copies = min(self.copies, count)
        # Each row's levels are evenly spaced from a random start, so that every part of the law is seen.
        place = (rng.integers(0, count, n)[:, None] + np.arange(copies) * count // copies) % count
        level = self.levels[place].ravel()
        stacked = np.column_stack([np.repeat(X, copies, axis=0), level])
        answer = (np.repeat(y, copies) <= level).astype(np.int64)
        weight = None if sample_weight is None else np.repeat(sample_weight, copies)
        self.model_ = (
            None
            if answer.min() == answer.max()
            else fit_weighted(monotone_in_last(self.learner, stacked.shape[1]), stacked, answer, weight)
        )
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the law of each row at every level."""
        table = np.ones((len(X), len(self.levels)))
        if self.model_ is not None:
            for j, level in enumerate(self.levels):
                table[:, j] = self.model_.predict_proba(np.column_stack([X, np.full(len(X), level)]))[:, 1]
        table[:, -1] = 1.0
        return np.maximum.accumulate(table, axis=1)
