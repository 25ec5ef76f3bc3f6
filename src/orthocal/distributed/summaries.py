"""Summaries of rows that can be merged: what maps are fitted from when rows cannot be gathered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orthocal.arrays import FEW, group_sums, packed_argsort, step_of
from orthocal.assessment.sweeps import Runs
from orthocal.calibrators.histogram import wanted_mass
from orthocal.errors import require_positive_mass
from orthocal.losses import of_columns
from orthocal.solvers.affine import line_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from orthocal.arrays import Floats, Integers
    from orthocal.losses import QuadraticLoss

CELLS = 2**16
"""Of the grid on which a map is fitted in one pass."""


class Line(NamedTuple):
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
    def of(cls, prediction: Floats, loss: QuadraticLoss, pivot: float) -> Line:
        """Of some rows."""
        x, n, d = prediction - pivot, loss.numerator, loss.denominator
        sums = np.array([d.sum(), n.sum(), d @ x, n @ x, (d * x) @ x])
        return cls(sums, float(prediction.min()), float(prediction.max()), len(prediction))

    def merge(self, other: Line) -> Line:
        """Of both."""
        return Line(
            self.sums + other.sums, min(self.low, other.low), max(self.high, other.high), self.rows + other.rows
        )

    def coefficients(self, pivot: float) -> tuple[float, float]:
        """Return (intercept, slope) of the best line."""
        mass, numerator, first, pulled, second = self.sums.tolist()
        require_positive_mass(mass)
        if self.low == self.high:
            return numerator / mass, 0.0
        shift = first / mass
        return line_of(numerator / mass, pivot + shift, second - shift * first, pulled - shift * numerator)


@dataclass(frozen=True, eq=False)
class Counts:
    """How weights count: as rows, where they are alike or whole numbers, else as they are."""

    rows: int
    total: float
    whole: bool
    least: float
    most: float

    @classmethod
    def of(cls, weight: Floats | None, rows: int) -> Counts:
        """Of some rows."""
        if weight is None or not rows:
            return cls(rows, float(rows), True, 1.0, 1.0)
        whole = bool((weight == np.floor(weight)).all())
        return cls(rows, float(weight.sum()), whole, float(weight.min()), float(weight.max()))

    def merge(self, other: Counts) -> Counts:
        """Of both."""
        return Counts(
            self.rows + other.rows,
            self.total + other.total,
            self.whole and other.whole,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    @property
    def factor(self) -> float:
        """What turns a weight into a number of rows (`orthocal.losses.as_counts`)."""
        return 1.0 if self.whole else self.rows / self.total

    @property
    def counts_rows(self) -> bool:
        """Whether the counts are whole numbers."""
        return self.whole or self.least == self.most


@dataclass(frozen=True, eq=False)
class Sketch:
    """Predictions in order, thinned: some of them, each with the weight up to and including it.

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


@dataclass(frozen=True, eq=False)
class Inside:
    """The predictions in some intervals, in order, each with its weight; and the weight below each interval."""

    below: Floats
    level: Floats
    weight: Floats

    @classmethod
    def of(cls, prediction: Floats, weight: Floats | None, brackets: Floats) -> Inside:
        """Of some rows; intervals may overlap."""
        if weight is None:  # sorting numbers is many times as fast as finding their order
            level = np.sort(prediction)
            running, own = np.arange(len(level) + 1.0), np.ones(len(level))
        else:
            order = packed_argsort(prediction)
            level, own = prediction[order], weight[order]
            running = np.concatenate([[0.0], np.cumsum(own)])
        start, end = (np.searchsorted(level, side, side="right") for side in brackets.T)
        inside = np.zeros(len(level), dtype=bool)
        for a, b in zip(start, end, strict=True):
            inside[a:b] = True
        return cls(running[start], *_pooled_ties(level[inside], own[inside]))

    def merge(self, other: Inside) -> Inside:
        """Of both."""
        level, weight = np.concatenate([self.level, other.level]), np.concatenate([self.weight, other.weight])
        order = np.argsort(level, kind="stable")
        return Inside(self.below + other.below, *_pooled_ties(level[order], weight[order]))

    def edges(self, wanted: Floats, brackets: Floats, highest: float) -> Floats:
        """Return the predictions at which the running weight reaches what is wanted, exactly."""
        level, weight = self.level, self.weight
        found = []
        for reach, below, (low, high) in zip(wanted, self.below, brackets, strict=True):
            a, b = np.searchsorted(level, [low, high], side="right")
            running = below + np.cumsum(weight[a:b])
            place = int(np.searchsorted(running, reach * (1 - 1e-15), side="left"))
            if not 0 <= place < b - a or below >= reach:
                raise AssertionError("the bracket of a quantile does not hold it")
            found.append(level[a + place])
        edges = np.array(found)
        return np.unique(edges[edges < highest])


