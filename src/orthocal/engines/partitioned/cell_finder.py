"""Which cell a prediction is in: a table look-up, several times as fast as a binary search or a sort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from orthocal.arrays import Floats, Integers

FEWEST_BUCKETS, MOST_BUCKETS, BUCKETS_A_CELL = 2**13, 2**19, 8
"""Of equal width, whose first cell is kept in a table: the smaller it is, the faster the cache that it fits."""
MOST_STEPS = 8
"""Edges that a bucket may hold; where it holds more, predictions are searched for among the edges."""
TAIL, TAIL_SHARE = 64, 2**-10
"""Edges at either end, and their share of all, beyond which there are no buckets: predictions far away would make them wide."""
PAST = -1
"""The cell of a prediction that has no bucket, until it is searched for."""
AT_ONCE = 2**16
"""Predictions that are worked on together: what is made of them stays in the cache."""


ONE = np.ones(1)


def sums_in_cells(cell: Integers | npt.NDArray[np.int32], values: Floats | None, cells: int) -> Floats:
    """Return the sum of the values in each cell; without values, how many there are.

    It is `np.bincount`, as a product with a matrix of one column: in half the time, and threads need not wait for each other.
    """
    if values is None:
        return np.bincount(cell, minlength=cells).astype(np.float64)
    short = cell.astype(np.int32, copy=False)  # which are taken as they are, while longer ones are looked through
    return np.asarray(csc_array((values, short, np.array([0, len(cell)], dtype=np.int32)), shape=(cells, 1)) @ ONE)


@dataclass(frozen=True, eq=False)
class CellFinder:
    """Cells ( , ] between increasing edges, and a table of the first cell of each bucket.

    Parameters
    ----------
    edges : array
        Inner edges.
    first : array of int32
        The number of edges below each bucket, and -1 at either end, for predictions beyond them; empty where buckets do not pay.
    low, scale : float
        Where the place before the first bucket begins, and how many there are in a unit of the prediction.
    """

    edges: Floats
    first: npt.NDArray[np.int32]
    low: float = 0.0
    scale: float = 0.0

    @classmethod
    def of(cls, edges: Floats) -> CellFinder:
        """Of some edges."""
        nothing = cls(edges, np.empty(0, dtype=np.int32))
        tail = min(TAIL, int(TAIL_SHARE * len(edges)))
        if len(edges) < 2 or not edges[-1 - tail] > edges[tail]:
            return nothing
        low = float(edges[tail])
        buckets = int(np.clip(BUCKETS_A_CELL * len(edges), FEWEST_BUCKETS, MOST_BUCKETS))
        scale = buckets / float(edges[-1 - tail] - edges[tail])
        if not np.isfinite(scale):
            return nothing
        # A prediction that rounding puts into the next bucket must still find its cell: the first is that of the one before.
        starts = low + (np.arange(buckets + 2) - 2) / scale
        first = np.searchsorted(edges, starts, side="left").astype(np.int32)
        if np.diff(first).max() > MOST_STEPS:
            return nothing
        first[0] = first[-1] = PAST
        return cls(edges, first, low - 1 / scale, scale)

    def __len__(self) -> int:
        return len(self.edges) + 1

    def cells(self, prediction: Floats) -> Integers:
        """Return the cell of each prediction."""
        if not len(self.first):
            return np.searchsorted(self.edges, prediction, side="left").astype(np.int64, copy=False)
        cell, upper = np.empty(len(prediction), dtype=np.int64), np.append(self.edges, np.inf)
        for start in range(0, len(prediction), AT_ONCE):
            cell[start : start + AT_ONCE] = self._cells(prediction[start : start + AT_ONCE], upper)
        return cell

    def _cells(self, prediction: Floats, upper: Floats) -> Integers:
        place = prediction - self.low
        place *= self.scale
        np.clip(place, 0, len(self.first) - 1, out=place)
        cell = self.first.take(place.astype(np.int64)).astype(np.int64)
        beyond = np.flatnonzero(cell == PAST)
        cell[beyond] = np.searchsorted(self.edges, prediction[beyond], side="left")
        further = prediction > upper.take(cell)
        cell += further
        rows = np.flatnonzero(further)
        while len(rows):
            rows = rows[prediction[rows] > upper[cell[rows]]]
            cell[rows] += 1
        return cell
