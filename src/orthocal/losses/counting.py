"""How weights count: as rows, where they are alike or whole numbers, else as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orthocal.arrays import Floats, is_constant

MOST_BINS = 100_000
"""More would be empty but in the largest of tables, and their edges alone not fit into memory."""

REACHED = 1 - 1e-11
"""Share of a weight at which, but for rounding, it is reached."""


@dataclass(frozen=True, eq=False)
class Counts:
    """How weights count: as rows, where they are alike or whole numbers, else as they are."""

    rows: int
    total: float
    whole: bool
    least: float
    most: float

    @classmethod
    def of(cls, weight: Floats | None, rows: int | None = None) -> Counts:
        """Of some rows, none of weight 0; without weights each counts as one."""
        rows = len(weight) if weight is not None and rows is None else rows or 0
        if weight is None or not rows:
            return cls(rows, float(rows), True, 1.0, 1.0)
        if is_constant(weight):
            (each,) = weight[:1].tolist()
            return cls.alike(each, rows)
        whole = bool((weight == np.floor(weight)).all())
        return cls(rows, float(weight.sum()), whole, float(weight.min()), float(weight.max()))

    @classmethod
    def alike(cls, each: float, rows: int) -> Counts:
        """Of so many rows of one weight."""
        return cls(rows, each * rows, each == np.floor(each), each, each)

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
        """What turns a weight into a number of rows."""
        return 1.0 if self.whole else self.rows / self.total

    @property
    def are_alike(self) -> bool:
        """Whether every row counts as one, though its weight is another number."""
        return not self.whole and self.least == self.most

    @property
    def are_rows(self) -> bool:
        """Whether every row counts as one."""
        return self.are_alike or self.least == self.most == 1

    def edges(self, bins: int) -> Floats:
        """Return what has come together at the inner edges of bins of equal weight: rows where weights are alike, else weight.

        A whole number where weights count rows: edge b is the order statistic number floor(b n / bins) (mathematics 4.2).
        """
        reach = np.arange(1, bins) * (float(self.rows) if self.are_alike else self.total) / bins
        if self.whole or self.are_alike:
            reach = np.floor(reach + 1e-9)  # b n / bins may fall short of a whole number by rounding
        return np.asarray(reach[reach > 0], dtype=np.float64)

    def weight_at_edges(self, bins: int) -> Floats:
        """Return what `edges` does, always as weight."""
        return self.edges(bins) * (self.least if self.are_alike else 1.0)


def as_counts(weight: Floats) -> Floats:
    """Return weights as numbers of rows: whole numbers as they are, others scaled to average one; 0 is no row."""
    counts = Counts.of(weight, int(np.count_nonzero(weight)))
    if counts.are_alike:
        return np.ones(len(weight))
    return weight if counts.whole else weight * counts.factor
