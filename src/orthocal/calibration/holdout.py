"""Calibrate on some rows, judge on others: the whole job, with a verdict that is honest by construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from orthocal.assessment import Assessment, Comparison, assess, compare
from orthocal.calibration.refinement import fit_calibrator
from orthocal.effects import Effect, new_effect
from orthocal.errors import OrthocalError
from orthocal.folds import HOLDOUT, split_rows
from orthocal.nuisances.recipe import Recipe
from orthocal.observations import as_labels
from orthocal.orthogonal import learn_cross

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.arrays import Floats, Integers
    from orthocal.calibrators import Calibrator
    from orthocal.maps import Map
    from orthocal.observations import Observations
    from orthocal.orthogonal import Orthogonal


@dataclass(frozen=True, eq=False)
class Verified:
    """A map with the verdict before and after it.

    Parameters
    ----------
    map : Map
        Fitted on the rows that were not held out.
    before : Assessment
        On the held-out rows; on all rows when nothing was held out.
    after : Assessment or None
        On the held-out rows; None when nothing was held out, for the map has seen every row.
    comparison : Comparison or None
    judged : array or range
        The rows the verdict rests on; a range only counts them.
    by_seed : tuple of (float, float)
        Error before and after, of the whole job done again with other draws of the folds and the same rows held out;
        none where no nuisance is learnt.
    reason : str
        Why the method was chosen, where it was chosen from the data.
    """

    map: Map
    before: Assessment
    after: Assessment | None
    comparison: Comparison | None
    judged: Integers | range
    by_seed: tuple[tuple[float, float], ...] = ()
    reason: str = ""


def calibrate_and_verify(
    effect: str | Effect,
    method: str | Calibrator,
    observations: Observations,
    X: Any,
    *,
    nuisances: Mapping[str, Any] | None = None,
    holdout: float = 0.3,
    folds: int | Any = 5,
    refinements: int = 2,
    recipe: Recipe | None = None,
    level: float = 0.95,
    cost: float | None = None,
    by: Mapping[str, Any] | None = None,
    seeds: int = 3,
) -> Verified:
    """Cross-fit the nuisances once, fit the map on a share of the rows and judge it on the rest.

    `holdout` = 0 fits the map on all rows; then nothing can be said about it, only about the prediction before it.
    """
    require_share(holdout)
    if observations.prediction is None:
        raise OrthocalError(
            "`prediction` must be given. Pass predictions of a model that was not trained on these rows."
        )
    recipe, effect = (recipe or Recipe()).seeded, new_effect(effect)
    fitted, judged = hold_out(holdout, effect, observations, recipe.random_state)
    learnt = learn_cross(effect, observations, X, nuisances, folds, recipe)
    prediction, every = observations.prediction, learnt.rows
    groups = {name: as_labels(values, name, len(every))[judged] for name, values in (by or {}).items()}
    settings: dict[str, Any] = {"level": level, "cost": cost, "random_state": recipe.random_state}
    calibrator = _fitted(method, learnt, fitted, refinements)
    before, loss = prediction[judged], learnt.loss[judged]
    verdict = assess(before, loss, by=groups, **settings)
    if holdout == 0:
        return Verified(calibrator.map_, verdict, None, None, judged, (), getattr(calibrator, "reason_", ""))
    after = calibrator.predict(before)
    judged_after = assess(after, loss, by=groups, **settings)
    errors = [(verdict.error, judged_after.error)]
    for time in range(1, seeds) if learnt.fold is not None else ():  # where nothing is learnt, nothing would change
        again = learn_cross(effect, observations, X, nuisances, folds, recipe.again(time))
        map_ = _fitted(method, again, fitted, refinements).map_
        own = again.loss[judged]
        errors.append((assess(before, own, draws=1).error, assess(map_.predict(before), own, draws=1).error))
    return Verified(
        calibrator.map_,
        verdict,
        judged_after,
        compare(before, after, loss, level=level, cost=cost),
        judged,
        () if learnt.fold is None else tuple(errors),
        getattr(calibrator, "reason_", ""),
    )


def _fitted(method: str | Calibrator, learnt: Orthogonal, rows: Integers, refinements: int) -> Calibrator:
    """Return the map of some rows."""
    prediction = cast("Floats", learnt.prediction)
    return fit_calibrator(method, prediction[rows], learnt.loss[rows], refinements, lambda: learnt.map_fold[rows])


def hold_out(holdout: float, effect: Effect, observations: Observations, seed: int) -> tuple[Integers, Integers]:
    """Return the rows the map is fitted on and the rows it is judged on: all for both where nothing is held out."""
    require_share(holdout)
    fitted = judged = np.arange(len(observations))
    if holdout > 0:
        part = split_rows(1 - holdout, effect.strata(observations), observations, seed, HOLDOUT)
        fitted, judged = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    require_both_sides(holdout, len(observations), len(fitted), len(judged))
    return fitted, judged


def require_both_sides(holdout: float, rows: int, fitted: int, judged: int) -> None:
    """There are rows to fit a map on, and rows to judge it on."""
    if judged < 2 or fitted < 2:
        raise OrthocalError(f"`holdout`={holdout} leaves too few of the {rows} rows on one side. Use more data.")


def require_share(holdout: float) -> None:
    """A share of the rows is held out, or none."""
    if not 0 <= holdout < 1:
        raise OrthocalError(
            f"`holdout` must lie in [0, 1); it is {holdout}. 0.3 keeps three rows of ten for the verdict."
        )
