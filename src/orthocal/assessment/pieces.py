"""Pieces of rows sorted by prediction, whose entries are rows or stand for many, and sums over bins of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.losses import Loss
from orthocal.losses.counting import Counts


@dataclass(frozen=True, eq=False, kw_only=True)
class Packed:
    """How many rows each entry of a piece stands for, where rows were summed up by cells of the prediction.

    Parameters
    ----------
    count : array
        Rows of each entry.
    level : array
        The upper end of each entry's cell: its highest prediction, or a little more.
    lowest : float
        The lowest prediction of all.
    half : array
        0 or 1: each entry has rows of one half only.
    counts : Counts
        How the weights of the rows count.
    least : float
        The least mass of a row.
    """

    count: Floats
    level: Floats
    lowest: float
    half: Integers
    counts: Counts
    least: float


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows that follow each other when all are sorted by prediction; tied predictions are never divided.

    Sums over rows are taken by `sum` and `dot`, or by `Runs`, so that an entry can stand for many rows.

    Parameters
    ----------
    prediction : array
        Sorted.
    loss : Loss
    number, start : int
        How many pieces, and how many rows, come before.
    packed : Packed, optional
        How many rows each entry stands for; one where it is left out.
    """

    prediction: Floats
    loss: Loss
    number: int = 0
    start: int = 0
    packed: Packed | None = None

    def __len__(self) -> int:
        return len(self.prediction)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self) if self.packed is None else round(float(self.packed.count.sum()))

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest prediction."""
        lowest = self.prediction[0] if self.packed is None else self.packed.lowest
        return float(lowest), float(self.level[-1])

    @property
    def level(self) -> Floats:
        """What puts an entry into a bin: its prediction, or the highest of the rows it stands for."""
        return self.prediction if self.packed is None else self.packed.level

    def each(self, value: Floats) -> Floats:
        """Return what an entry adds to a sum over rows."""
        return value if self.packed is None else value * self.packed.count

    def sum(self, value: Floats) -> float:
        """Return a sum over rows."""
        return float(self.each(value).sum())

    def dot(self, one: Floats, other: Floats) -> float:
        """Return a sum of products over rows; with a column of one number it is a sum, times that."""
        for column, rest in ((one, other), (other, one)):
            if len(column) and column.strides[0] == 0:
                return float(column[0]) * self.sum(rest)
        return float(self.each(one) @ other)

    @cached_property
    def residual(self) -> Floats:
        """Minus the derivative of the loss at the prediction."""
        return -self.loss.derivative(self.prediction)

    @cached_property
    def is_tied(self) -> bool:
        """Whether any two entries have the same prediction."""
        return bool((self.prediction[1:] == self.prediction[:-1]).any())


class Runs:
    """Which bin each of the sorted rows of a piece is in."""

    def __init__(self, prediction: Floats, edges: Floats, count: Floats | None = None) -> None:
        ends = np.empty(len(edges) + 1, dtype=np.int64)
        ends[:-1], ends[-1] = prediction.searchsorted(edges, side="right"), len(prediction)
        self.entries = ends.copy()
        self.entries[1:] -= ends[:-1]
        self._some = self.entries > 0
        self._starts = (ends - self.entries)[self._some]
        self._count = count
        self.size = self.entries if count is None else np.rint(self.sums(np.ones(len(count)))).astype(np.int64)

    @classmethod
    def of(cls, piece: Piece, edges: Floats) -> Runs:
        """Of a piece, whose entries may stand for many rows."""
        return cls(piece.level, edges, None if piece.packed is None else piece.packed.count)

    def sums(self, value: Floats) -> Floats:
        """Sum of each bin."""
        total = np.zeros(len(self.entries))
        if len(self._starts):
            total[self._some] = np.add.reduceat(value if self._count is None else value * self._count, self._starts)
        return total

    def spread(self, by_bin: Floats) -> Floats:
        """Each row's own of what is known of its bin; where there is one bin only, a view of it."""
        if len(self._starts) == 1:
            return np.broadcast_to(by_bin[self._some], int(self.entries.sum()))
        return np.repeat(by_bin, self.entries)

    @property
    def index(self) -> Integers:
        """Each row's bin."""
        return np.repeat(np.arange(len(self.entries), dtype=np.int64), self.entries)
