"""Summaries of rows that can be merged: what maps are fitted from when rows cannot be gathered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orthocal.arrays import FEW, group_sums, is_constant, ordered, step_of
from orthocal.assessment.sweeps import Runs
from orthocal.errors import require_positive_mass
from orthocal.losses import of_columns
from orthocal.solvers.affine import line_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from orthocal.arrays import Floats, Integers, Rows
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
        sums, size, order = _summing(prediction, edges)
        n, rows = loss.numerator[order], size.astype(float)
        if is_constant(loss.denominator) and loss.weight is loss.denominator:  # then sums of masses only count rows
            each, total = float(loss.denominator[0]), sums(n)
            squares = np.array([sums(n * n), each * total, each**2 * rows]) if bounded else np.empty((3, 0))
            return cls(total, mass := each * rows, mass, rows, squares)
        d = loss.denominator[order]
        mass = sums(d)
        weight = mass if loss.weight is loss.denominator else sums(loss.weight[order])
        squares = np.array([sums(n * n), sums(n * d), sums(d * d)]) if bounded else np.empty((3, 0))
        return cls(sums(n), mass, weight, rows, squares)

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


def _summing(prediction: Floats, edges: Floats) -> tuple[Callable[[Floats], Floats], Integers, Rows]:
    """Return what sums a column by cell, the rows of each cell, and the order in which it takes the rows.

    Few cells are found by comparison; among many, rows are sorted first, so that cells are runs.
    """
    if len(edges) <= FEW:
        index, count = step_of(prediction, edges), len(edges) + 1
        return (
            partial(group_sums, index, count=count),
            np.bincount(index, minlength=count).astype(np.int64),
            slice(None),
        )
    order, level = ordered(prediction)
    runs = Runs(level, edges)
    return runs.sums, runs.size, order