def _pooled_ties(level: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return each of the sorted levels once, with the weight of all its rows."""
    if not len(level):
        return level, weight
    starts = np.concatenate([[0], np.flatnonzero(level[1:] != level[:-1]) + 1])
    return level[starts], np.add.reduceat(weight, starts)


def histogram_wanted(counts: Counts, bins: int) -> Floats:
    """Return the running weight at which inner edges sit, as in memory."""
    if counts.counts_rows and not counts.whole:
        return wanted_mass(counts.rows, bins, whole=True) * counts.least
    return wanted_mass(counts.total, bins, whole=counts.whole)


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums of rows by cells of the prediction.

    Parameters
    ----------
    numerator, denominator, weight, rows : array
    squares : array of shape (3, cells)
        Of n, n d and d, for the bound; empty where none is wanted.
    """

    numerator: Floats
    denominator: Floats
    weight: Floats
    rows: Floats
    squares: Floats

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, edges: Floats, *, bounded: bool) -> Cells:
        """Of some rows."""
        sums, size, (n, d, w) = _summing(prediction, edges, loss)
        mass = sums(d)
        squares = np.array([sums(n * n), sums(n * d), sums(d * d)]) if bounded else np.empty((3, 0))
        return cls(sums(n), mass, mass if w is d else sums(w), size.astype(float), squares)

    def merge(self, other: Cells) -> Cells:
        """Of both."""
        mass = self.denominator + other.denominator
        same = self.weight is self.denominator and other.weight is other.denominator
        return Cells(
            self.numerator + other.numerator,
            mass,
            mass if same else self.weight + other.weight,
            self.rows + other.rows,
            self.squares + other.squares,
        )

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
        return float(0.5 * np.sqrt(self.rows * np.maximum(left, 0.0)).max())

    def without_empty(self, edges: Floats, highest: float) -> tuple[Floats, Cells]:
        """Return (highest prediction, sums) of the cells that have rows; a cell's is its upper edge."""
        some = np.flatnonzero(self.rows)
        n, d, w, rows = (one[some] for one in (self.numerator, self.denominator, self.weight, self.rows))
        return np.append(edges, highest)[some], Cells(n, d, w, rows, np.empty((3, 0)))


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


def _summing(
    prediction: Floats, edges: Floats, loss: QuadraticLoss
) -> tuple[Callable[[Floats], Floats], Integers, tuple[Floats, Floats, Floats]]:
    """Return what sums a column by cell, the rows of each cell, and n, d and w in the order it takes them.

    Few cells are found by comparison; among many, rows are sorted first, so that cells are runs.
    """
    count, columns = len(edges) + 1, (loss.numerator, loss.denominator, loss.weight)
    if len(edges) <= FEW:
        index = step_of(prediction, edges)
        return partial(group_sums, index, count=count), np.bincount(index, minlength=count).astype(np.int64), columns
    order = packed_argsort(prediction)
    n, d = loss.numerator[order], loss.denominator[order]
    w = d if loss.weight is loss.denominator else loss.weight[order]
    runs = Runs(prediction[order], edges)
    return runs.sums, runs.size, (n, d, w)
