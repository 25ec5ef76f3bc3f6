"""Conditional distributions: the distribution of the outcome given covariates, one per row, at any value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from orthocal.arrays import Floats, RowIndex, runs
from orthocal.errors import OrthocalError, require_length


class Distribution(Protocol):
    """F(v | x) for each row, and the integrals of it that risks need."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: RowIndex) -> Self:
        """The distributions of some rows."""
        ...

    def below(self, v: Floats) -> Floats:
        """P(Y <= v | x) of each row at its own value."""
        ...

    def shortfall(self, v: Floats) -> Floats:
        """E[(v - Y)_+ | x], the integral of F up to v."""
        ...

    def squared_shortfall(self, v: Floats) -> Floats:
        """E[(v - Y)_+^2 | x] / 2, the integral of the shortfall up to v."""
        ...

    def quantile(self, q: float) -> Floats:
        """Smallest v with F(v | x) >= q."""
        ...

    def mean(self) -> Floats:
        """E[Y | x]."""
        ...


@dataclass(frozen=True, eq=False)
class TableDistribution:
    """Distributions tabulated at common values, linear in between, with the remaining mass as atoms at the two ends.

    Parameters
    ----------
    levels : array of shape (levels,)
        Increasing; the first and last bound the support.
    table : array of shape (rows, levels)
        F at each level, nondecreasing along a row.
    """

    levels: Floats
    table: Floats

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: RowIndex) -> TableDistribution:
        return TableDistribution(self.levels, self.table[rows])

    def below(self, v: Floats) -> Floats:
        """F(v | x) of each row."""
        cell, step = self._cell(v)
        row = np.arange(len(self))
        inside = self.table[row, cell] + (self.table[row, cell + 1] - self.table[row, cell]) * step
        return np.asarray(np.where(v < self.levels[0], 0.0, np.where(v >= self.levels[-1], 1.0, inside)))

    def shortfall(self, v: Floats) -> Floats:
        """E[(v - Y)_+ | x] by exact integration of the linear pieces."""
        place = self._place(v)
        return self._first(place, self._up_to(place.cell, self._weights[0]))

    def squared_shortfall(self, v: Floats) -> Floats:
        """E[(v - Y)_+^2 | x] / 2 by exact integration of the quadratic pieces."""
        place = self._place(v)
        cell, h, start, slope, beyond = place
        first, second = (self._up_to(cell, weights) for weights in self._weights)
        inside = second + first * h + start * h**2 / 2 + slope * h**3 / 6
        return np.asarray(inside + (self._first(place, first) - beyond) * beyond + beyond**2 / 2)

    def quantile(self, q: float) -> Floats:
        """Smallest v with F(v | x) >= q."""
        reached = self.table >= q
        reached[:, -1] = True
        cell = reached.argmax(axis=1)
        row, before = np.arange(len(self)), np.maximum(cell - 1, 0)
        low, high = self.table[row, before], self.table[row, cell]
        step = np.where(high > low, (q - low) / np.where(high > low, high - low, 1.0), 1.0)
        value = self.levels[before] + np.clip(step, 0, 1) * (self.levels[cell] - self.levels[before])
        return np.asarray(np.where(cell == 0, self.levels[0], value))

    def mean(self) -> Floats:
        """E[Y | x]."""
        return self._mean

    @cached_property
    def _mean(self) -> Floats:
        top = np.full(len(self), self.levels[-1])
        return np.asarray(top - self.shortfall(top))

    def _cell(self, v: Floats) -> tuple[Any, Floats]:
        cell = np.clip(np.searchsorted(self.levels, v, side="right") - 1, 0, len(self.levels) - 2)
        width = self.levels[cell + 1] - self.levels[cell]
        return cell, np.clip((v - self.levels[cell]) / width, 0, 1)

    def tabulated(self) -> TableDistribution:
        """Itself."""
        return self

    def _place(self, v: Floats) -> _Place:
        cell, step = self._cell(v)
        width, row = np.diff(self.levels)[cell], np.arange(len(self))
        start = self.table[row, cell]
        return _Place(
            cell, step * width, start, (self.table[row, cell + 1] - start) / width, np.maximum(v - self.levels[-1], 0)
        )

    @staticmethod
    def _first(place: _Place, before: Floats) -> Floats:
        """Integral of F from the lowest level; F is 1 beyond the highest."""
        _, h, start, slope, beyond = place
        return np.asarray(before + start * h + slope * h**2 / 2 + beyond)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        return _integral_weights(np.diff(self.levels))

    def _up_to(self, cell: Any, weights: Floats) -> Floats:
        """Sum F over the levels with the weights that each row's cell asks for."""
        parts = [np.einsum("ij,ij->i", self.table[some], weights[cell[some]]) for some in runs(len(self))]
        return np.concatenate(parts) if parts else np.empty(0)


