"""Which cell a prediction is in: a table look-up, several times as fast as a binary search or a sort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orthocal.arrays import Floats, Integers

BUCKETS = 2**19
"""Of equal width, whose first cell is kept in a table."""
MOST_STEPS = 8
"""Edges that a bucket may hold; where it holds more, predictions are searched for among the edges."""
TAIL = 64
"""Edges at either end beyond which there are no buckets: a few predictions far away would make them wide."""


@dataclass(frozen=True, eq=False)
class CellFinder:
    """Cells ( , ] between increasing edges, and a table of the first cell of each bucket.

    Parameters
    ----------
    edges : array
        Inner edges.
    first : array of int32
        The number of edges below each bucket; empty where buckets do not pay.
    low, scale : float
        Where buckets begin, and how many there are in a unit of the prediction.
    """

    edges: Floats
    first: npt.NDArray[np.int32]
    low: float = 0.0
    scale: float = 0.0

    @classmethod
    def of(cls, edges: Floats) -> CellFinder:
        """Of some edges."""
        nothing = cls(edges, np.empty(0, dtype=np.int32))
        tail = min(TAIL, len(edges) // 4)
        if len(edges) < 2 or not edges[-1 - tail] > edges[tail]:
            return nothing
        low = float(edges[tail])
        scale = BUCKETS / float(edges[-1 - tail] - edges[tail])
        if not np.isfinite(scale):
            return nothing
        # A prediction that rounding puts into the next bucket must still find its cell: the first is that of the one before.
        starts = low + (np.arange(BUCKETS + 2) - 1) / scale
        first = np.searchsorted(edges, starts, side="left").astype(np.int32)
        if np.diff(first).max() > MOST_STEPS:
            return nothing
        return cls(edges, first[:-1], low, scale)

    def __len__(self) -> int:
        return len(self.edges) + 1

    def cells(self, prediction: Floats) -> Integers:
        """Return the cell of each prediction."""
        if not len(self.first):
            return np.searchsorted(self.edges, prediction, side="left").astype(np.int64, copy=False)
        place = (prediction - self.low) * self.scale
        beyond = np.flatnonzero((place < 0) | (place >= BUCKETS))
        if len(beyond):
            place[beyond] = 0
        cell = self.first[place.astype(np.int32)].astype(np.int64)
        if len(beyond):
            cell[beyond] = np.searchsorted(self.edges, prediction[beyond], side="left")
        upper = np.append(self.edges, np.inf)
        further = prediction > upper[cell]
        cell += further
        rows = np.flatnonzero(further)
        while len(rows):
            rows = rows[prediction[rows] > upper[cell[rows]]]
            cell[rows] += 1
        return cell
