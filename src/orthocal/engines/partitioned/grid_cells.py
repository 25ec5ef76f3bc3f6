"""Sums of rows by cells of the prediction, from which maps are fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, is_constant
from orthocal.engines.partitioned.cell_finder import CellFinder, CellNumbers, kept_for_parts, sums_in_cells
from orthocal.losses import QuadraticLoss
from orthocal.losses.counting import Counts
from orthocal.losses.summed import SummedQuadraticLoss

SAME = 1e-12
"""Share of their size within which a mean of equal predictions is that prediction."""
CELLS, UNEVEN = 2**16, 32
"""Of the grid on which a map is fitted in one pass; and times its share that a cell may hold before the grid is drawn again."""


class PredictionEnds(NamedTuple):
    """The lowest and the highest of some predictions."""

    low: float
    high: float

    @classmethod
    def of(cls, prediction: Floats) -> PredictionEnds:
        """Of some rows."""
        return cls(float(prediction.min()), float(prediction.max()))

    def merge(self, other: PredictionEnds) -> PredictionEnds:
        """Of both."""
        return PredictionEnds(min(self.low, other.low), max(self.high, other.high))


@kept_for_parts
def halves(rows: int) -> CellNumbers:
    """Return 0 or 1 for each row, by chance; the same for parts of as many rows."""
    bits = np.random.default_rng(rows).bytes(-(-rows // 8))
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8))[:rows].astype(np.int32)


def are_several(mean: Floats, upper: Floats) -> Booleans:
    """Return which cells hold different predictions, or one that is below the upper end of its cell: bounds are no smaller."""
    return np.asarray(upper - mean > SAME * np.maximum(np.abs(upper), np.abs(mean)))


@dataclass(frozen=True, eq=False, kw_only=True)
class GridCells:
    """Sums of rows by cells ( , ] of the prediction.

    Parameters
    ----------
    edges : array
        Inner ends of the cells.
    ends : PredictionEnds
        Of all predictions.
    numerator, denominator, weight, rows, prediction : array
        Sums of each cell.
    counts : Counts
        How the weights count.
    squares : array of shape (3, cells)
        Of n, n d and d, for the bound; empty where none is wanted.
    """

    edges: Floats
    ends: PredictionEnds
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
            return sums_in_cells(cell, values, len(finder))

        rows, total = sums(None), sums(n)
        if loss.weight is d and is_constant(d):  # then sums of masses only count rows
            each, counts = float(d[0]), Counts.alike(float(d[0]), len(n))
            mass = weight = each * rows
            squares = [sums(n * n), each * total, each**2 * rows] if bounded else []
        else:
            mass = sums(d)
            weight = mass if loss.weight is d else sums(loss.weight)
            counts = Counts.of(loss.weight, len(n))
            squares = [sums(n * n), sums(n * d), sums(d * d)] if bounded else []
        return cls(
            edges=finder.edges,
            ends=PredictionEnds.of(prediction),
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
        return np.asarray(np.minimum(np.append(self.edges, self.ends.high), self.ends.high))

    @property
    def _mean(self) -> Floats:
        return np.divide(self.prediction, self.rows, out=self._upper, where=self.rows > 0)

    @property
    def is_uneven(self) -> bool:
        """Whether a cell of more than one prediction holds many times its share of the weight, in a grid with all its cells."""
        share = self.weight[are_several(self._mean, self._upper)] / self.weight.sum()
        return bool(share.max(initial=0.0) > UNEVEN / max(len(self.weight), CELLS))

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
        """Return (upper end, loss, count of rows) of the cells that have rows, each as one row."""
        some = np.flatnonzero(self.rows)
        loss = QuadraticLoss(self.numerator[some], self.denominator[some], self.weight[some])
        counts = self.rows[some] if self.counts.are_alike else loss.weight * self.counts.factor
        return self._upper[some], loss, counts
