"""Schemes: which rows give the nuisances and which the map (Algorithms 1-4 and 6); maps refined at the level they predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.calibrators import Calibrator, Histogram, Linear, new_calibrator
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.effects import Effect
from orthocal.errors import OrthocalError
from orthocal.folds import SPLIT, THIRDS, split_rows
from orthocal.formats import listed
from orthocal.losses import Loss
from orthocal.maps import StepMap
from orthocal.nuisances.cross_fit import check_given
from orthocal.nuisances.learners import Recipe
from orthocal.observations import Observations
from orthocal.orthogonal import Orthogonal, learn_cross, learn_given_split, learn_split
from orthocal.solvers import constants

if TYPE_CHECKING:
    Folds: TypeAlias = Integers | Callable[[], Integers] | None


def fit_calibrator(
    method: str | Calibrator, prediction: Floats, loss: Loss, refinements: int = 2, fold: Folds = None
) -> Calibrator:
    """Return the calibrator fitted, refined where the loss depends on the level.

    Parameters
    ----------
    method : str or calibrator
        One that chooses among methods chooses once, at the level after one linear fit, and refines its choice.
    refinements : int
        0 fits once, at the level of the prediction (Algorithms 3 and 4 as printed).
    fold : array, or function that gives it, optional
        A row's level comes from a map fitted without its fold; without folds, from one map of all rows. A function is asked
        only where the loss depends on the level, so that folds nobody uses need not be drawn.
    """
    calibrator = new_calibrator(method)
    if loss.at(prediction) is loss or refinements == 0:
        return calibrator.fit(prediction, loss)
    fold = fold() if callable(fold) else fold
    choose = getattr(calibrator, "choose", None)
    frozen = calibrator
    if choose is not None:
        frozen = choose(prediction, loss.at(_levels(Linear(), prediction, loss, fold)))
    for _ in range(refinements):
        loss = loss.at(_levels(frozen, prediction, loss, fold))
    fitted = new_calibrator(frozen).fit(prediction, loss)
    if choose is None:
        return fitted
    return cast("Calibrator", calibrator.adopt(fitted, prediction, loss))  # type: ignore[attr-defined]


def _levels(method: Calibrator, prediction: Floats, loss: Loss, fold: Integers | None) -> Floats:
    """Calibrated prediction of each row, by a map fitted without its fold."""
    if fold is None or len(np.unique(fold)) == 1:
        return new_calibrator(method).fit(prediction, loss).predict(prediction)
    level = np.empty(len(prediction))
    for k in np.unique(fold):
        others, own = np.flatnonzero(fold != k), fold == k
        level[own] = new_calibrator(method).fit(prediction[others], loss[others]).predict(prediction[own])
    return level


def out_of_fold(method: str | Calibrator, prediction: Floats, loss: Loss, refinements: int, fold: Integers) -> Floats:
    """Return each row's calibrated prediction by a map fitted without its fold."""
    honest = np.empty(len(prediction))
    for k in np.unique(fold):
        others = np.flatnonzero(fold != k)
        own = fit_calibrator(method, prediction[others], loss[others], refinements, fold[others])
        honest[fold == k] = own.predict(prediction[fold == k])
    return honest


def learn_three_way(
    effect: Effect,
    observations: Observations,
    X: Any,
    given: Mapping[str, Any] | None,
    method: str | Calibrator,
    recipe: Recipe,
    refinements: int,
) -> tuple[Orthogonal, Calibrator]:
    """Bins from one third of the rows, nuisances from another, values from the last."""
    calibrator = new_calibrator(method)
    if not isinstance(calibrator, Histogram):
        raise OrthocalError(
            f"scheme='three-way' must have method='histogram'; it is {type(calibrator).__name__}. Use another scheme for it."
        )
    recipe = recipe.seeded
    strata = effect.strata(observations)
    first = split_rows(1 / 3, strata, observations, recipe.random_state, THIRDS)
    rest = np.flatnonzero(first == 1)
    part = split_rows(0.5, strata[rest], observations[rest], recipe.random_state, SPLIT)
    _require_thirds(int((first == 0).sum()), int((part == 0).sum()), int((part == 1).sum()))
    prediction = cast("Floats", observations.prediction)  # fit asks for it before it comes here
    edges = uniform_mass_edges(prediction[first == 0], observations.weight[first == 0], calibrator.bins)
    learnt = learn_given_split(effect, observations, X, given, rest, part, recipe)
    loss, bins = learnt.loss, np.searchsorted(edges, prediction[learnt.rows], side="left")
    if refinements and loss.at(prediction[learnt.rows]) is not loss:
        known = check_given(effect.nuisances(observations), given, X, len(observations))
        first = rest[part == 0]
        known = {name: value[first] for name, value in known.items()}
        loss = loss.at(_bin_levels(effect, observations[first], known, edges, recipe)[bins])
    edges, bins = _with_mass(edges, bins, loss)
    calibrator.map_ = StepMap(edges, constants(loss, bins, len(edges) + 1))
    return Orthogonal(
        loss=loss, nuisances=learnt.nuisances, prediction=prediction[learnt.rows], fold=learnt.fold, rows=learnt.rows
    ), calibrator


def _require_thirds(*rows: int) -> None:
    """There are rows for bins, nuisances and values."""
    if min(rows) == 0:
        raise OrthocalError(
            f"scheme='three-way' must have rows, or whole clusters, for three parts; they have {listed(rows)} rows. Use more "
            "data, or another scheme."
        )


def _bin_levels(effect: Effect, rows: Observations, known: Mapping[str, Any], edges: Floats, recipe: Recipe) -> Floats:
    """Value of each bin on the nuisance rows, by cross-fitting among them: the level of the nuisance (mathematics 5.2)."""
    learnt = learn_cross(effect, rows, rows.covariates, known, 2, recipe)
    bins = np.searchsorted(edges, cast("Floats", rows.prediction), side="left")
    kept, bins = _with_mass(edges, bins, learnt.loss)
    values = constants(learnt.loss, bins, len(kept) + 1)
    return values[np.searchsorted(kept, np.append(edges, np.inf), side="left")]


def _with_mass(edges: Floats, bins: Integers, loss: Loss) -> tuple[Floats, Integers]:
    """Join bins that carry nothing to learn a value from with their left neighbour (the first with its right one)."""
    carrying = getattr(loss, "slope", loss.mass)
    held = group_sums(bins, carrying, len(edges) + 1)
    if (held > 0).all():
        return edges, bins
    keep = edges[(held[1:] > 0) & (np.cumsum(held)[:-1] > 0)]
    position = np.searchsorted(keep, np.append(edges, np.inf), side="left")
    return keep, position[bins]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a scheme needs: the effect, the method and how to divide the rows.

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
