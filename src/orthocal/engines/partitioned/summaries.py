"""Summaries of rows that can be merged: what maps are fitted from when rows cannot be gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums, is_constant
from orthocal.engines.partitioned.cell_finder import CellFinder, sums_in_cells
from orthocal.engines.partitioned.kept_rows import KeptRows, cells_inside
from orthocal.errors import require_positive_mass
from orthocal.losses import QuadraticLoss, of_columns
from orthocal.losses.counting import REACHED, Counts
from orthocal.solvers.affine import line_of


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


PIECES, MOST_PIECES = 32, 2**12
"""Cells that a bracket is divided into, and all brackets together about: fewer rows are looked at in the end."""


@dataclass(frozen=True, eq=False)
class Bracketed:
    """Sums of rows in cells between the ends of brackets, finer inside them, and the rows inside.

    Parameters
    ----------
    ends : array
        Of the cells ( , ], each once.
    sums : array of shape (3, cells)
        Numerators, denominators and weights.
    inside : KeptRows
        Rows inside a bracket.
    highest : float
        Prediction.
    counts : Counts
    room : float
        How many rows are kept before tied ones are put together: twice as many as were left the last time; any number once that
        has saved little.
    """

    ends: Floats
    sums: Floats
    inside: KeptRows
    highest: float
    counts: Counts
    room: float

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, brackets: Floats) -> Bracketed:
        """Of some rows."""
        ends = _ends_in(brackets)
        cell, count = CellFinder.of(ends).cells(prediction), len(ends) + 1
        columns = (loss.numerator, loss.denominator, loss.weight)
        rows_of = sums_in_cells(cell, None, count)
        sums = np.array(
            [column[0] * rows_of if is_constant(column) else sums_in_cells(cell, column, count) for column in columns]
        )
        inside = KeptRows.of(prediction, loss, np.flatnonzero(cells_inside(ends, brackets).take(cell))).pooled()
        highest, counts = float(prediction.max()), Counts.of(loss.weight, len(loss))
        return cls(ends, sums, inside, highest, counts, 2 * inside.count)

    def merge(self, other: Bracketed) -> Bracketed:
        """Of both."""
        inside, room = self.inside.merge(other.inside), max(self.room, other.room)
        if (before := inside.count) > room:
            inside = inside.pooled()
            room = 2 * inside.count if inside.count < before else np.inf
        highest, counts = max(self.highest, other.highest), self.counts.merge(other.counts)
        return Bracketed(self.ends, self.sums + other.sums, inside, highest, counts, room)

    def bins(self, bins: int, brackets: Floats) -> tuple[Floats, Floats, Floats] | None:
        """Return (edges, numerators, denominators) of bins of equal weight; None where a bracket has missed an edge."""
        wanted = self.counts.weight_at_edges(bins)
        brackets = brackets[len(brackets) - len(wanted) :]  # with fewer rows than bins the lowest have no edge
        below = np.concatenate([[0.0], np.cumsum(self.sums[2])])
        first, last = self._around(wanted * REACHED, brackets, below)
        looked_at = np.zeros(len(below) - 1, dtype=bool)
        for a, b in zip(first, last, strict=True):
            looked_at[a : b + 1] = True
        finder = CellFinder.of(self.ends)
        rows = self.inside.picked(lambda level: looked_at.take(finder.cells(level)))
        lower, upper = np.append(-np.inf, self.ends), np.append(self.ends, np.inf)
        found = []
        for reach, a, b in zip(wanted, first, last, strict=True):
            low, high = np.searchsorted(rows.level, [lower[a], upper[b]], side="right")
            place = np.searchsorted(below[a] + np.cumsum(rows.weight[low:high]), reach * REACHED, side="left")
            if place >= high - low or below[a] >= reach * REACHED:
                return None
            found.append(float(rows.level[low + place]))
        edges = np.array(sorted({edge for edge in found if edge < self.highest}))
        whole = np.flatnonzero(~looked_at)
        place = np.searchsorted(edges, np.concatenate([upper[whole], rows.level]), side="left").astype(np.int64)
        pairs = zip(self.sums[:2], (rows.numerator, rows.denominator), strict=True)
        n, d = (group_sums(place, np.concatenate([sums[whole], own]), len(edges) + 1) for sums, own in pairs)
        return edges, n, d

    def _around(self, wanted: Floats, brackets: Floats, below: Floats) -> tuple[Integers, Integers]:
        """Return the first and the last of the cells of each bracket in which so much weight is reached: one either side, too."""
        cell = np.searchsorted(below, wanted, side="left") - 1
        first = np.searchsorted(self.ends, brackets[:, 0], side="right")
        last = np.searchsorted(self.ends, brackets[:, 1], side="left")
        return np.maximum(cell - 1, first), np.minimum(cell + 1, last)


def _ends_in(brackets: Floats) -> Floats:
    """Return the ends of brackets, and of cells of equal width inside them."""
    ends = [brackets[np.isfinite(brackets)]]
    pieces = max(1, min(PIECES, MOST_PIECES // max(len(brackets), 1)))
    low, high = brackets[np.isfinite(brackets).all(axis=1)].T
    with np.errstate(over="ignore"):
        ends += [low + (high - low) * (part / pieces) for part in range(1, pieces)]
    every = np.unique(np.concatenate(ends))
    return np.asarray(every[np.isfinite(every)])


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
