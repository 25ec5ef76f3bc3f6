"""Quadratic losses of rows that were summed up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from orthocal.arrays import Floats, RowIndex
from orthocal.losses.protocol import unchecked
from orthocal.losses.quadratic import QuadraticLoss


@dataclass(frozen=True, eq=False)
class SummedQuadraticLoss(QuadraticLoss):
    """Sums of quadratic losses, one entry for many rows, which still knows how noisy they are.

    Parameters
    ----------
    squares : array of shape (3, entries)
        Summed squares of the rows: of numerators, of numerators times denominators, of denominators.
    """

    squares: Floats = field(default_factory=lambda: np.empty((3, 0)))

    def __getitem__(self, rows: RowIndex) -> Self:
        return unchecked(super().__getitem__(rows), squares=self.squares[:, rows])

    def squared_scores(self, value: Floats) -> Floats:
        """Return the summed squares of the rows' derivatives at one number for each entry."""
        numerators, products, denominators = self.squares
        return np.asarray(np.maximum(numerators - 2 * value * products + value**2 * denominators, 0.0))
