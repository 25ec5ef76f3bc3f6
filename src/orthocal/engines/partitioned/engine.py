"""Partitions as an engine: rows are held out by a hash of what identifies them, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.records import Settings
from orthocal.assessment.rivals_side_by_side import RivalSums
from orthocal.calibrators import CALIBRATORS, Calibrator, Constant
from orthocal.effects import Effect
from orthocal.engines.partitioned.division import (
    Division,
    counts_of_column,
    divided,
    divided_by_column,
    division,
    joined_pairs,
    pairs_of,
)
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.partition_loss import Job, observed
from orthocal.engines.partitioned.passes import reduced
from orthocal.engines.partitioned.preparation import chosen, prepared, seed_of_partitions
from orthocal.engines.partitioned.rivals_summed import RivalColumn, summed_rivals
from orthocal.engines.partitioned.source import Source
from orthocal.engines.partitioned.training import probe, require_defined
from orthocal.engines.partitioned.verdict import compared, judged, rivals_compared
from orthocal.engines.protocol import PartitionedTable, require_both_sides, require_share
from orthocal.errors import OrthocalError, require_one_of
from orthocal.maps import Map
from orthocal.nuisances import Nuisance
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles

MOST_PER_KEY = 10
"""Rows that may share one key, about: a hold-out of fewer and larger lumps would be unlike the other rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionedEngine:
    """Rows of a table in partitions; a prediction is the name of a column.

    Parameters
    ----------
    table : PartitionedTable
    roles : Roles
    effect : Effect
    folds : int or str
        How many, or a column of fold labels.
    recipe : Recipe
    exact : bool
        Whether isotonic maps are those of all rows, or of a grid.
    """

    table: PartitionedTable
    roles: Roles
    effect: Effect
    folds: int | str = 5
    recipe: Recipe
    exact: bool = False
    _jobs: list[Job] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        seed_of_partitions(self.folds, self.recipe)

    @cached_property
    def count(self) -> int:
        """How many rows there are."""
        return self.division(0.0).rows

    @cached_property
    def to_learn(self) -> tuple[list[Nuisance], list[str]]:
        """The nuisances that are not known, from a look at a few rows, and the names of those that are."""
        known = replace(self.roles, covariates=(), fold=None)
        few = probe(chosen(self.table, known), known, self.effect)
        wanted, _ = require_defined(self.effect, observed(few, known), known)
        return [one for one in wanted if not set(one.names) <= set(known.nuisances)], list(known.nuisances)

    def division(self, holdout: float | str) -> Division:
        """Count the rows, and those held out."""
        if isinstance(holdout, str):
            return reduced(self.table.select([holdout]), counts_of_column, Division.merge, (holdout,))
        return division(self.table, self.roles.told_apart_by, holdout, self.recipe.random_state)

    def require_whole_clusters(self, column: str, name: str) -> None:
        """No cluster is divided by a column."""
        groups = self.roles.groups
        if groups is None:
            return
        pairs = reduced(self.table.select([groups, column]), pairs_of, joined_pairs, (groups, column))
        if len(np.unique(pairs[:, 0])) < len(pairs):
            raise OrthocalError(f"`{name}` as given must keep clusters whole; at least one cluster is divided.")

    def sides(self, holdout: float | str) -> tuple[int, int]:
        """Return how many rows maps are fitted on, and how many they are judged on; rows must differ to be held out."""
        found, roles = self.division(holdout), self.roles
        if isinstance(holdout, str):
            self.require_whole_clusters(holdout, "holdout")
        if not isinstance(holdout, str):
            require_share(holdout)
            if holdout and not (roles.groups or roles.key) and found.alike > MOST_PER_KEY:
                raise OrthocalError(
                    f"Rows must differ to be held out at random; about {found.alike:.0f} are alike in every column. Name "
                    "a column that differs with `key`, or use `holdout` 0."
                )
        fitted, judging = found.rows - found.held, found.held if holdout else found.rows
        require_both_sides(holdout, found.rows, fitted, judging)
        return fitted, judging

    def source(self, prediction: str, by: Sequence[str] = ()) -> Source:
        """Return the rows with their loss; nuisances are learnt for the first prediction, and serve all."""
        if not self._jobs:
            if self.roles.fold is not None:
                self.require_whole_clusters(self.roles.fold, "folds")
            roles = replace(self.roles, prediction=prediction)
            job = prepared(self.table, roles, self.effect, self.folds, self.recipe).job  # type: ignore[arg-type]
            origin = None if job.origin is None else replace(job.origin, rows=self.count)
            self._jobs.append(replace(job, origin=origin))
        job = self._jobs[0]
        job = replace(job, roles=replace(job.roles, prediction=prediction, by=tuple(by)))
        return Source(chosen(self.table, job.roles), job)

    def trial(
        self, prediction: str, method: str | Calibrator, holdout: float | str, by: Any, within: None = None
    ) -> PartitionedTrial:
        """Fit a map on the rows that are not held out."""
        del within  # groups are shifted in memory
        require_summed(method)
        fitted_rows, judged_rows = self.sides(holdout)
        every = self.source(prediction, tuple(by))
        kept, held = self._divided(holdout)
        learning = self.source(prediction)
        learning = replace(learning, table=chosen(kept, learning.job.roles))
        calibrator = fitted(method, learning, exact=self.exact, refinements=REFINEMENTS)
        return PartitionedTrial(
            engine=self,
            calibrator=calibrator,
            method=method,
            every=self.source(prediction),
            learning=learning,
            held=replace(every, table=chosen(held, every.job.roles)),
            judged_table=held,
            judged=range(judged_rows),
            fitted=fitted_rows,
        )

    def _divided(self, holdout: float | str) -> tuple[PartitionedTable, PartitionedTable]:
        """Return the rows a map is fitted on, and the rows it is judged on."""
        if isinstance(holdout, str):
            return divided_by_column(self.table, holdout)
        if holdout:
            return divided(self.table, self.roles.told_apart_by, holdout, self.recipe.random_state)
        return self.table, self.table

    def judge(self, prediction: str, settings: Settings) -> Assessment:
        """Judge a column of predictions on all rows."""
        own = replace(settings, random_state=self.recipe.random_state, by={})
        return judged(self.source(prediction, tuple(settings.by)), own, exact=self.exact)

    def judged_again(self, prediction: str, times: int) -> list[float]:
        """Refuse: on as many rows other draws of the folds hardly move the error, and passes are dear."""
        del prediction
        raise OrthocalError(REDRAWS.format(self.table.place, times))

    def compare(self, one: str, other: str, settings: Settings, rivals: tuple[str, str]) -> Comparison:
        """Compare two columns of predictions on all rows."""
        source = self.source(one)
        both = replace(source, table=self.table.select(list(dict.fromkeys([*source.job.roles.needed, other]))))
        return rivals_compared(both, other, settings.level, settings.cost, rivals)

    def errors_again(
        self, prediction: str, method: str | Calibrator, holdout: float | str, times: int, within: None = None
    ) -> list[tuple[float, float]]:
        """Refuse: on as many rows other draws of the folds hardly move the error, and passes are dear."""
        del prediction, method, holdout, within
        raise OrthocalError(REDRAWS.format(self.table.place, times))


