"""Partitions and what can be asked of them: sketches, sums, rows in the order of their predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, cast

import numpy as np

from orthocal.arrays import Floats
from orthocal.engines.partitioned.partition_loss import Job, loss_of
from orthocal.engines.partitioned.passes import each, reduced
from orthocal.engines.partitioned.summaries import Bracketed, GridCells, LineSums, Pairs
from orthocal.engines.protocol import PartitionedTable
from orthocal.errors import OrthocalError, UnavailableError
from orthocal.losses import Loss, QuadraticLoss, without_overlap
from orthocal.losses.counting import Counts
from orthocal.maps import Map
from orthocal.observations import as_numbers


@dataclass(frozen=True, eq=False)
class Sketch:
    """Predictions in order, thinned: some of them, each with the weight since the one before it.

    Between two kept predictions of a part of the rows lies at most a known share of its weight, so that the rank of any
    prediction is known to within the sum of those.
    """

    level: Floats
    weight: Floats
    counts: Counts

    @classmethod
    def of(cls, prediction: Floats, weight: Floats | None, keep: int) -> Sketch:
        """Keep so many of some rows, evenly by weight, the lowest and the highest among them."""
        if weight is None:
            level = np.sort(prediction)
            place = np.unique(np.linspace(0, len(level) - 1, min(keep, len(level))).astype(np.int64))
            return cls(level[place], np.diff(place + 1.0, prepend=0.0), Counts.of(None, len(level)))
        order = np.argsort(prediction)
        level, running = prediction[order], np.cumsum(weight[order])
        if len(level) <= keep:
            return cls(level, weight[order], Counts.of(weight, len(level)))
        reach = np.linspace(0, running[-1], min(keep, len(level)))
        place = np.unique(np.append(np.minimum(np.searchsorted(running, reach), len(level) - 1), len(level) - 1))
        return cls(level[place], np.diff(running[place], prepend=0.0), Counts.of(weight, len(level)))

    def merge(self, other: Sketch) -> Sketch:
        """Of both, each kept prediction with the weight since the one before it."""
        level, weight = np.concatenate([self.level, other.level]), np.concatenate([self.weight, other.weight])
        order = np.argsort(level, kind="stable")
        return Sketch(level[order], weight[order], self.counts.merge(other.counts))

    def grid(self, cells: int) -> Floats:
        """Return the inner edges of cells of nearly equal weight."""
        if len(self.level) <= cells:
            return np.unique(self.level)[:-1]
        running = np.cumsum(self.weight)
        place = np.searchsorted(running, np.arange(1, cells) * running[-1] / cells)
        return np.unique(self.level[place[self.level[place] < self.level[-1]]])

    def brackets(self, wanted: Floats, parts: int, kept: int) -> Floats:
        """Return intervals ( , ] that surely hold the predictions at which these running weights are reached.

        A part's sketch is off by at most one of its steps; twice all of them is on the safe side.
        """
        running = np.cumsum(self.weight)
        slack = 2 * float(self.counts.total) / kept + 2 * parts * float(self.counts.most)
        below = np.searchsorted(running, wanted - slack, side="left") - 1
        above = np.minimum(np.searchsorted(running, wanted + slack, side="left"), len(running) - 1)
        # Rows tied with a kept prediction may come after it, so an interval begins below them.
        low = np.where(below < 0, -np.inf, np.nextafter(self.level[np.maximum(below, 0)], -np.inf))
        return np.column_stack([low, self.level[above]])

    def intervals(self, shares: Floats, slack: float) -> Floats:
        """Return intervals ( , ] that hold the quantiles at these shares, give or take so much of the weight."""
        running = np.cumsum(self.weight) / self.weight.sum()
        below = np.searchsorted(running, shares - slack, side="left") - 1
        above = np.minimum(np.searchsorted(running, shares + slack, side="left"), len(running) - 1)
        low = np.where(below < 0, -np.inf, np.nextafter(self.level[np.maximum(below, 0)], -np.inf))
        return np.column_stack([low, self.level[above]])


SPREAD = 8
"""Partitions that a rough sketch looks at."""
ROUGH_KEPT = 2**16
"""Predictions that the sketch of each of these keeps."""
KEPT = 2**20
"""Predictions that sketches of all partitions keep together."""


@dataclass(frozen=True, eq=False)
class Source:
    """The partitions of a table and the job to be done on them.

    Parameters
    ----------
    table : PartitionedTable
        The columns that are needed.
    job : Job
    map : Map, optional
        Of the predictions, before anything is asked of them.
    level_map : Map, optional
        The loss is taken at this map of the predictions, where it depends on the level; the predictions stay as they are.
    """

    table: PartitionedTable
    job: Job
    map: Map | None = None
    level_map: Map | None = None

    @cached_property
    def predictions(self) -> PartitionedTable:
        """Predictions and weights only: for passes that need no more."""
        roles = self.job.roles
        return self.table.select([name for name in (roles.prediction, roles.sample_weight) if name])

    @property
    def parts(self) -> int:
        """How many partitions there are."""
        return len(self.table.names)

    @property
    def kept(self) -> int:
        """Predictions that one partition's sketch keeps."""
        return int(np.clip(KEPT // max(self.parts, 1), 2**10, 2**16))

    @cached_property
    def sketch(self) -> Sketch:
        """Of all predictions."""
        return reduced(self.predictions, _sketch, Sketch.merge, self.job, self.map, self.kept)

    @cached_property
    def rough_sketch(self) -> Sketch:
        """Of the predictions of a few partitions, spread over all; of all where those have no rows."""
        found = each(self.predictions, _sketch, self.job, self.map, ROUGH_KEPT, parts=_spread(self.parts))
        few = [one for one in found if one is not None]
        return reduce(Sketch.merge, few) if few else self.sketch

    @property
    def is_rough(self) -> bool:
        """Whether the rough sketch is not that of all partitions."""
        return len(_spread(self.parts)) < self.parts

    def rough_then_whole(self, errors: float) -> Iterator[tuple[Sketch, float]]:
        """Yield the sketch of a few partitions, then that of all, each with how far off a share of the weight can be."""
        rough = self.rough_sketch
        seen = errors * 0.5 / np.sqrt(rough.counts.rows) if self.is_rough else 0.0
        yield rough, seen + 2 / ROUGH_KEPT
        if self.is_rough:
            yield self.sketch, 2 / self.kept + 2 * self.parts * self.sketch.counts.most / self.sketch.counts.total

    def bracketed(self, brackets: Floats) -> Bracketed:
        """Return sums between the ends of intervals, and the rows inside them."""
        return reduced(self.table, _bracketed, Bracketed.merge, self.job, self.map, brackets)

    def line(self) -> LineSums:
        """Return the moments of a straight line."""
        return reduced(self.table, _line, LineSums.merge, self.job, self.map, self.pivot)

    def cells(self, edges: Floats, *, bounded: bool = False) -> GridCells:
        """Return the sums of the cells between these edges."""
        return reduced(self.table, _cells, GridCells.merge, self.job, self.map, edges, bounded)

    def pairs(self, cells: int, steps: int) -> tuple[Floats, Any]:
        """Return (prediction, loss) of all rows, those with nearly the same prediction and outcome put together."""
        edges, outcomes = self.sketch.grid(cells), self.outcomes.grid(steps)
        highest = float(self.sketch.level[-1]), float(self.outcomes.level[-1])
        found = reduced(self.table, _pairs, Pairs.merge, self.job, self.map, self.level_map, edges, outcomes)
        return found.rows(self.like, edges, outcomes, highest)

    @cached_property
    def outcomes(self) -> Sketch:
        """Of all outcomes."""
        return reduced(self.table, _outcomes, Sketch.merge, self.job, self.kept)

    @cached_property
    def _first(self) -> tuple[Loss, float]:
        """The loss of a few rows, and the mean prediction of their partition."""
        for number in range(self.parts):
            (found,) = each(self.table, _few, self.job, self.map, parts=[number])
            if found is not None:
                return found
        raise OrthocalError("The data must have rows that count; every partition is empty, or of weight 0.")

    @property
    def _first_rows(self) -> Loss:
        return self._first[0]

    @property
    def pivot(self) -> float:
        """A prediction among the others, about which moments are taken."""
        return self._first[1]

    @property
    def like(self) -> Loss:
        """A loss of a few rows, of the kind that all have."""
        loss = without_overlap(self._first_rows)
        if self.job.origin is None or not hasattr(loss, "origin"):
            return loss
        return cast("Loss", replace(cast("Any", loss), origin=self.job.origin))

    @property
    def is_quadratic(self) -> bool:
        """Whether sums are enough for the loss."""
        return isinstance(self._first_rows, QuadraticLoss)

    @property
    def depends_on_level(self) -> bool:
        """Whether the loss is another at another level."""
        return getattr(self._first_rows, "distribution", None) is not None

    @property
    def has_overlap(self) -> bool:
        """Whether the loss tells how well treatment levels overlap."""
        return self._first_rows.overlap is not None


def _predicted(part: Any, job: Job, map_: Map | None) -> tuple[Floats, Floats | None]:
    """Predictions and weights of a partition; rows of weight 0 are left out."""
    roles = job.roles
    prediction = as_numbers(part[roles.prediction], "prediction")
    weight = None if roles.sample_weight is None else as_numbers(part[roles.sample_weight], "sample_weight")
    if weight is not None and not weight.all():
        prediction, weight = prediction[weight > 0], weight[weight > 0]
    return prediction if map_ is None else map_.predict(prediction), weight


def _sketch(part: Any, job: Job, map_: Map | None, keep: int) -> Sketch | None:
    prediction, weight = _predicted(part, job, map_)
    return Sketch.of(prediction, weight, keep) if len(prediction) else None


def prediction_and_loss(part: Any, job: Job, map_: Map | None) -> tuple[Floats, Any]:
    """Return the predictions of a partition, calibrated where there is a map, and their loss there."""
    prediction, loss = loss_of(part, job)
    if map_ is not None:
        prediction = map_.predict(prediction)
    return prediction, loss.at(prediction)


def _quadratic(part: Any, job: Job, map_: Map | None) -> tuple[Floats, QuadraticLoss]:
    prediction, loss = prediction_and_loss(part, job, map_)
    assert isinstance(loss, QuadraticLoss)  # noqa: S101  # others are not summed
    return prediction, loss


def _line(part: Any, job: Job, map_: Map | None, pivot: float) -> LineSums | None:
    prediction, loss = _quadratic(part, job, map_)
    return LineSums.of(prediction, loss, pivot) if len(prediction) else None


def _cells(part: Any, job: Job, map_: Map | None, edges: Floats, bounded: bool) -> GridCells | None:
    prediction, loss = _quadratic(part, job, map_)
    return GridCells.of(prediction, loss, edges, bounded=bounded) if len(prediction) else None


def _pairs(
    part: Any, job: Job, map_: Map | None, level_map: Map | None, edges: Floats, outcomes: Floats
) -> Pairs | None:
    prediction, loss = prediction_and_loss(part, job, map_)
    if level_map is not None:
        loss = loss.at(level_map.predict(prediction))
    return Pairs.of(prediction, loss, edges, outcomes) if len(prediction) else None


def _outcomes(part: Any, job: Job, keep: int) -> Sketch | None:
    prediction, loss = loss_of(part, job)
    if not hasattr(loss, "outcome"):
        raise UnavailableError(
            f"A {type(loss).__name__} must have outcomes to be put on a grid; it has none. Calibrate a sample in memory."
        )
    return Sketch.of(loss.outcome, None, keep) if len(prediction) else None


def _bracketed(part: Any, job: Job, map_: Map | None, brackets: Floats) -> Bracketed | None:
    prediction, loss = _quadratic(part, job, map_)
    return Bracketed.of(prediction, loss, brackets) if len(prediction) else None


def _spread(parts: int) -> list[int]:
    """Return a few partitions, from the first to the last."""
    return np.unique(np.linspace(0, parts - 1, SPREAD).astype(int)).tolist() if parts else []


def _few(part: Any, job: Job, map_: Map | None) -> tuple[Loss, float] | None:
    prediction, loss = prediction_and_loss(part, job, map_)
    return (loss[np.arange(min(len(loss), 2))], float(prediction.mean())) if len(prediction) else None
