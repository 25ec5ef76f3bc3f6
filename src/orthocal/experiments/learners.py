"""Sizes of boosted trees: how overfitted a base model is decides how much calibration has to mend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.errors import require_one_of
from orthocal.nuisances.learners import SETTINGS

if TYPE_CHECKING:
    from orthocal.arrays import Floats

SIZES: dict[str, dict[str, Any]] = {
    "large": {"early_stopping": False},
    "shallow": {"early_stopping": False, "max_depth": 3},
    "default": SETTINGS,
}
WORDS = {
    "large": "100 trees of 31 leaves, as libraries have by default",
    "shallow": "100 trees of depth 3",
    "default": "trees of depth 3 that stop early, orthocal's default",
}


def regressor(size: str, **settings: Any) -> Any:
    """Return boosted regression trees of a size."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(**{**SIZES[size], **settings})


def classifier(size: str, **settings: Any) -> Any:
    """Return boosted classification trees of a size."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(**{**SIZES[size], **settings})


def chosen_sizes(text: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sizes named in a text, by comma."""
    sizes = tuple(dict.fromkeys(text.split(","))) if text else default
    for size in sizes:
        require_one_of(size, SIZES, "learners")
    return sizes


def coarse(train: Floats, *others: Floats, bins: int) -> list[Floats]:
    """Return covariates as the number of their bin among `bins` of equal count in `train`.

    Trees bin their covariates anyway; done beforehand, weighted fits are spared a weighted quantile per bin and covariate,
    which takes scikit-learn 1.9 twenty times as long as the trees.
    """
    edges = np.quantile(train, np.linspace(0, 1, bins + 1)[1:-1], axis=0)
    return [
        np.column_stack([np.searchsorted(edges[:, j], X[:, j]) for j in range(X.shape[1])]).astype(np.float64)
        for X in (train, *others)
    ]
