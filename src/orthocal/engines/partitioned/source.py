"""Partitions and what can be asked of them: sketches, sums, rows in the order of their predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, cast

import numpy as np

from orthocal.arrays import Floats
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.engines.partitioned.grid_cells import CELLS, GridCells
from orthocal.engines.partitioned.keys import keys_of, sampled
from orthocal.engines.partitioned.partition_loss import Job, loss_of, unconverted
from orthocal.engines.partitioned.passes import each, reduced
from orthocal.engines.partitioned.sketch import Sketch
from orthocal.engines.partitioned.summaries import Bracketed, LineSums, Pairs
from orthocal.engines.protocol import PartitionedTable
from orthocal.errors import OrthocalError, UnavailableError
from orthocal.losses import Loss, QuadraticLoss, joined, without_overlap
from orthocal.maps import Map
from orthocal.observations import as_numbers

SPREAD_ERRORS = 4.5
"""Standard errors of a quantile of the partitions that were looked at, within which that of all rows is sought.

All rows inside are kept until the end; where a quantile lies outside, which is seen, another pass is made."""
SPREAD, LOOKED_AT = 8, 2**19
"""Partitions that a rough sketch looks at; and rows of each of them, one of every few that follow each other."""
MOST_SEEN = 0.05
"""How far off a share of the weight can be for a rough sketch to be used: all rows within it are kept."""
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
    def share_looked_at(self) -> float:
        """Of the partitions, how many a rough sketch looks at."""
        return len(_spread(self.parts)) / self.parts

    @property
    def kept(self) -> int:
        """Predictions that one partition's sketch keeps."""
        return int(np.clip(KEPT // max(self.parts, 1), 2**10, 2**16))

    @cached_property
    def sketch(self) -> Sketch:
        """Of all predictions."""
        return reduced(self.predictions, _sketch, Sketch.merge, self.job, self.map, self.kept)

    @cached_property
    def _rough(self) -> tuple[Sketch | None, int]:
        """Some rows of a few partitions, spread over all; and how many rows these have."""
        found = each(self.predictions, _looked_at, self.job, self.map, parts=_spread(self.parts))
        few = [one for one in found if one is not None]
        return reduce(Sketch.merge, [sketch for sketch, _ in few]) if few else None, sum(rows for _, rows in few)

    @property
    def rough_sketch(self) -> Sketch:
        """Of some predictions of a few partitions; of all where those have no rows."""
        return self._rough[0] or self.sketch

    @property
    def is_rough(self) -> bool:
        """Whether the rough sketch is not that of all rows."""
        sketch, rows = self._rough
        return sketch is not None and (self.share_looked_at < 1 or sketch.counts.rows < rows)

    @property
    def about_rows(self) -> float:
        """How many rows there are, judging by the partitions that were looked at."""
        sketch, rows = self._rough
        return self.sketch.counts.rows if sketch is None else rows / self.share_looked_at

    def rough_then_whole(self, errors: float) -> Iterator[tuple[Sketch, float]]:
        """Yield the sketch of a few partitions, then that of all, each with how far off a share of the weight can be."""
        rough = self.rough_sketch
        seen = errors * 0.5 / np.sqrt(rough.counts.rows) if self.is_rough else 0.0
        if seen <= MOST_SEEN:
            yield rough, seen + 2 / ROUGH_KEPT
        if self.is_rough:
            counts = self.sketch.counts
            yield self.sketch, 2 / self.kept + 2 * self.parts * counts.most / counts.total

    def bracketed(self, brackets: Floats) -> Bracketed:
        """Return sums between the ends of intervals, and the rows inside them."""
        return reduced(self.table, _bracketed, Bracketed.merge, self.job, self.map, brackets)

    @cached_property
    def line(self) -> LineSums:
        """Return the moments of a straight line."""
        return reduced(self.table, _line, LineSums.merge, self.job, self.map, self.pivot)

    def cells(self, finder: CellFinder) -> GridCells:
        """Return the sums of cells."""
        return reduced(self.table, _cells, GridCells.merge, self.job, self.map, finder)

    @cached_property
    def grid(self) -> GridCells:
        """Sums of the cells of a fine grid, drawn by a few partitions, or by all where those are unlike the others."""
        found = self.cells(self.rough_sketch.finder(CELLS))
        return self.cells(self.sketch.finder(CELLS)) if found.is_uneven and self.is_rough else found

    def sample(self, rows: int) -> tuple[Floats, Any]:
        """Return (prediction, loss) of about so many rows, drawn by a seeded hash of what they hold."""
        share = min(1.0, rows / self.grid.counts.rows)
        drawn = [one for one in each(self.table, _drawn, self.job, self.map, share) if one is not None]
        return np.concatenate([own for own, _ in drawn]), joined([loss for _, loss in drawn])

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
        raise OrthocalError("The data must have rows of positive weight; every partition is empty, or of weight 0.")

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
        """Whether the loss knows how well treatment arms overlap."""
        return self._first_rows.overlap is not None


def _predicted(part: Any, job: Job, map_: Map | None) -> tuple[Floats, Floats | None]:
    """Predictions and weights of a partition; rows of weight 0 are left out."""
    roles = job.roles
    prediction = as_numbers(unconverted(part[roles.prediction]), "prediction")
    weight = (
        None if roles.sample_weight is None else as_numbers(unconverted(part[roles.sample_weight]), "sample_weight")
    )
    if weight is not None and not weight.all():
        prediction, weight = prediction[weight > 0], weight[weight > 0]
    return prediction if map_ is None else map_.predict(prediction), weight


def _sketch(part: Any, job: Job, map_: Map | None, keep: int) -> Sketch | None:
    prediction, weight = _predicted(part, job, map_)
    return Sketch.of(prediction, weight, keep) if len(prediction) else None


def _looked_at(part: Any, job: Job, map_: Map | None) -> tuple[Sketch, int] | None:
    """Sketch of some rows, one drawn of every few that follow each other; and how many there are."""
    prediction, weight = _predicted(part, job, map_)
    if not len(prediction):
        return None
    few = -(-len(prediction) // LOOKED_AT)
    rows = np.arange(0, len(prediction) - few + 1, few)
    rows += np.random.default_rng(job.seed).integers(few, size=len(rows))
    return Sketch.of(prediction[rows], None if weight is None else weight[rows], ROUGH_KEPT), len(prediction)


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


def _cells(part: Any, job: Job, map_: Map | None, finder: CellFinder) -> GridCells | None:
    prediction, loss = _quadratic(part, job, map_)
    return GridCells.of(prediction, loss, finder, bounded=True) if len(prediction) else None


def _drawn(part: Any, job: Job, map_: Map | None, share: float) -> tuple[Floats, Any] | None:
    import pandas as pd

    prediction, loss = prediction_and_loss(part, job, map_)
    key = keys_of(pd.DataFrame({"prediction": prediction, "numerator": loss.numerator}))
    rows = np.flatnonzero(sampled(key, share, job.seed))
    return (prediction[rows], without_overlap(loss[rows])) if len(rows) else None


def _pairs(
    part: Any, job: Job, map_: Map | None, level_map: Map | None, edges: Floats, outcomes: Floats
) -> Pairs | None:
    prediction, loss = prediction_and_loss(part, job, map_)
    if level_map is not None:
        loss = loss.at(level_map.predict(prediction))
    return Pairs.of(prediction, loss, edges, outcomes) if len(prediction) else None


def _outcomes(part: Any, job: Job, keep: int) -> Sketch | None:
    prediction, found = loss_of(part, job)
    loss: Any = found
    lacking = [name for name in ("outcome", "slope", "tilt") if not hasattr(loss, name)]
    if lacking:
        raise UnavailableError(
            f"A {type(loss).__name__} must be quadratic, or have outcome, slope and tilt, to be summed up in partitions; it has "
            f"no {lacking[0]}. Calibrate a sample in memory."
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
