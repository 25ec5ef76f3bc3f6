"""Sizes of boosted trees: how overfitted a base model is decides how much calibration has to mend."""

from __future__ import annotations

from typing import Any

from orthocal.errors import require_one_of
from orthocal.nuisances.learners import SETTINGS

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
    sizes = tuple(dict.fromkeys(name.strip() for name in text.split(","))) if text else default
    for size in sizes:
        require_one_of(size, SIZES, "learners")
    return sizes
