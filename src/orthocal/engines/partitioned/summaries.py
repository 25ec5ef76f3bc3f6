"""Summaries of rows that can be merged: what maps are fitted from when rows cannot be gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, group_sums, is_constant, sorting_order_and_sorted, taken
from orthocal.engines.partitioned.cell_finder import CellFinder, sums_in_cells
from orthocal.errors import require_positive_mass
from orthocal.losses import QuadraticLoss, of_columns
from orthocal.losses.counting import REACHED, Counts
from orthocal.solvers.affine import line_of
from orthocal.solvers.monotone import Blocks, pool


class LineSums(NamedTuple):
    r"""Moments of a straight line about a pivot, which is the same for all parts.

    Parameters
    ----------
    sums : array
        :math:`\sum d, \sum n, \sum dx, \sum nx, \sum dx^2` with :math:`x` the prediction minus the pivot.
    low, high : float
        Range of the predictions.
    rows : int
    """

    sums: Floats
    low: float
    high: float
    rows: int

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, pivot: float) -> LineSums:
        """Of some rows."""
        x, n, d = prediction - pivot, loss.numerator, loss.denominator
        sums = np.array([d.sum(), n.sum(), d @ x, n @ x, (d * x) @ x])
        return cls(sums, float(prediction.min()), float(prediction.max()), len(prediction))

    def merge(self, other: LineSums) -> LineSums:
        """Of both."""
        return LineSums(
            self.sums + other.sums, min(self.low, other.low), max(self.high, other.high), self.rows + other.rows
        )

    @property
    def average(self) -> float:
        """The best constant."""
        mass, numerator = self.sums[:2].tolist()
        require_positive_mass(mass)
        return float(numerator / mass)

    def middle(self, pivot: float) -> float:
        """Return the average prediction, by mass."""
        require_positive_mass(float(self.sums[0]))
        return pivot + float(self.sums[2] / self.sums[0])

    def coefficients(self, pivot: float) -> tuple[float, float]:
        """Return (intercept, slope) of the best line."""
        mass, numerator, first, pulled, second = self.sums.tolist()
        require_positive_mass(mass)
        if self.low == self.high:
            return numerator / mass, 0.0
        shift = first / mass
        return line_of(numerator / mass, pivot + shift, second - shift * first, pulled - shift * numerator)


WORTH_IT = 0.75
"""Share of the rows that must be left when tied ones are put together, at most, for it to be worth doing again."""


@dataclass(frozen=True, eq=False)
class Bracketed:
    """Sums of rows between the ends of some intervals, and the rows inside them, tied ones together.

    Parameters
    ----------
    ends : array
        Of the intervals, each once.
    sums : array of shape (3, cells)
        Numerators, denominators and weights between the ends.
    inside : Blocks
        Predictions inside an interval.
    highest : float
        Prediction.
    counts : Counts
    room : float
        How many of them are kept before tied ones are put together: twice as many as were left the last time. Where that saves
        little, it is done only once more, when the bins are cut.
    """

    ends: Floats
    sums: Floats
    inside: Blocks
    highest: float
    counts: Counts
    room: float

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, brackets: Floats) -> Bracketed:
        """Of some rows."""
        ends = np.unique(brackets[np.isfinite(brackets)])
        cell, count = CellFinder.of(ends).cells(prediction), len(ends) + 1
        columns = (loss.numerator, loss.denominator, loss.weight)
        rows_of = sums_in_cells(cell, None, count)
        sums = np.array(
            [column[0] * rows_of if is_constant(column) else sums_in_cells(cell, column, count) for column in columns]
        )
        rows = np.flatnonzero(_covered(ends, brackets).take(cell))
        inside = _pooled_ties(Blocks(*(taken(column, rows) for column in (prediction, *columns))))
        highest, counts = float(prediction.max()), Counts.of(loss.weight, len(loss))
        return cls(ends, sums, inside, highest, counts, 2 * len(inside.level))

    def merge(self, other: Bracketed) -> Bracketed:
        """Of both."""
        inside, room = Blocks.together([self.inside, other.inside]), max(self.room, other.room)
        if (before := len(inside.level)) > room:
            inside = _pooled_ties(inside)
            room = 2 * len(inside.level) if len(inside.level) < WORTH_IT * before else np.inf
        highest, counts = max(self.highest, other.highest), self.counts.merge(other.counts)
        return Bracketed(self.ends, self.sums + other.sums, inside, highest, counts, room)

    def bins(self, bins: int, brackets: Floats) -> tuple[Floats, Floats, Floats] | None:
        """Return (edges, numerators, denominators) of bins of equal weight; None where a bracket has missed an edge."""
        wanted, inside = self.counts.weight_at_edges(bins), _pooled_ties(self.inside)
        brackets = brackets[len(brackets) - len(wanted) :]  # with fewer rows than bins the lowest have no edge
        running, found = np.concatenate([[0.0], np.cumsum(self.sums[2])]), []
        for reach, (low, high) in zip(wanted, brackets, strict=True):
            below = running[np.searchsorted(self.ends, low, side="right")] if np.isfinite(low) else 0.0
            a, b = np.searchsorted(inside.level, [low, high], side="right")
            place = np.searchsorted(below + np.cumsum(inside.weight[a:b]), reach * REACHED, side="left")
            if place >= b - a or below >= reach:
                return None
            found.append(float(inside.level[a + place]))
        edges = np.array(sorted({edge for edge in found if edge < self.highest}))
        outside = np.flatnonzero(~_covered(self.ends, brackets))
        level = np.concatenate([np.append(self.ends, np.inf)[outside], inside.level])
        place = np.searchsorted(edges, level, side="left").astype(np.int64)
        pairs = zip(self.sums[:2], (inside.numerator, inside.denominator), strict=True)
        n, d = (group_sums(place, np.concatenate([sums[outside], own]), len(edges) + 1) for sums, own in pairs)
        return edges, n, d


def _covered(ends: Floats, brackets: Floats) -> Booleans:
    """Return which of the cells between the ends lie in an interval ( , ]; all of a cell does, or nothing."""
    upper = np.append(ends, np.inf)[:, None]
    return np.asarray(((upper > brackets[:, 0]) & (upper <= brackets[:, 1])).any(axis=1))


def _pooled_ties(blocks: Blocks) -> Blocks:
    """Return the blocks in order, those of one prediction together."""
    order, level = sorting_order_and_sorted(blocks.level)
    columns = [column[order] for column in blocks[1:]]
    rises = np.flatnonzero(level[1:] != level[:-1])
    tied = len(rises) + 1 < len(level)
    return Blocks(*pool(level, rises, *columns)) if tied else Blocks(level, *columns)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sums of a loss with outcomes by pairs of a cell of the prediction and a step of the outcome: the pairs that occur.

    Quantiles follow any increasing change of the outcome. So the best nondecreasing map of the hinge loss on cells, with
    outcomes moved up to their step, is that of the outcomes as they are, moved up: off by less than a step.
    """

    code: Integers
    slope: Floats
    tilt: Floats
    weight: Floats

    @classmethod
    def of(cls, prediction: Floats, loss: Any, edges: Floats, outcomes: Floats) -> Pairs:
        """Of some rows."""
        cell = np.searchsorted(edges, prediction, side="left")
        step = np.searchsorted(outcomes, loss.outcome, side="left")
        return cls._summed(cell * (len(outcomes) + 1) + step, loss.slope, loss.tilt, loss.weight)

    @classmethod
    def _summed(cls, code: Integers, *columns: Floats) -> Pairs:
        codes, place = np.unique(code, return_inverse=True)
        slope, tilt, weight = (group_sums(place, column, len(codes)) for column in columns)
        return cls(codes, slope, tilt, weight)

    def merge(self, other: Pairs) -> Pairs:
        """Of both."""
        both = zip(*((p.code, p.slope, p.tilt, p.weight) for p in (self, other)), strict=True)
        code, *columns = (np.concatenate(pair) for pair in both)
        return self._summed(code, *columns)

    def rows(self, like: Any, edges: Floats, outcomes: Floats, highest: tuple[float, float]) -> tuple[Floats, Any]:
        """Return (prediction, loss) with one row for each pair: its cell's and its step's upper edge."""
        cell, step = np.divmod(self.code, len(outcomes) + 1)
        columns = {
            "outcome": np.append(outcomes, highest[1])[step],
            "slope": self.slope,
            "tilt": self.tilt,
            "offset": np.zeros(len(self.code)),
            "weight": self.weight,
        }
        return np.append(edges, highest[0])[cell], of_columns(like, columns)
