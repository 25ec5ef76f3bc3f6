"""The learners used where the user chooses none, and how the user's choice is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orthocal.nuisances.nuisance import Nuisance

SETTINGS: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_iter": 300,
    "max_depth": 3,
    "min_samples_leaf": 20,
    "early_stopping": True,
    "validation_fraction": 0.15,
    "n_iter_no_change": 10,
}
"""Shallow boosted trees that stop early; chosen by the table in benchmarks/learners.md."""


def default_learner(nuisance: Nuisance) -> Any:
    """Return shallow gradient-boosted trees with early stopping: a classifier for a probability, else a regressor."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if nuisance.is_probability else HistGradientBoostingRegressor
    return kind(**SETTINGS)


def choose_learners(nuisances: Sequence[Nuisance], learners: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the learner of each nuisance: chosen by exact name, else by role, else the default."""
    chosen = dict(learners or {})
    names = {nuisance.name: nuisance.role for nuisance in nuisances}
    unknown = [key for key in chosen if key not in names and key not in names.values()]
    if unknown:
        raise OrthocalError(
            f"`learners` has no use for {unknown[0]!r}. Its keys may be the nuisances {', '.join(names)} "
            f"or the roles {', '.join(sorted(set(names.values())))}."
        )
    return {n.name: chosen.get(n.name, chosen.get(n.role)) or default_learner(n) for n in nuisances}
