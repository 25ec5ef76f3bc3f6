"""Summaries of rows that can be merged: what maps are fitted from when rows cannot be gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, group_sums, is_constant, step_of
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.errors import require_positive_mass
from orthocal.losses import QuadraticLoss, of_columns
from orthocal.losses.counting import Counts
from orthocal.losses.summed import SummedQuadraticLoss
from orthocal.solvers.affine import line_of
from orthocal.solvers.monotone import Blocks, pool

SAME = 1e-12
"""Share of their size within which a mean of equal predictions is that prediction."""
CELLS, UNEVEN = 2**16, 32
"""Of the grid on which a map is fitted in one pass; and times its share that a cell may hold before the grid is drawn again."""


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


class Ends(NamedTuple):
    """The lowest and the highest of some predictions."""

    low: float
    high: float

    @classmethod
    def of(cls, prediction: Floats) -> Ends:
        """Of some rows."""
        return cls(float(prediction.min()), float(prediction.max()))

    def merge(self, other: Ends) -> Ends:
        """Of both."""
        return Ends(min(self.low, other.low), max(self.high, other.high))


def are_several(mean: Floats, upper: Floats) -> Booleans:
    """Return which cells hold different predictions: those whose mean is below the upper end, which is one of them."""
    return np.asarray(upper - mean > SAME * np.maximum(np.abs(upper), np.abs(mean)))


@dataclass(frozen=True, eq=False, kw_only=True)
class GridCells:
    """Sums of rows by cells ( , ] of the prediction.

    Parameters
    ----------
    edges : array
        Inner ends of the cells.
    ends : Ends
        Of all predictions.
    numerator, denominator, weight, rows, prediction : array
        Sums of each cell.
    counts : Counts
        How the weights count.
    squares : array of shape (3, cells)
        Of n, n d and d, for the bound; empty where none is wanted.
    """

    edges: Floats
    ends: Ends
    numerator: Floats
    denominator: Floats
    weight: Floats
    rows: Floats
    prediction: Floats
    counts: Counts
    squares: Floats

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, finder: CellFinder, *, bounded: bool) -> GridCells:
        """Of some rows."""
        cell, n, d = finder.cells(prediction), loss.numerator, loss.denominator

        def sums(values: Floats | None) -> Floats:
            return np.bincount(cell, values, len(finder)).astype(np.float64, copy=False)

        rows, total = sums(None), sums(n)
        if loss.weight is d and is_constant(d):  # then sums of masses only count rows
            each = float(d[0])
            mass = weight = each * rows
            counts = Counts(len(n), each * len(n), each == np.floor(each), each, each)
            squares = [sums(n * n), each * total, each**2 * rows] if bounded else []
        else:
            mass = sums(d)
            weight = mass if loss.weight is d else sums(loss.weight)
            counts = Counts.of(loss.weight, len(n))
            squares = [sums(n * n), sums(n * d), sums(d * d)] if bounded else []
        return cls(
            edges=finder.edges,
            ends=Ends.of(prediction),
            numerator=total,
            denominator=mass,
            weight=weight,
            rows=rows,
            prediction=sums(prediction),
            counts=counts,
            squares=np.array(squares) if bounded else np.empty((3, 0)),
        )

    def merge(self, other: GridCells) -> GridCells:
        """Of both."""
        mass = self.denominator + other.denominator
        same = self.weight is self.denominator and other.weight is other.denominator
        return GridCells(
            edges=self.edges,
            ends=self.ends.merge(other.ends),
            numerator=self.numerator + other.numerator,
            denominator=mass,
            weight=mass if same else self.weight + other.weight,
            rows=self.rows + other.rows,
            prediction=self.prediction + other.prediction,
            counts=self.counts.merge(other.counts),
            squares=self.squares + other.squares,
        )

    @property
    def _upper(self) -> Floats:
        return np.append(self.edges, self.ends.high)

    @property
    def _mean(self) -> Floats:
        return np.divide(self.prediction, self.rows, out=self._upper, where=self.rows > 0)

    @property
    def is_uneven(self) -> bool:
        """Whether a cell of more than one prediction holds many times its share of the weight."""
        share = self.weight[are_several(self._mean, self._upper)] / self.weight.sum()
        return bool(share.max(initial=0.0) > UNEVEN / len(self.weight))

    def bound(self) -> float:
        r"""Return how far a map fitted on cells can be from the exact one.

        Summed up to any prediction, the two differ by at most this much: :math:`|\sum_{\theta_i \le t} d_i (f_i - g_i)|`. The
        walk of exact sums strays from its chord over a cell by at most :math:`\tfrac12\sum|n_i - c\,d_i|`, with c the cell's
        ratio, and that by Cauchy and Schwarz by half the root of rows times squares.
        """
        ratio = np.divide(
            self.numerator, self.denominator, out=np.zeros_like(self.numerator), where=self.denominator > 0
        )
        left = self.squares[0] - 2 * ratio * self.squares[1] + ratio**2 * self.squares[2]
        several = are_several(self._mean, self._upper)
        return float(0.5 * np.sqrt(self.rows * np.maximum(left, 0.0))[several].max(initial=0.0))

    def as_summed(self) -> tuple[Floats, SummedQuadraticLoss]:
        """Return (mean prediction, loss) of the cells that have rows; weights count rows."""
        some = np.flatnonzero(self.rows)
        weight = self.rows if self.counts.are_alike else self.weight * self.counts.factor
        loss = SummedQuadraticLoss(
            self.numerator[some], self.denominator[some], np.rint(weight[some]), squares=self.squares[:, some]
        )
        return self._mean[some], loss

    def as_rows(self) -> tuple[Floats, QuadraticLoss, Floats]:
        """Return (highest prediction, loss, count of rows) of the cells that have rows, each as one row."""
        some = np.flatnonzero(self.rows)
        loss = QuadraticLoss(self.numerator[some], self.denominator[some], self.weight[some])
        counts = self.rows[some] if self.counts.are_alike else loss.weight * self.counts.factor
        return self._upper[some], loss, counts


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
        Predictions inside an interval, in order.
    highest : float
        Prediction.
    counts : Counts
    """

    ends: Floats
    sums: Floats
    inside: Blocks
    highest: float
    counts: Counts

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, brackets: Floats) -> Bracketed:
        """Of some rows."""
        ends = np.unique(brackets[np.isfinite(brackets)])
        cell, count = step_of(prediction, ends), len(ends) + 1
        columns = (loss.numerator, loss.denominator, loss.weight)
        sums = np.array([group_sums(cell, column, count) for column in columns])
        rows = np.flatnonzero(_covered(ends, brackets)[cell])
        order = rows[np.argsort(prediction[rows], kind="stable")]
        inside = _pooled_ties(Blocks(prediction[order], *(column[order] for column in columns)))
        return cls(ends, sums, inside, float(prediction.max()), Counts.of(loss.weight, len(loss)))

    def merge(self, other: Bracketed) -> Bracketed:
        """Of both."""
        both = Blocks.together([self.inside, other.inside])
        order = np.argsort(both.level, kind="stable")
        inside = _pooled_ties(Blocks(*(column[order] for column in both)))
        highest, counts = max(self.highest, other.highest), self.counts.merge(other.counts)
        return Bracketed(self.ends, self.sums + other.sums, inside, highest, counts)

    def bins(self, bins: int, brackets: Floats) -> tuple[Floats, Floats, Floats] | None:
        """Return (edges, numerators, denominators) of bins of equal weight; None where a bracket has missed an edge."""
        wanted = self.counts.weight_at_edges(bins)
        brackets = brackets[len(brackets) - len(wanted) :]  # with fewer rows than bins the lowest have no edge
        running, found = np.concatenate([[0.0], np.cumsum(self.sums[2])]), []
        for reach, (low, high) in zip(wanted, brackets, strict=True):
            below = running[np.searchsorted(self.ends, low, side="right")] if np.isfinite(low) else 0.0
            a, b = np.searchsorted(self.inside.level, [low, high], side="right")
            place = np.searchsorted(below + np.cumsum(self.inside.weight[a:b]), reach * (1 - 1e-11), side="left")
            if place >= b - a or below >= reach:
                return None
            found.append(float(self.inside.level[a + place]))
        edges = np.array(sorted({edge for edge in found if edge < self.highest}))
        outside = np.flatnonzero(~_covered(self.ends, brackets))
        level = np.concatenate([np.append(self.ends, np.inf)[outside], self.inside.level])
        place = np.searchsorted(edges, level, side="left").astype(np.int64)
        pairs = zip(self.sums[:2], (self.inside.numerator, self.inside.denominator), strict=True)
        n, d = (group_sums(place, np.concatenate([sums[outside], own]), len(edges) + 1) for sums, own in pairs)
        return edges, n, d


def _covered(ends: Floats, brackets: Floats) -> Booleans:
    """Return which of the cells between the ends lie in an interval ( , ]; all of a cell does, or nothing."""
    upper = np.append(ends, np.inf)[:, None]
    return np.asarray(((upper > brackets[:, 0]) & (upper <= brackets[:, 1])).any(axis=1))


def _pooled_ties(blocks: Blocks) -> Blocks:
    level = blocks.level
    return Blocks(*pool(level, np.flatnonzero(level[1:] != level[:-1]), *blocks[1:])) if len(level) else blocks


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
