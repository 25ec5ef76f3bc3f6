"""Overlap in sums, which merge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from orthocal.arrays import Booleans, Floats, runs
from orthocal.effects.arms import warn_if_clipped
from orthocal.effects.derivative import warn_if_unbalanced
from orthocal.losses import Loss, Overlap

AT_ONCE = 2**15
"""Rows that are worked on together: in shorter runs threads wait for each other's lock between the steps."""
SHOWN = 200
"""Rows of each partition that pictures show."""


@dataclass(frozen=True, eq=False)
class SummedOverlap(Overlap):
    """Overlap of all rows; `levels` and `weight` are those of a few of them, for pictures.

    Parameters
    ----------
    sums : dict of str to array
        Per level: rows that got it, least and largest propensity, sum of inverse propensity weights and of their squares.
    count : float
        Rows in all.
    """

    sums: dict[str, Floats] = field(default_factory=dict)
    count: float = 0.0

    @property
    def rows(self) -> dict[str, int]:
        """How many rows got each level."""
        return {name: int(one[0]) for name, one in self.sums.items()}

    @property
    def propensity(self) -> dict[str, tuple[float, float]]:
        """Least and largest propensity of each level."""
        return {name: (float(one[1]), float(one[2])) for name, one in self.sums.items()}

    @property
    def effective_rows(self) -> dict[str, float]:
        """(Sum of inverse propensity weights)^2 / sum of their squares, over the rows that got the level."""
        return {name: float(one[3] ** 2 / one[4]) if one[4] > 0 else 0.0 for name, one in self.sums.items()}

    def merge(self, other: SummedOverlap) -> SummedOverlap:
        """Of both."""
        count = self.count + other.count
        both = {name: (self.sums[name], other.sums[name]) for name in self.sums}
        return SummedOverlap(
            self.clip,
            {
                name: (share * self.count + other.clipped[name] * other.count) / count
                for name, share in self.clipped.items()
            },
            {
                name: tuple(np.concatenate(pair) for pair in zip(self.levels[name], other.levels[name], strict=True))  # type: ignore[misc]
                for name in self.levels
            },
            np.concatenate([self.weight, other.weight]),
            (),
            None if self.balance is None or other.balance is None else self.balance.merge(other.balance),
            {
                name: np.array([a[0] + b[0], min(a[1], b[1]), max(a[2], b[2]), a[3] + b[3], a[4] + b[4]])
                for name, (a, b) in both.items()
            },
            count,
        )


def summed_overlap_of(loss: Loss) -> SummedOverlap | None:
    """Return the overlap of some rows in sums, if their loss has any."""
    overlap = loss.overlap
    if overlap is None or not len(loss):
        return None
    sums = {name: _level_sums(*level, overlap.weight) for name, level in overlap.levels.items()}
    few = overlap[np.arange(min(len(loss), SHOWN))]
    return SummedOverlap(
        overlap.clip, overlap.clipped, few.levels, few.weight, (), overlap.balance, sums, float(len(loss))
    )


def _level_sums(got: Booleans, propensity: Floats, weight: Floats) -> Floats:
    """Rows that got a level, least and largest propensity, sum of inverse propensity weights and of their squares."""
    found = []
    for rows in runs(len(got), AT_ONCE):
        own = propensity[rows]
        inverse = weight[rows] / own
        inverse *= got[rows]
        found.append((own.min(), own.max(), inverse.sum(), inverse @ inverse))
    low, high, total, squares = np.array(found).T
    return np.array([np.count_nonzero(got), low.min(), high.max(), total.sum(), squares.sum()])


def warned(overlap: SummedOverlap) -> SummedOverlap:
    """Return an overlap, having warned where it is poor."""
    warn_if_clipped(overlap.clipped, overlap.clip)
    warn_if_unbalanced(overlap.balance)
    return overlap
