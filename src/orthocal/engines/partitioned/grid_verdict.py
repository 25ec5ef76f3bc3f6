"""The default verdict: from one pass of sums by cells of the prediction, in which no row moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, distinct, sorting_order_and_sorted
from orthocal.assessment import Assessment
from orthocal.assessment.assess import judge
from orthocal.assessment.parts import TestResult
from orthocal.assessment.records import Settings
from orthocal.assessment.subgroups import MOST_LEVELS, missing_last
from orthocal.assessment.sweeps import Rows
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.engines.partitioned.grid import CellRows, MomentCells
from orthocal.engines.partitioned.grid_cells import CELLS, UNEVEN
from orthocal.engines.partitioned.kept_rows import KeptRows, cells_inside, finer_ends
from orthocal.engines.partitioned.partition_loss import Job
from orthocal.engines.partitioned.passes import reduced
from orthocal.engines.partitioned.ranges import subgroup_of
from orthocal.engines.partitioned.sketch import Sketch
from orthocal.engines.partitioned.source import SPREAD_ERRORS, Source, prediction_and_loss
from orthocal.engines.partitioned.summed_overlap import SummedOverlap, summed_overlap_of, warned
from orthocal.errors import OrthocalError
from orthocal.formats import number
from orthocal.losses import Loss, QuadraticLoss
from orthocal.losses.counting import REACHED
from orthocal.maps import Map
from orthocal.solvers.monotone import Blocks

GROUP_CELLS = 2**12
"""Of a subgroup."""
WIDEST, FINER, MOST_WIDE = 2**7, 2**13, 2**22
"""Cells that are divided once all rows are seen; the cells they are divided into; and the rows that are kept for it, at most."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells, and the intervals ( , ] whose rows are kept as they are: those in which edges of bins are sought, and wide cells.

    Predictions inside them that many rows may share, the `shared` ones, have a cell each instead: no row of theirs is kept.
    """

    finder: CellFinder
    brackets: Floats
    wide: Floats
    shared: Floats

    @cached_property
    def cells_of_shared(self) -> Integers:
        """The cells of shared predictions."""
        return np.searchsorted(self.finder.edges, self.shared, side="left").astype(np.int64)

    @cached_property
    def covered(self) -> Booleans:
        """Which cells lie in a bracket, but for those of shared predictions."""
        return self._kept_in(self.brackets)

    @cached_property
    def divided(self) -> Booleans:
        """Which cells are divided in the end: wide ones outside of brackets."""
        return self._kept_in(self.wide) & ~self.covered

    @cached_property
    def kept(self) -> Booleans:
        """Cells whose rows are kept."""
        return self.covered | self.divided

    def _kept_in(self, intervals: Floats) -> Booleans:
        inside = cells_inside(self.finder.edges, intervals)
        inside[self.cells_of_shared] = False
        return inside

    @classmethod
    def of(cls, sketch: Sketch, settings: Settings, slack: float, cells: int) -> Grid:
        """Cells of about equal weight, with the cost among their ends."""
        brackets = sketch.intervals(np.arange(1, settings.bins) / settings.bins, slack)
        wide, shared = sketch.widest(cells, WIDEST), sketch.shared
        intervals = np.concatenate([brackets, wide])
        shared = shared[cells_inside(shared, intervals)[:-1]]
        ends = np.concatenate([shared, np.nextafter(shared, -np.inf), intervals.ravel()])
        more = np.append(ends[np.isfinite(ends)], [] if settings.cost is None else [settings.cost])
        return cls(sketch.finder(cells, more), brackets, wide, shared)

    def narrowed(self, cells: MomentCells, wanted: Floats) -> Grid:
        """Return brackets of a few cells, in which so much weight is reached; nothing where that is outside its bracket.

        With fewer rows than bins the lowest brackets have no edge, and are left out.
        """
        brackets = self.brackets[len(self.brackets) - len(wanted) :]
        place = np.searchsorted(np.cumsum(cells.weight.sum(axis=0)), wanted * REACHED, side="left")
        ends = np.concatenate([[-np.inf, -np.inf], self.finder.edges, [np.inf, np.inf, np.inf]])
        low, high = ends[place], ends[place + 3]  # a cell at either side, for rounding
        brackets = np.column_stack([np.maximum(brackets[:, 0], low), np.minimum(brackets[:, 1], high)])
        return replace(self, brackets=brackets)


@dataclass(frozen=True, eq=False)
class VerdictSums:
    """All that a verdict needs of some rows.

    Parameters
    ----------
    cells : MomentCells
        Of all rows.
    inside : KeptRows
        Rows inside a bracket.
    wide : KeptRows, optional
        Rows of wide cells; None where they are too many.
    groups : dict of (str, label) to MomentCells
        Of subgroups.
    overlap : SummedOverlap, optional
    """

    cells: MomentCells
    inside: KeptRows
    wide: KeptRows | None = None
    groups: Mapping[tuple[str, Any], MomentCells] = field(default_factory=dict)
    overlap: SummedOverlap | None = None

    def merge(self, other: VerdictSums) -> VerdictSums:
        """Of both."""
        groups = dict(self.groups)
        for name, cells in other.groups.items():
            groups[name] = groups[name].merge(cells) if name in groups else cells
        overlap = self.overlap if other.overlap is None else other.overlap
        if self.overlap is not None and other.overlap is not None:
            overlap = self.overlap.merge(other.overlap)
        wide = None if self.wide is None or other.wide is None else self.wide.merge(other.wide)
        return VerdictSums(
            self.cells.merge(other.cells),
            self.inside.merge(other.inside),
            None if wide is None or wide.count > MOST_WIDE else wide,
            groups,
            overlap,
        )

    def settled(self, grid: Grid, bins: int) -> MomentCells | None:
        """Return the cells of all rows, with the exact edges of bins among their ends; None where a bracket has missed one.

        Wide cells are divided, in which the order of rows would be lost, and with it how effects vary with the prediction.
        """
        wanted, divided = self.cells.counts.weight_at_edges(bins), grid.divided
        narrow = grid.narrowed(self.cells, wanted)
        rows = self.inside.picked(lambda level: narrow.covered.take(grid.finder.cells(level)))
        found = _edges_in(narrow, wanted, rows, self.cells.weight.sum(axis=0))
        if found is None:
            return None
        if self.wide is None:
            divided = np.zeros_like(divided)
        elif self.wide.count:
            wide = self.wide.picked(lambda level: np.ones(len(level), dtype=bool))
            found += finer_ends(wide.level, grid.finder.cells(wide.level), FINER).tolist()
            rows = Blocks.together([rows, wide])
        finder = CellFinder.of(distinct(np.sort(np.append(grid.finder.edges, found), kind="stable")))
        cells = self.cells.without(narrow.covered | divided).moved(finder.edges)
        if len(rows.level):
            same = self.cells.kind.same
            loss = QuadraticLoss(rows.numerator, rows.denominator, rows.denominator if same else rows.weight)
            cells = cells.merge(MomentCells.of(rows.level, loss, finder))
        return replace(cells, counts=self.cells.counts, least=self.cells.least, ends=self.cells.ends)


def _edges_in(grid: Grid, wanted: Floats, rows: Blocks, weight: Floats) -> list[float] | None:
    """Return the predictions at which so much weight is reached, each in its bracket; None where one is not there.

    They are those of single rows, or shared ones, whose cells have the weights of all their rows.
    """
    level = np.concatenate([rows.level, grid.shared])
    order, level = sorting_order_and_sorted(level)
    held = np.concatenate([rows.weight, weight[grid.cells_of_shared]])[order]
    outside = np.where(grid.covered, 0.0, weight)
    outside[grid.cells_of_shared] = 0.0
    found = []
    for reach, (low, high) in zip(wanted, grid.brackets, strict=True):
        first, last = np.searchsorted(level, [low, high], side="right")
        below = outside[: np.searchsorted(grid.finder.edges, low, side="right")].sum() + held[:first].sum()
        place = np.searchsorted(below + np.cumsum(held[first:last]), reach * REACHED, side="left")
        if place >= last - first or below >= reach * REACHED:
            return None
        found.append(float(level[first + place]))
    return found


def judged_on_grid(source: Source, settings: Settings) -> Assessment:
    """Return the verdict on a source's predictions: sums over bins are exact, and the rest nearly so.

    Bins are those of the exact verdict, and so are their moments. What looks at the order of single rows (the range of
    cumulative residuals, the ranking, the decomposition) sees cells of the prediction instead.
    """
    found, cells = _sums(source, settings)
    like = replace_rows(source.like, cells.counts.rows)
    if found.overlap is not None:
        warned(found.overlap)
    rows = CellRows(cells, like)
    verdict = judge(rows, settings, _groups(found, source.job.roles.by, like), found.overlap)
    return _with_bound(_with_losses(verdict, cells.lost(rows.piece)), cells)


def _sums(source: Source, settings: Settings) -> tuple[VerdictSums, MomentCells]:
    """Sum up rows by a grid of a few partitions; by one of all where these are unlike the others."""
    best: tuple[VerdictSums, MomentCells] | None = None
    for sketch, slack in source.rough_then_whole(SPREAD_ERRORS):
        grid, coarse = Grid.of(sketch, settings, slack, CELLS), sketch.finder(GROUP_CELLS)
        found = reduced(source.table, _verdict_sums, VerdictSums.merge, source.job, source.map, grid, coarse)
        cells = found.settled(grid, settings.bins)
        if cells is not None:
            best = found, cells
            if not cells.is_uneven(UNEVEN):
                return best
    if best is None:
        raise AssertionError("the bracket of a quantile does not hold it")
    return best


def _verdict_sums(part: Any, job: Job, map_: Map | None, grid: Grid, coarse: CellFinder) -> VerdictSums | None:
    prediction, loss = prediction_and_loss(part, job, map_)
    if not len(prediction):
        return None
    cell = grid.finder.cells(prediction)
    kept = np.flatnonzero(grid.kept.take(cell))
    is_wide = grid.divided.take(cell.take(kept))
    return VerdictSums(
        MomentCells.in_cells(cell, prediction, loss, grid.finder.edges),
        KeptRows.of(prediction, loss, kept[~is_wide]),
        KeptRows.of(prediction, loss, kept[is_wide]),
        dict(_cells_of_groups(part, job, prediction, loss, coarse)),
        summed_overlap_of(loss),
    )


def _cells_of_groups(
    part: Any, job: Job, prediction: Floats, loss: QuadraticLoss, finder: CellFinder
) -> Iterator[tuple[tuple[str, Any], MomentCells]]:
    weight = job.roles.sample_weight
    rows = part if weight is None else part[part[weight] != 0]
    for name in job.roles.by:
        values = subgroup_of(rows[name], name)
        levels = sorted(set(values.tolist()), key=missing_last)
        if len(levels) > MOST_LEVELS:
            raise OrthocalError(
                f"`by` must name columns of at most {MOST_LEVELS} values; {name!r} has more. Group them."
            )
        for level in levels:
            own = np.flatnonzero(values == level)
            yield (name, level), MomentCells.of(prediction[own], loss[own], finder)


def _groups(found: VerdictSums, by: tuple[str, ...], like: Loss) -> Iterator[tuple[str, str, Rows]]:
    for name in by:
        levels = sorted((level for column, level in found.groups if column == name), key=missing_last)
        if len(levels) > MOST_LEVELS:
            raise OrthocalError(
                f"`by` must name columns of at most {MOST_LEVELS} values; {name!r} has more. Group them."
            )
        for level in levels:
            yield name, str(level), CellRows(found.groups[name, level], like)


def replace_rows(like: Any, rows: int) -> Any:
    """Return the loss with the number of rows it stands for in its origin."""
    origin = getattr(like, "origin", None)
    return like if origin is None or origin.rows else replace(like, origin=replace(origin, rows=rows))


def _with_losses(verdict: Assessment, lost: float) -> Assessment:
    """Put the mean loss right, and what the best constant leaves of it: entries have the moments of rows, but not n^2 / 2d."""
    parts = verdict.decomposition
    if parts.uncertainty is not None:
        parts = replace(parts, uncertainty=parts.uncertainty + lost)
    return replace(verdict, risk=verdict.risk + lost, decomposition=parts)


def _with_bound(verdict: Assessment, cells: MomentCells) -> Assessment:
    """Say how much the range test can have missed inside the cells."""
    test, excursion = verdict.tests["range"], cells.excursion()
    if test.statistic is None or not excursion > 0 or not cells.reach > 0:
        return verdict
    missed = 2 * excursion * test.statistic / cells.reach
    note = f"{test.note}, on a grid, where a walk's range is smaller by at most {number(missed)}"
    return replace(verdict, tests={**verdict.tests, "range": TestResult(test.statistic, test.p_value, note)})
