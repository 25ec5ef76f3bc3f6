"""A map fitted on some rows in memory, and the verdicts on rows it is judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from orthocal.arrays import Floats, Integers
from orthocal.assessment import Assessment, Comparison, compare
from orthocal.assessment.assess import assess_rows
from orthocal.assessment.audit import AuditPlan, audited
from orthocal.assessment.audit_records import Audit
from orthocal.assessment.records import Settings
from orthocal.assessment.rivals_side_by_side import RivalSums, rival_sums, that_count
from orthocal.calibrators import Calibrator, Constant
from orthocal.calibrators.within import GroupsWithin
from orthocal.group_maps import GroupMap, predict_within
from orthocal.losses import Loss
from orthocal.maps import IdentityMap, Map

if TYPE_CHECKING:
    from orthocal.engines.memory import MemoryEngine

LEFT_OUT = "On held-out rows, shifts of subgroups did better without this map, so they follow the prediction as it is."


def map_with_groups(
    base: Map, prediction: Floats, loss: Loss, rows: Integers, within: GroupsWithin | None, half: Integers | None = None
) -> Map:
    """Return a map with shifts of groups after it, where there are groups."""
    return base if within is None else within.map_after(base, prediction, loss, rows, half)


def values_of(map_: Map, prediction: Floats, rows: Integers, within: GroupsWithin | None) -> Floats:
    """Return what a map makes of some rows."""
    return predict_within(map_, prediction[rows], {} if within is None else within.given_of(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryTrial:
    """A calibrator fitted on some rows of an engine, and the rows it is judged on."""

    engine: MemoryEngine
    calibrator: Calibrator
    map: Map
    prediction: Floats
    rows: Integers
    judged: Integers
    by: Mapping[str, Any]
    within: GroupsWithin | None = None
    bound: float = 0.0

    @property
    def reason(self) -> str:
        """Why the method was chosen."""
        reason = getattr(self.calibrator, "reason_", "")
        return f"{reason} {LEFT_OUT}".strip() if self.is_base_left_out else reason

    @property
    def is_base_left_out(self) -> bool:
        """Whether shifts of groups did better without the map of the method."""
        is_plain = isinstance(self.calibrator.map_, IdentityMap)
        return isinstance(self.map, GroupMap | IdentityMap) and not getattr(self.map, "base", ()) and not is_plain

    @property
    def fitted(self) -> int:
        """How many rows the map was fitted on."""
        return len(self.rows)

    @property
    def fitted_range(self) -> tuple[float, float]:
        """The lowest and the highest prediction that the map was fitted on."""
        own = self.prediction[self.rows]
        return float(own.min()), float(own.max())

    @cached_property
    def constant(self) -> Map:
        """The average effect of the rows the map was fitted on."""
        return self.engine.fitted(Constant(), self.prediction, self.engine.learnt, self.rows).map_

    @cached_property
    def loss(self) -> Loss:
        """The loss of the rows judged."""
        return self.engine.learnt.loss[self.judged]

    def values(self, map_: Map) -> Floats:
        """Return what a map makes of the rows judged."""
        return values_of(map_, self.prediction, self.judged, self.within)

    def assess(self, settings: Settings, map_: Map) -> Assessment:
        """Judge what a map makes of the prediction."""
        own = replace(settings, by=self.by, random_state=self.engine.recipe.random_state)
        return assess_rows(self.values(map_), self.loss, own)

    def audit(self, settings: Settings, map_: Map) -> Audit | None:
        """Test what a map makes of the prediction in the groups that were given; None where none were."""
        if self.within is None:
            return None
        seed, groups = self.engine.recipe.random_state, self.within.labels_of(self.judged)
        plan = AuditPlan(level=settings.level, random_state=seed, phrased=self.within.phrased)
        return audited(self.values(map_), self.loss, groups, plan)

    def compare(self, settings: Settings, before: Map, after: Map) -> Comparison:
        """Compare what two maps make of the prediction."""
        return compare(self.values(before), self.values(after), self.loss, level=settings.level, cost=settings.cost)

    @property
    def unit(self) -> str:
        """Of the effect."""
        return self.loss.unit

    def rival(self, map_: Map) -> Floats:
        """Return what a map makes of the rows judged."""
        return self.values(map_)

    def rival_sums(self, predictions: Sequence[Floats], cost: float | None) -> RivalSums:
        """Return what a leaderboard of predictions must know of the rows judged; those of weight 0 are no evidence."""
        kept = that_count(self.loss)
        return rival_sums([one[kept] for one in predictions], self.loss[kept], cost)

    def gaps(self, again: Map, predictions: Floats) -> Floats:
        """Return how far another map is from the map of the method: at predictions, or in the rows judged if groups matter."""
        if self.within is None:
            return again.predict(predictions) - self.map.predict(predictions)
        return self.values(again) - self.values(self.map)

    def refitted(self) -> Map:
        """Return the map of the same method, its members and their weights as they are, fitted on all rows."""
        frozen, learnt = clone(getattr(self.calibrator, "calibrator_", self.calibrator)), self.engine.learnt
        base = (
            IdentityMap() if self.is_base_left_out else self.engine.fitted(frozen, self.prediction, learnt, None).map_
        )
        return map_with_groups(base, self.prediction, learnt.loss, np.arange(len(self.engine)), self.within)