REDRAWS = "`redraws` must be 0 {}; it is {}. Draw other folds with another `random_state`."
REFINEMENTS = 2


def require_summed(method: str | Calibrator) -> None:
    """Sums are enough for the method."""
    if isinstance(method, str):
        require_one_of(method, CALIBRATORS, "method")


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionedTrial:
    """A calibrator fitted on some rows of a table, and the rows it is judged on."""

    engine: PartitionedEngine
    calibrator: Any
    method: str | Calibrator
    every: Source
    learning: Source
    held: Source
    judged_table: PartitionedTable
    judged: range
    fitted: int

    @property
    def reason(self) -> str:
        """Why the method was chosen."""
        return getattr(self.calibrator, "reason_", "")

    @property
    def map(self) -> Map:
        """The map of the method."""
        return self.calibrator.map_  # type: ignore[no-any-return]

    @property
    def bound(self) -> float:
        """How near an isotonic map on a grid is to that of all rows."""
        return float(getattr(self.calibrator, "bound_", 0.0))

    @cached_property
    def constant(self) -> Map:
        """The average effect of the rows the map was fitted on."""
        return fitted(Constant(), self.learning, exact=False, refinements=REFINEMENTS).map_

    @property
    def fitted_range(self) -> tuple[float, float]:
        """The lowest and the highest prediction that the map was fitted on."""
        level = self.learning.sketch.level
        return float(level[0]), float(level[-1])

    def assess(self, settings: Settings, map_: Map) -> Assessment:
        """Judge what a map makes of the prediction."""
        own = replace(settings, random_state=self.engine.recipe.random_state, by={})
        return judged(replace(self.held, map=map_), own, exact=self.engine.exact)

    def compare(self, settings: Settings, before: Map, after: Map) -> Comparison:
        """Compare what two maps make of the prediction."""
        return compared(self.held, before, after, level=settings.level, cost=settings.cost)

    def audit(self, settings: Settings, map_: Map) -> None:
        """Return nothing: groups are tested in memory."""

    @property
    def unit(self) -> str:
        """Of the effect."""
        return self.held.like.unit

    def rival(self, map_: Map) -> RivalColumn:
        """Return column and map."""
        column = self.held.job.roles.prediction
        assert column is not None  # noqa: S101
        return RivalColumn(column, map_)

    def rival_sums(self, predictions: Sequence[RivalColumn], cost: float | None) -> RivalSums:
        """Return what a leaderboard of predictions must know of the rows judged, in one pass."""
        return summed_rivals(self.held, self.judged_table, predictions, cost)

    def gaps(self, again: Map, predictions: Floats) -> Floats:
        """Return how far another map is from the map of the method."""
        return again.predict(predictions) - self.map.predict(predictions)

    def refitted(self) -> Map:
        """Return the map of the same method, fitted on all rows."""
        frozen = getattr(self.calibrator, "calibrator_", self.method)
        return fitted(frozen, self.every, exact=self.engine.exact, refinements=REFINEMENTS).map_