class _Place(NamedTuple):
    """Where a number lies: its cell, how far inside, F at the cell's start and its slope, and how far beyond the last level."""

    cell: Any
    h: Floats
    start: Floats
    slope: Floats
    beyond: Floats


def _integral_weights(width: Floats) -> tuple[Floats, Floats]:
    """Return for each level the weights of F at all levels in its first and second integral up to there."""
    unit = np.eye(len(width) + 1)
    low, high = unit[:, :-1], unit[:, 1:]
    zero = np.zeros((len(unit), 1))
    first = np.hstack([zero, np.cumsum((low + high) / 2 * width, axis=1)])
    pieces = first[:, :-1] * width + (2 * low + high) * width**2 / 6
    return first.T, np.hstack([zero, np.cumsum(pieces, axis=1)]).T


@dataclass(frozen=True, eq=False)
class FunctionDistribution:
    """A distribution the user knows: a function of (X, level), integrated where need be over a grid of levels.

    Parameters
    ----------
    function : callable
        ``function(X, level)`` gives P(Y <= level | x) of each row.
    X : array or data frame
    grid : array
        Levels that cover the outcomes, for the integrals.
    rows : array, optional
        Which rows of `X` this distribution is about; all by default.
    """

    function: Callable[[Any, Floats], Any]
    X: Any
    grid: Floats
    rows: Any = None

    def __len__(self) -> int:
        return len(self.X) if self.rows is None else len(self.rows)

    def __getitem__(self, rows: RowIndex) -> FunctionDistribution:
        every = np.arange(len(self.X)) if self.rows is None else self.rows
        distribution = FunctionDistribution(self.function, self.X, self.grid, every[rows])
        if "_table" in self.__dict__:  # what the function was asked once need not be asked again
            distribution.__dict__["_table"] = self._table[rows]
        return distribution

    def below(self, v: Floats) -> Floats:
        """F(v | x) of each row, by the function itself."""
        if self.rows is None:
            return self._ask(v)
        spread = np.full(len(self.X), float(self.grid[0]))
        spread[self.rows] = v
        return np.asarray(self._ask(spread)[self.rows])

    def shortfall(self, v: Floats) -> Floats:
        """E[(v - Y)_+ | x], by the table."""
        return self.tabulated().shortfall(v)

    def squared_shortfall(self, v: Floats) -> Floats:
        """E[(v - Y)_+^2 | x] / 2, by the table."""
        return self.tabulated().squared_shortfall(v)

    def quantile(self, q: float) -> Floats:
        """Smallest v with F(v | x) >= q, by the table."""
        return self.tabulated().quantile(q)

    def mean(self) -> Floats:
        """E[Y | x], by the table."""
        return self.tabulated().mean()

    def _ask(self, v: Floats) -> Floats:
        answer = np.asarray(self.function(self.X, v), dtype=np.float64)
        require_length(answer, len(v), "below")
        if not ((answer >= 0) & (answer <= 1)).all():
            raise OrthocalError("`below` as given must be a probability in [0, 1] in every row; it is not.")
        return answer

    def tabulated(self) -> TableDistribution:
        """The same distribution by a table; its function is asked once for each level of the grid."""
        return self._table

    @cached_property
    def _table(self) -> TableDistribution:
        columns = [self.below(np.full(len(self), level)) for level in self.grid]
        return TableDistribution(self.grid, np.column_stack(columns))
