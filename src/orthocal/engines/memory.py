"""Rows in memory: nuisances are cross-fitted once and serve every map and every verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from orthocal.arrays import Floats, Integers
from orthocal.assessment import Assessment, Comparison, assess, compare
from orthocal.assessment.assess import assess_rows
from orthocal.assessment.records import Settings
from orthocal.calibration.schemes import fit_calibrator
from orthocal.calibrators import Calibrator
from orthocal.effects import Effect
from orthocal.engines.verification import hold_out
from orthocal.errors import OrthocalError
from orthocal.folds import draw_folds
from orthocal.maps import Map
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import check_given, to_learn
from orthocal.nuisances.learners import Recipe
from orthocal.observations import Observations, as_labels
from orthocal.orthogonal import Orthogonal, learn_cross


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryEngine:
    """Rows in memory.

    Parameters
    ----------
    effect : Effect
    observations : Observations
    X : array or table
        What functions among `nuisances` see.
    nuisances : mapping of str to array, number or callable
        Known ones, by name.
    holdout : float
        Share of the rows that no map sees; 0 for none.
    folds : int or array
    recipe : Recipe
    refinements : int
    predictions : mapping of str to array
        Columns that `judge` can be asked about.
    by : mapping of str to labels
        Subgroups to judge apart.
    """

    effect: Effect
    observations: Observations
    X: Any
    nuisances: Mapping[str, Any] = field(default_factory=dict)
    holdout: float = 0.3
    folds: int | Any = 5
    recipe: Recipe = field(default_factory=Recipe)
    refinements: int = 2
    predictions: Mapping[str, Any] = field(default_factory=dict)
    by: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", self.recipe.seeded)

    @cached_property
    def sides(self) -> tuple[Integers, Integers]:
        """The rows maps are fitted on, and the rows they are judged on: all for both where nothing is held out."""
        return hold_out(self.holdout, self.effect, self.observations, self.recipe.random_state)

    @cached_property
    def to_learn(self) -> tuple[list[Nuisance], list[str]]:
        """The nuisances that are not known, and the names of those that are; too few rows of an arm are refused."""
        nuisances = self.effect.nuisances(self.observations)
        given = check_given(nuisances, self.nuisances, self.X, len(self.observations))
        unknown = to_learn(nuisances, given)
        if unknown:
            draw_folds(self.folds, self.effect.strata(self.observations), self.observations, self.recipe.random_state)
        return unknown, list(given)

    @cached_property
    def learnt(self) -> Orthogonal:
        """The loss of all rows, learnt on first need."""
        return self._learnt(self.recipe)

    def trial(self, method: str | Calibrator) -> MemoryJudgedMap:
        """Fit a map on the rows that are not held out."""
        if self.observations.prediction is None:
            raise OrthocalError(
                "`prediction` must be given. Pass predictions of a model that was not trained on these rows."
            )
        fitted, judged = self.sides
        calibrator = self._fitted(method, self.learnt, fitted)
        groups = {name: as_labels(values, name, len(self.observations))[judged] for name, values in self.by.items()}
        return MemoryJudgedMap(
            map=calibrator.map_,
            reason=getattr(calibrator, "reason_", ""),
            judged=judged,
            prediction=self.observations.prediction[judged],
            loss=self.learnt.loss[judged],
            by=groups,
            seed=self.recipe.random_state,
        )

    def errors_again(self, method: str | Calibrator, times: int) -> list[tuple[float, float]]:
        """Return the errors of the whole job done again with other draws of the folds; none where nothing is learnt."""
        if self.learnt.fold is None:
            return []
        fitted, judged = self.sides
        before, found = cast("Floats", self.observations.prediction)[judged], []
        for time in range(1, times + 1):
            learnt = self._learnt(self.recipe.again(time))
            after, loss = self._fitted(method, learnt, fitted).map_.predict(before), learnt.loss[judged]
            found.append((assess(before, loss, draws=1).error, assess(after, loss, draws=1).error))
        return found

    def judge(self, names: Sequence[str], settings: Settings) -> dict[str, Assessment]:
        """Judge columns of predictions on all rows."""
        settings = self._seeded(settings)
        return {name: assess_rows(self.predictions[name], self.learnt.loss, settings) for name in names}

    def errors_by_seed(self, more: int) -> dict[str, list[float]]:
        """Return the error of each prediction under further draws of the folds: a loss is one draw."""
        found: dict[str, list[float]] = {name: [] for name in self.predictions}
        for step in range(1, more + 1):
            loss = self._learnt(replace(self.recipe, random_state=self.recipe.random_state + step)).loss
            for name, values in self.predictions.items():
                found[name].append(assess(values, loss, draws=1, random_state=0).error)
        return found

    def _seeded(self, settings: Settings) -> Settings:
        return replace(settings, by=self.by, random_state=self.recipe.random_state)

    def _learnt(self, recipe: Recipe) -> Orthogonal:
        return learn_cross(self.effect, self.observations, self.X, self.nuisances, self.folds, recipe)

    def _fitted(self, method: str | Calibrator, learnt: Orthogonal, rows: Integers) -> Calibrator:
        prediction, loss = cast("Floats", learnt.prediction)[rows], learnt.loss[rows]
        return fit_calibrator(method, prediction, loss, self.refinements, lambda: learnt.map_fold[rows])


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryJudgedMap:
    """A map, and the prediction and loss of the rows it is judged on."""

    map: Map
    reason: str
    judged: Integers
    prediction: Floats
    loss: Any
    by: Mapping[str, Any]
    seed: int
    bound: float = 0.0

    def assess(self, settings: Settings, *, calibrated: bool) -> Assessment:
        """Judge the prediction after the map, or as it was."""
        value = self.map.predict(self.prediction) if calibrated else self.prediction
        return assess_rows(value, self.loss, replace(settings, by=self.by, random_state=self.seed))

    def compare(self, settings: Settings) -> Comparison:
        """Say whether the map did good or harm."""
        after = self.map.predict(self.prediction)
        return compare(self.prediction, after, self.loss, level=settings.level, cost=settings.cost)
