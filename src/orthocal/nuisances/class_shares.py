"""Chances of several arms at once, which add up to one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier

from orthocal.arrays import Floats, group_sums
from orthocal.errors import OrthocalError
from orthocal.nuisances.wrapped import fit_weighted

RARE = 20
"""With fewer members of a class than this, none can be set aside to stop early by."""


class ClassShares(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of several classes that predicts the chance of each: one column a class, rows add up to 1.

    Parameters
    ----------
    learner : scikit-learn classifier
    classes : int
        Targets are 0, 1, ..., classes - 1; a class that was not seen has chance 0.
    """

    def __init__(self, learner: Any, classes: int) -> None:
        self.learner = learner
        self.classes = classes

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Learn the classifier; without covariates, the share of each class."""
        codes = y.astype(np.int64)
        if X.shape[1] == 0:
            held = group_sums(codes, np.ones(len(codes)) if sample_weight is None else sample_weight, self.classes)
            self.shares_: Floats | None = held / held.sum()
            return self
        self.shares_ = None
        if not is_classifier(self.learner):
            raise OrthocalError(
                f"The propensity of several arms must be learnt by a classifier; {type(self.learner).__name__} is none. "
                "Pass one in `learners`."
            )
        self.model_ = fit_weighted(_for_rare_classes(clone(self.learner), codes), X, codes, sample_weight)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the chance of each class."""
        found = np.zeros((len(X), self.classes))
        if self.shares_ is not None:
            found[:] = self.shares_
        else:
            found[:, self.model_.classes_] = self.model_.predict_proba(X)
        return found


def _for_rare_classes(learner: Any, codes: Any) -> Any:
    """Return the learner, not stopping early where a class is too small to set some of it aside."""
    counts = np.bincount(codes)
    if counts[counts > 0].min() >= RARE:
        return learner
    return learner.set_params(**{name: False for name in learner.get_params() if name.endswith("early_stopping")})


def kept_apart(chances: Floats, clip: float) -> Floats:
    r"""Keep every chance at or above `clip` with rows still adding up to 1.

    The floor is taken off all chances, and what is left of them is stretched to fill the rest: of two chances this is what
    keeping one inside [clip, 1 - clip] does. Rows that need no floor stay as they are, to rounding.
    """
    above = np.maximum(chances - clip, 0.0)
    kept = clip + above * ((1 - chances.shape[1] * clip) / above.sum(axis=1, keepdims=True))
    inside = (chances >= clip).all(axis=1, keepdims=True)
    return np.where(inside, chances, kept)
