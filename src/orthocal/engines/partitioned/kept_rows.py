"""Rows near the edges of bins, kept as they are: each partition's by themselves, until it is known which of them decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, distinct, sorting_order_and_sorted, taken
from orthocal.engines.partitioned.cell_finder import CellNumbers
from orthocal.losses import QuadraticLoss
from orthocal.solvers.monotone import Blocks, pool

WORTH_IT = 0.75
"""Share of the rows that must be left when tied ones are put together, at most, for it to be worth doing."""


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Predictions, numerators, denominators and weights of some rows, in as many parts as they came in.

    Nothing is copied when parts meet: of the rows that are kept, a few are looked at in the end.
    """

    parts: tuple[Blocks, ...]

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, rows: Integers) -> KeptRows:
        """Of some rows of a partition."""
        columns = (prediction, loss.numerator, loss.denominator, loss.weight)
        return cls((Blocks(*(taken(column, rows) for column in columns)),))

    @cached_property
    def count(self) -> int:
        """How many rows are kept, those put together as one."""
        return sum(len(part.level) for part in self.parts)

    def merge(self, other: KeptRows) -> KeptRows:
        """Of both."""
        return KeptRows(self.parts + other.parts)

    def pooled(self) -> KeptRows:
        """Return one part with tied rows together, where that saves much; where it does not, the rows as they are."""
        level = np.sort(np.concatenate([part.level for part in self.parts]))
        if len(distinct(level)) >= WORTH_IT * len(level):
            return self
        return KeptRows((_pooled_ties(Blocks.together(self.parts)),))

    def picked(self, choose: Callable[[Floats], Booleans]) -> Blocks:
        """Return the rows whose predictions are chosen, in their order."""
        chosen = [choose(part.level) for part in self.parts]
        some = Blocks.together(
            Blocks(*(column[rows] for column in part)) for part, rows in zip(self.parts, chosen, strict=True)
        )
        order, level = sorting_order_and_sorted(some.level)
        return Blocks(level, *(column[order] for column in some[1:]))


def _pooled_ties(blocks: Blocks) -> Blocks:
    """Return the blocks in order, those of one prediction together."""
    order, level = sorting_order_and_sorted(blocks.level)
    rises = np.flatnonzero(level[1:] != level[:-1])
    return Blocks(*pool(level, rises, *(column[order] for column in blocks[1:])))


def cells_inside(ends: Floats, brackets: Floats) -> Booleans:
    """Return which of the cells ( , ] between the ends lie in a bracket ( , ]; all of a cell does, or nothing."""
    upper = np.append(ends, np.inf)
    first, after = (
        np.searchsorted(upper, end, side="right") for end in brackets.T
    )  # cells that end above a bracket's ends
    cells = len(upper)
    opened, closed = (np.bincount(place, minlength=cells)[:cells] for place in (first, after))
    return np.asarray(np.cumsum(opened - closed) > 0)


def finer_ends(level: Floats, cell: CellNumbers, many: int) -> Floats:
    """Return ends that divide the cells of sorted predictions into about so many, squared distances in which are about the least.

    The density of such ends goes with the cube root of that of the predictions, so that gaps count by the power 2/3 (Panter and
    Dite 1951, Proceedings of the IRE 39).
    """
    gap = np.diff(level)
    gap[cell[1:] != cell[:-1]] = 0.0  # a cell ends there
    running = np.cumsum(gap ** (2 / 3))
    if not len(running) or not running[-1] > 0:
        return np.empty(0)
    places = np.unique(np.searchsorted(running, np.arange(1, many) * (running[-1] / many)))
    return np.asarray(level[places])
