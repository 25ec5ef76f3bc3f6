"""Which cell a prediction is in: a table look-up, several times as fast as a binary search or a sort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from orthocal.arrays import Floats, Integers, distinct

CellNumbers = npt.NDArray[np.int32]
FEWEST_BUCKETS, MOST_BUCKETS, BUCKETS_A_CELL = 2**13, 2**18, 4
"""Of equal width, whose first cell is kept in a table: the smaller it is, the faster the cache that it fits."""
MOST_STEPS, FEW = 8, 2**8
"""Cells that a prediction steps on before it is searched for among the edges; and how few may be left that are searched for."""
MOST_JOINED = 8
"""Cells that may become one where edges move to the ends of buckets."""
TAIL, TAIL_SHARE = 64, 2**-10
"""Edges at either end, and their share of all, beyond which there are no buckets: predictions far away would make them wide."""
WIDER = 1.25
"""Where buckets for the whole range are at most so many times as wide, they go to its ends, where clipped predictions crowd."""
AT_ONCE = 2**16
"""Predictions that are worked on together: what is made of them stays in the cache."""
LONGEST_KEPT = 2**20
"""Rows of a part for which arrays are kept."""
ONE = np.ones(1)
T = TypeVar("T", bound=np.ndarray)


def kept_for_parts(make: Callable[[int], T]) -> Callable[[int], T]:
    """Keep the last two arrays that a function makes for parts of so many rows: parts are mostly as long as each other.

    Those of very long parts are made anew each time, for they would stay in memory.
    """

    def made(count: int) -> T:
        found = make(count)
        found.flags.writeable = False
        return found

    kept = lru_cache(maxsize=2)(made)
    return lambda count: kept(count) if count <= LONGEST_KEPT else made(count)


@kept_for_parts
def ones(count: int) -> Floats:
    """Return so many ones."""
    return np.ones(count)


def sums_in_cells(cell: CellNumbers, values: Floats | None, cells: int) -> Floats:
    """Return the sum of the values in each cell; without values, how many there are.

    It is `np.bincount`, as a product with a matrix of one column: in half the time, and threads need not wait for each other.
    """
    values = ones(len(cell)) if values is None else values
    return np.asarray(csc_array((values, cell, np.array([0, len(cell)], dtype=np.int32)), shape=(cells, 1)) @ ONE)


@dataclass(frozen=True, eq=False)
class CellFinder:
    """Cells ( , ] between increasing edges, and a table of the first cell of each bucket.

    Buckets are whatever `buckets` says, of edges and of predictions alike, so that rounding does no harm.

    Parameters
    ----------
    edges : array
        Inner edges.
    first : array of int32
        The cell of each bucket, with one more at either end for predictions beyond; where an edge lies inside the bucket, the
        complement (~) of its first cell. Empty where buckets do not pay.
    low, scale : float
        Where the bucket before the first begins, and how many there are in a unit of the prediction.
    """

    edges: Floats
    first: npt.NDArray[np.int32]
    low: float = 0.0
    scale: float = 0.0

    @classmethod
    def of(cls, edges: Floats) -> CellFinder:
        """Of some edges."""
        return cls._framed(edges)._with(edges)

    @classmethod
    def near(cls, edges: Floats, exact: Floats) -> CellFinder:
        """Of edges moved to the ends of their buckets, so that most cells are found by one look, and of exact ones."""
        frame = cls._framed(edges)
        moved = frame._moved(edges) if len(frame.first) else edges
        return frame._with(distinct(np.sort(np.append(moved, exact), kind="stable")))

    @classmethod
    def _framed(cls, edges: Floats) -> CellFinder:
        """Return buckets for these edges, without cells yet."""
        nothing = cls(edges, np.empty(0, dtype=np.int32))
        tail = min(TAIL, int(TAIL_SHARE * len(edges)))
        if len(edges) < 2 or not edges[-1 - tail] > edges[tail]:
            return nothing
        if edges[-1] - edges[0] <= WIDER * (edges[-1 - tail] - edges[tail]):
            tail = 0
        count = int(np.clip(BUCKETS_A_CELL * len(edges), FEWEST_BUCKETS, MOST_BUCKETS))
        scale = count / float(edges[-1 - tail] - edges[tail])
        if not (np.isfinite(scale) and scale > 0):
            return nothing
        return cls(edges, np.empty(count + 2, dtype=np.int32), float(edges[tail]) - 1 / scale, scale)

    def _with(self, edges: Floats) -> CellFinder:
        """Return the cells of these edges."""
        if not len(self.first):
            return replace(self, edges=edges)
        bucket = self.buckets(edges)
        first = np.searchsorted(bucket, np.arange(len(self.first)), side="left").astype(np.int32)
        steps = np.bincount(bucket, minlength=len(first))[1:-1].astype(float)
        if steps @ steps > 2 * MOST_STEPS * len(edges):  # cells hold about as many rows each
            return CellFinder(edges, np.empty(0, dtype=np.int32))
        inside = bucket[self.buckets(np.nextafter(edges, np.inf)) == bucket]
        first[inside] = ~first[inside]
        return replace(self, edges=edges, first=first)

    def _moved(self, edges: Floats) -> Floats:
        """Return the ends of the buckets that edges lie in: the highest numbers there; edges stay where many would meet."""
        bucket = self.buckets(edges)
        inner = slice(np.searchsorted(bucket, 1), np.searchsorted(bucket, len(self.first) - 1))
        own, low = bucket[inner], edges[inner]
        if not len(own) or np.bincount(own).max() > MOST_JOINED:
            return edges
        end = self.low + (own + 1) / self.scale  # but for rounding
        high = end + 0.5 / self.scale
        if not (self.buckets(high) > own).all():
            return edges
        off = 4 * np.finfo(float).eps * max(abs(self.low), float(np.abs(end[[0, -1]]).max()))
        low = np.where(self.buckets(end - off) == own, np.maximum(low, end - off), low)
        high = np.where(self.buckets(end + off) > own, end + off, high)
        while (np.nextafter(low, np.inf) < high).any():
            middle = low + (high - low) / 2
            within = self.buckets(middle) <= own
            low, high = np.where(within, middle, low), np.where(within, high, middle)
        return np.concatenate([edges[: inner.start], low, edges[inner.stop :]])

    def __len__(self) -> int:
        return len(self.edges) + 1

    def buckets(self, values: Floats) -> Integers:
        """Return the bucket of each number, which does not fall as numbers rise."""
        place = values - self.low
        place *= self.scale
        np.clip(place, 0, len(self.first) - 1, out=place)
        return place.astype(np.int64)

    def cells(self, prediction: Floats) -> CellNumbers:
        """Return the cell of each prediction."""
        if not len(self.first):
            return np.searchsorted(self.edges, prediction, side="left").astype(np.int32)
        cell, upper = np.empty(len(prediction), dtype=np.int32), np.append(self.edges, np.inf)
        for start in range(0, len(prediction), AT_ONCE):
            cell[start : start + AT_ONCE] = self._cells(prediction[start : start + AT_ONCE], upper)
        return cell

    def _cells(self, prediction: Floats, upper: Floats) -> CellNumbers:
        cell = self.first.take(self.buckets(prediction))
        rows = np.flatnonzero(cell < 0)
        cell[rows] = ~cell[rows]
        if 2 * len(rows) > len(cell):  # as where predictions are levels, each of which is an edge
            further = prediction > upper.take(cell)
            cell += further
            rows = np.flatnonzero(further)
        for _ in range(MOST_STEPS):
            rows = rows[prediction[rows] > upper[cell[rows]]]
            if len(rows) <= FEW:
                break
            cell[rows] += 1
        cell[rows] = np.searchsorted(self.edges, prediction[rows], side="left")
        return cell
