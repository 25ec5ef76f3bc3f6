"""Schemes: which rows give the nuisances and which the map (Algorithms 1-4 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from orthocal.arrays import Floats
from orthocal.calibration.refinement import fit_calibrator
from orthocal.calibration.three_way import learn_three_way
from orthocal.calibrators import Calibrator
from orthocal.effects import Effect
from orthocal.nuisances.recipe import Recipe
from orthocal.observations import Observations
from orthocal.orthogonal import Orthogonal, learn_cross, learn_split


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a scheme is told: the effect, the method and how to divide the rows.

    Parameters
    ----------
    effect : Effect
    method : str or calibrator
    folds : int or array
    split : float
    refinements : int
    recipe : Recipe
    """

    effect: Effect
    method: str | Calibrator
    folds: int | Any
    split: float
    refinements: int
    recipe: Recipe


def _cross(plan: Plan, rows: Observations, X: Any, given: Mapping[str, Any] | None) -> tuple[Orthogonal, Calibrator]:
    """Nuisances cross-fitted, one map on all rows (Algorithms 2 and 4)."""
    return _with_calibrator(plan, learn_cross(plan.effect, rows, X, given, plan.folds, plan.recipe))


def _split(plan: Plan, rows: Observations, X: Any, given: Mapping[str, Any] | None) -> tuple[Orthogonal, Calibrator]:
    """Nuisances from a share of the rows, map on the rest (Algorithms 1 and 3)."""
    return _with_calibrator(plan, learn_split(plan.effect, rows, X, given, plan.split, plan.recipe))


def _three_way(
    plan: Plan, rows: Observations, X: Any, given: Mapping[str, Any] | None
) -> tuple[Orthogonal, Calibrator]:
    """Bins, nuisances and values from a third of the rows each (Algorithm 6)."""
    return learn_three_way(plan.effect, rows, X, given, plan.method, plan.recipe, plan.refinements)


def _with_calibrator(plan: Plan, learnt: Orthogonal) -> tuple[Orthogonal, Calibrator]:
    prediction = cast("Floats", learnt.prediction)  # fit asked for it
    return learnt, fit_calibrator(plan.method, prediction, learnt.loss, plan.refinements, lambda: learnt.map_fold)


SCHEMES: dict[str, Callable[..., tuple[Orthogonal, Calibrator]]] = {
    "cross": _cross,
    "split": _split,
    "three-way": _three_way,
}
"""Each learns from (plan, observations, X, nuisances as given)."""
