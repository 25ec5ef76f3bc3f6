"""Where predictions lie, roughly: enough of them to place cells and to bracket quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orthocal.arrays import Floats, distinct, is_sorted
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.losses.counting import Counts

HEAVY = 1 / 16
"""Share of the edges that may be predictions which by themselves hold the weight of two cells, for the others to move."""


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
            level = prediction if is_sorted(prediction) else np.sort(prediction)
            place = distinct(np.linspace(0, len(level) - 1, min(keep, len(level))).astype(np.int64))
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

    @property
    def shared(self) -> Floats:
        """Predictions that are kept more than once: several rows have them, and maybe many."""
        return distinct(self.level[1:][self.level[1:] == self.level[:-1]])

    def grid(self, cells: int) -> Floats:
        """Return the inner edges of cells of nearly equal weight."""
        ends = self._quantiles(cells)
        return distinct(ends[ends < self.level[-1]])

    def widest(self, cells: int, many: int) -> Floats:
        """Return the widest of the cells ( , ] of that grid, the first and the last among them."""
        ends = np.concatenate([[-np.inf], self.grid(cells), [np.inf]])
        widest = np.sort(np.argsort(np.diff(ends), kind="stable")[-many:])
        return np.column_stack([ends[widest], ends[widest + 1]])

    def _quantiles(self, cells: int) -> Floats:
        """Return the ends of cells of equal weight, as often as cells end there; all predictions where these are fewer."""
        if len(self.level) <= cells:
            return self.level
        running = np.cumsum(self.weight)
        place = np.searchsorted(running, np.arange(1, cells) * running[-1] / cells)
        return np.asarray(self.level[place])

    def finder(self, cells: int, exact: Floats | None = None) -> CellFinder:
        """Return cells of nearly equal weight, with exact edges among theirs.

        Edges lie a little higher than predictions, since cells are found faster then; but a prediction that by itself holds the
        weight of two cells has its own. Where many do, edges are predictions; where there are no more predictions than cells,
        each has its own.
        """
        more, levels = np.empty(0) if exact is None else exact, distinct(self.level)
        if len(levels) <= cells:
            return CellFinder.of(distinct(np.sort(np.append(levels[:-1], more), kind="stable")))
        edges, ends = self.grid(cells), self._quantiles(cells)
        heavy = distinct(ends[1:][ends[1:] == ends[:-1]])
        if len(heavy) < HEAVY * len(edges):
            own = np.append(heavy[heavy < self.level[-1]], np.nextafter(heavy, -np.inf))
            return CellFinder.near(edges, np.append(own, more))
        return CellFinder.of(distinct(np.sort(np.append(edges, more), kind="stable")))

    def intervals(self, shares: Floats, slack: float) -> Floats:
        """Return intervals ( , ] that hold the quantiles at these shares, give or take so much of the weight.

        A part's sketch is off by at most one of its steps; twice all of them is on the safe side.
        """
        running = np.cumsum(self.weight) / self.weight.sum()
        below = np.searchsorted(running, shares - slack, side="left") - 1
        above = np.minimum(np.searchsorted(running, shares + slack, side="left"), len(running) - 1)
        # Rows tied with a kept prediction may come after it, so an interval begins below them.
        low = np.where(below < 0, -np.inf, np.nextafter(self.level[np.maximum(below, 0)], -np.inf))
        return np.column_stack([low, self.level[above]])
