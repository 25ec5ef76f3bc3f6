"""Rows in memory: nuisances are cross-fitted once and serve every prediction, map and verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.assessment import Assessment, Comparison, assess, compare
from orthocal.assessment.assess import assess_rows
from orthocal.assessment.records import Settings
from orthocal.calibration.effect_models import prediction_of, warn_if_trained_on
from orthocal.calibration.schemes import fit_calibrator
from orthocal.calibrators import Calibrator
from orthocal.calibrators.within import GroupsWithin
from orthocal.effects import CATE, Effect
from orthocal.engines.memory_trial import MemoryTrial, map_with_groups, values_of
from orthocal.engines.protocol import require_both_sides, require_share
from orthocal.errors import OrthocalError
from orthocal.events import require_use_of_event
from orthocal.folds import HOLDOUT, draw_folds, split_rows
from orthocal.losses import ArmScores, Loss
from orthocal.maps import Map
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import Fitted, check_given, to_learn
from orthocal.nuisances.learners import Recipe
from orthocal.observations import Observations, as_groups
from orthocal.orthogonal import Orthogonal, learn_cross


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryEngine:
    """Rows in memory.

    Parameters
    ----------
    effect : Effect
    observations : Observations
        Without predictions, of which there may be several.
    X : array or table
        What functions among `nuisances` and effect models see.
    nuisances : mapping of str to array, number or callable
        Known ones, by name.
    folds : int or array
    recipe : Recipe
    refinements : int
    """

    effect: Effect
    observations: Observations
    X: Any
    nuisances: Mapping[str, Any] = field(default_factory=dict)
    folds: int | Any = 5
    recipe: Recipe = field(default_factory=Recipe)
    refinements: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", self.recipe.seeded)

    def __len__(self) -> int:
        return len(self.observations)

    @cached_property
    def to_learn(self) -> tuple[list[Nuisance], list[str]]:
        """The nuisances that are not known, and the names of those that are; too few rows of an arm are refused."""
        require_use_of_event(self.effect, self.observations.event)
        nuisances = self.effect.nuisances(self.observations)
        given = check_given(nuisances, self.nuisances, self.X, len(self))
        unknown = to_learn(nuisances, given)
        if unknown:
            draw_folds(self.folds, self.effect.strata(self.observations), self.observations, self.recipe.random_state)
        return unknown, list(given)

    @cached_property
    def learnt(self) -> Orthogonal:
        """The loss of all rows, learnt on first need."""
        return self._learnt(self.recipe)

    @cached_property
    def scores(self) -> ArmScores:
        """The score of every arm; only effects that are differences of mean outcomes have them."""
        return self._scores(self.observations, self.learnt.nuisances)

    def scores_of(self, outcome: Floats) -> ArmScores:
        """Return the scores of another outcome of the same rows, such as what was spent; propensities are as learnt."""
        known = {name: values for name, values in self.learnt.nuisances.items() if name.startswith("propensity")}
        total = np.maximum(np.sum(list(known.values()), axis=0), 1.0)  # two that were learnt apart may add up to more
        known = {name: values / total for name, values in known.items()}
        effect: Any = self.effect
        rows = replace(self.observations, outcome=outcome, event=None)
        plain = effect if hasattr(effect, "arms") else CATE(effect.arm, effect.control)
        return replace(self, effect=plain, observations=rows, nuisances=known).scores

    def _scores(self, rows: Observations, nuisances: Mapping[str, Any]) -> ArmScores:
        effect: Any = self.effect
        require_scores(effect)
        overlap = self.learnt.loss.overlap
        clipped = {} if overlap is None else dict(overlap.clipped)
        found: ArmScores = effect.scores(rows, Fitted(dict(nuisances), self.recipe.clip, clipped))
        return found

    def predicted(self, model: Any) -> Floats:
        """Return what a model predicts of the covariates."""
        warn_if_trained_on(model, self.X)
        return prediction_of(model, self.X, self.effect)

    def sides(self, holdout: float | Booleans) -> tuple[Integers, Integers]:
        """Return the rows a map is fitted on, and the rows it is judged on: all for both where nothing is held out."""
        fitted = judged = np.arange(len(self))
        if isinstance(holdout, np.ndarray):
            _require_whole_clusters(holdout, self.observations.groups)
            fitted, judged = np.flatnonzero(~holdout), np.flatnonzero(holdout)
        else:
            require_share(holdout)
            if holdout > 0:
                part = split_rows(
                    1 - holdout,
                    self.effect.strata(self.observations),
                    self.observations,
                    self.recipe.random_state,
                    HOLDOUT,
                )
                fitted, judged = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
        share = holdout if not isinstance(holdout, np.ndarray) else "the column"
        require_both_sides(share, len(self), len(fitted), len(judged))
        return fitted, judged

    def trial(
        self,
        prediction: Floats,
        method: str | Calibrator,
        holdout: float | Booleans,
        by: Mapping[str, Any],
        within: GroupsWithin | None = None,
    ) -> MemoryTrial:
        """Fit a map on the rows that are not held out, with shifts of groups after it where groups are given."""
        fitted, judged = self.sides(holdout)
        calibrator = self.fitted(method, prediction, self.learnt, fitted)
        groups = {name: as_groups(values, name, len(self))[judged] for name, values in by.items()}
        return MemoryTrial(
            engine=self,
            calibrator=calibrator,
            map=self._with_groups(calibrator, prediction, self.learnt, fitted, within),
            prediction=prediction,
            rows=fitted,
            judged=judged,
            by=groups,
            within=within,
        )

    def judge(self, prediction: Floats, settings: Settings) -> Assessment:
        """Judge predictions on all rows."""
        return assess_rows(prediction, self.learnt.loss, replace(settings, random_state=self.recipe.random_state))

    def judged_again(self, prediction: Floats, times: int) -> list[float]:
        """Return the error under further draws of the folds; none where nothing is learnt."""
        if self.learnt.fold is None:
            return []
        again = [self._learnt(self.recipe.again(time)).loss for time in range(1, times + 1)]
        return [assess(prediction, loss, draws=1, random_state=0).error for loss in again]

    def compare(self, one: Floats, other: Floats, settings: Settings, rivals: tuple[str, str]) -> Comparison:
        """Compare two predictions on all rows."""
        return compare(one, other, self.learnt.loss, level=settings.level, cost=settings.cost, rivals=rivals)

    def errors_again(
        self,
        prediction: Floats,
        method: str | Calibrator,
        holdout: float | Booleans,
        times: int,
        within: GroupsWithin | None = None,
    ) -> list[tuple[float, float]]:
        """Return the errors of the whole job done again with other draws of the folds; none where nothing is learnt."""
        if self.learnt.fold is None:
            return []
        fitted, judged = self.sides(holdout)
        found = []
        for time in range(1, times + 1):
            learnt = self._learnt(self.recipe.again(time))
            base = self.fitted(method, prediction, learnt, fitted).map_
            after = values_of(
                map_with_groups(base, prediction, learnt.loss, fitted, within), prediction, judged, within
            )
            errors = (assess(values, learnt.loss[judged], draws=1).error for values in (prediction[judged], after))
            found.append(cast("tuple[float, float]", tuple(errors)))
        return found

    def _learnt(self, recipe: Recipe) -> Orthogonal:
        """Learn the loss; some are built at a prediction and then moved to any other, so any will do."""
        rows = replace(self.observations, prediction=np.zeros(len(self)))
        return replace(learn_cross(self.effect, rows, self.X, self.nuisances, self.folds, recipe), prediction=None)

    def _with_groups(
        self, base: Calibrator, prediction: Floats, learnt: Orthogonal, rows: Integers, within: GroupsWithin | None
    ) -> Map:
        """Return a map with shifts of groups; one that was chosen from the data may be left out of it."""
        if within is None or not hasattr(base, "choose"):
            return map_with_groups(base.map_, prediction, learnt.loss, rows, within)
        half = replace(learnt, prediction=prediction).map_fold % 2
        both = half if len(np.unique(half[rows])) > 1 else None
        return map_with_groups(base.map_, prediction, learnt.loss, rows, within, both)

    def fitted(self, method: Any, prediction: Floats, learnt: Orthogonal, rows: Integers | None) -> Calibrator:
        """Return the calibrator fitted on some rows, or on all."""
        every = replace(learnt, prediction=prediction)
        own: Any = slice(None) if rows is None else rows
        loss: Loss = learnt.loss if rows is None else learnt.loss[rows]
        return fit_calibrator(method, prediction[own], loss, self.refinements, lambda: every.map_fold[own])


def require_scores(effect: Any) -> None:
    """An effect has scores of its arms, by which decisions can be valued."""
    if not hasattr(effect, "scores"):
        raise OrthocalError(
            f"Decisions must rest on an effect of arms, such as 'cate'; {effect!r} is not one. Judge predictions of it instead."
        )


def _require_whole_clusters(held: Booleans, groups: Integers | None) -> None:
    if groups is not None and len(np.unique(groups * 2 + held)) > len(np.unique(groups)):
        raise OrthocalError("`holdout` as given must keep clusters whole; at least one cluster is divided.")
