"""Three-way uniform mass binning (Algorithm 6), and the guarantee it comes with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from orthocal.arrays import group_sums
from orthocal.calibrators import Calibrator, Histogram, new_calibrator
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.errors import OrthocalError, require_inside
from orthocal.folds import SPLIT, THIRDS, split_rows
from orthocal.losses import HingeLoss, Loss, QuadraticLoss
from orthocal.maps import StepMap
from orthocal.orthogonal import Orthogonal, Recipe, learn_cross, learn_given_split
from orthocal.solvers import constants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.arrays import Floats, Integers
    from orthocal.effects import Effect
    from orthocal.observations import Observations


@dataclass(frozen=True)
class Guarantee:
    """A bound on the calibration error that holds with a stated probability, whatever the data's law.

    Parameters
    ----------
    bound : float
        On the error given the nuisances that were learnt; their own second-order error comes on top.
    probability : float
    smallest_bin : int
        Rows in the smallest bin.
    is_vacuous : bool
        The bound says no more than could be said without data.
    text : str
    """

    bound: float
    probability: float
    smallest_bin: int
    is_vacuous: bool
    text: str


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
    prediction = cast("Floats", observations.prediction)  # fit asks for it before it comes here
    edges = uniform_mass_edges(prediction[first == 0], observations.weight[first == 0], calibrator.bins)
    learnt = learn_given_split(effect, observations, X, given, rest, part, recipe)
    loss, bins = learnt.loss, np.searchsorted(edges, prediction[learnt.rows], side="left")
    if refinements and loss.at(prediction[learnt.rows]) is not loss:
        level = _bin_levels(effect, observations[rest[part == 0]], edges, recipe)
        loss = loss.at(level[bins])
    edges, bins = _with_mass(edges, bins, loss)
    calibrator.map_ = StepMap(edges, constants(loss, bins, len(edges) + 1))
    return Orthogonal(loss, learnt.nuisances, prediction[learnt.rows], learnt.fold, learnt.rows), calibrator


def _bin_levels(effect: Effect, rows: Observations, edges: Floats, recipe: Recipe) -> Floats:
    """Value of each bin on the nuisance rows, by cross-fitting among them: the level of the nuisance (MATH 6.3 b)."""
    learnt = learn_cross(effect, rows, rows.covariates, None, 2, recipe)
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


def guarantee_of(loss: Loss, map_: StepMap, prediction: Floats, delta: float) -> Guarantee:
    """Return the count version of the bound of MATH 7.2 for the bins of a three-way fit."""
    require_inside(delta, 0, 1, "delta")
    count = np.bincount(np.searchsorted(map_.edges, prediction, side="left"), minlength=len(map_.values))
    bound, trivial, words = deviation_bound(loss, count, delta)
    vacuous = bool(bound >= trivial)
    verdict = f"against {trivial:.3g} without data"
    if vacuous:
        verdict = "which says nothing: it is for planning, use more rows or fewer bins"
    text = (
        f"With probability {1 - delta:g} over the rows that gave the values, the calibration error is at most {bound:.3g} "
        f"{words}, {verdict}. The nuisances' second-order error comes on top."
    )
    return Guarantee(float(bound), 1 - delta, int(count.min()), vacuous, text)


@singledispatch
def deviation_bound(loss: Loss, count: Integers, delta: float) -> tuple[float, float, str]:
    """Return (bound, what is true without data, unit in words)."""
    del count, delta
    raise OrthocalError(f"There is no guarantee for a {type(loss).__name__}.")


@deviation_bound.register(QuadraticLoss)
def _(loss: QuadraticLoss, count: Integers, delta: float) -> tuple[float, float, str]:
    """Hoeffding for pseudo-outcomes in an interval, taken to be the one observed."""
    if not (loss.denominator > 0).all():
        raise OrthocalError("The guarantee must have positive masses; a ratio effect has none.")
    reach = float(np.ptp(loss.target))
    bound = reach * float(np.sqrt(np.log(2 * len(count) / delta) / (2 * count.min())))
    return bound, float(loss.target.std()), "in units of the effect"


@deviation_bound.register(HingeLoss)
def _(loss: HingeLoss, count: Integers, delta: float) -> tuple[float, float, str]:
    """Monotone score with jumps: beta R / n + J / N_b + C sqrt(2 log(2 B (n + 1) / delta) / N_b)."""
    n, fewest = int(count.sum()), int(count.min())
    most = float((loss.slope / np.where(loss.weight > 0, loss.weight, 1.0)).max())
    carrying = loss.slope > 0
    density = float(np.histogram(loss.outcome[carrying], bins=20, density=True)[0].max())
    reach, least = loss.bounds[1] - loss.bounds[0], min(loss.quantile, 1 - loss.quantile)
    deviation = (most - least) * float(np.sqrt(2 * np.log(2 * len(count) * (n + 1) / delta) / fewest))
    return density * reach / n + most / fewest + deviation, 1 - least, "in probability"
