"""Time in cells: which cells a row entered, what ended it there, and curves tabulated at the ends of the cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, RowIndex
from orthocal.errors import OrthocalError, require_whole
from orthocal.formats import shown


class Histories(NamedTuple):
    """What a grid shows of each row.

    Parameters
    ----------
    entered : array of shape (rows,)
        How many cells the row entered at risk: the first ones.
    died : boolean array of shape (rows,)
        The event ended it, in the last cell it entered.
    """

    entered: Integers
    died: Booleans


@dataclass(frozen=True, eq=False)
class TimeGrid:
    r"""Cells :math:`(t_{k-1}, t_k]` up to a horizon, the last grid time; :math:`t_0 = 0`.

    Inside a cell events come first: who is censored at :math:`t_k` was at risk in the whole cell k. Who is censored inside a cell
    is taken to be censored at the nearer end, so that the events they could have had before and the ones they had no time for
    make up for each other (mathematics 3.13).

    Parameters
    ----------
    times : array of shape (cells,)
        Increasing and positive.
    """

    times: Floats

    def __len__(self) -> int:
        return len(self.times)

    @property
    def starts(self) -> Floats:
        """Where each cell begins."""
        return np.append(0.0, self.times[:-1])

    @property
    def middles(self) -> Floats:
        """The middle of each cell."""
        return (self.starts + self.times) / 2

    @property
    def widths(self) -> Floats:
        """How long each cell is."""
        return np.diff(self.times, prepend=0.0)

    def histories(self, time: Floats, event: Booleans) -> Histories:
        """Return what became of each row, up to the horizon."""
        cell = np.searchsorted(
            self.times, time, side="left"
        )  # of (t_{k-1}, t_k]; one more than the last beyond the horizon
        inside = cell < len(self)
        late = time >= np.append(self.middles, np.inf)[cell]
        return Histories(np.where(inside & (event | late), cell + 1, cell).astype(np.int64), event & inside)


def event_grid(time: Floats, event: Booleans, horizon: float, grid: int | Sequence[float]) -> TimeGrid:
    """Return the grid up to a horizon: as given, or cells that end at quantiles of the event times before it, and at it."""
    if not isinstance(grid, int | np.integer):
        own = np.unique(np.asarray(grid, dtype=np.float64))
        if len(own) == 0 or own[0] <= 0:
            raise OrthocalError(f"`grid` must be a whole number or positive times; it is {shown(grid)}.")
        return TimeGrid(np.append(own[own < horizon], horizon))
    require_whole(grid, 1, "grid")
    before = time[event & (time <= horizon)]
    if len(before) == 0:
        raise OrthocalError(f"There must be events up to the time {horizon:g}; none is observed. Choose a later time.")
    # Times that occur: one computed between two could be rounded to either side in another unit.
    # The last is that of the last event, so that no wide cell hides how few are followed to the horizon.
    share = np.arange(1, grid) / max(grid - 1, 1)
    quantiles = np.unique(np.quantile(before, share, method="inverted_cdf"))
    return TimeGrid(np.append(quantiles[quantiles < horizon], horizon))


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """The chance of having had no event, or of not being censored, by each time of a grid; one curve per row.

    Parameters
    ----------
    grid : TimeGrid
    table : array of shape (rows, cells)
        Does not rise along a row. Of the event: the chance at the end of each cell. Of censoring: in the middle of each cell.
    moved : boolean array of shape (rows,), optional
        Rows whose fitted chances were moved away from 0; none by default.
    """

    grid: TimeGrid
    table: Floats
    moved: Booleans | None = None

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: RowIndex) -> SurvivalCurve:
        return SurvivalCurve(self.grid, self.table[rows], None if self.moved is None else self.moved[rows])

    def survival(self) -> Floats:
        """The chance of each row at every time of the grid."""
        return self.table


def fitted_curve(grid: TimeGrid, least: float, table: Floats) -> SurvivalCurve:
    """Return fitted chances, none below `least`, and where that moved one; in single precision, for there are many."""
    single = table.astype(np.float32)
    moved = np.asarray((single < least).any(axis=1))
    return SurvivalCurve(grid, np.maximum(single, np.float32(least), out=single), moved)


@dataclass(frozen=True)
class CurveReader:
    """How curves that are given in place of fitted ones are read.

    Parameters
    ----------
    name : str
    grid : TimeGrid
    asked : array of shape (cells,)
        The times at which a function of (X, time) is asked.
    is_named : bool
        The user named the grid times, so that the columns of an array have a meaning.
    is_divisor : bool
        The formula divides by the chances: none may be 0.
    """

    name: str
    grid: TimeGrid
    asked: Floats
    is_named: bool
    is_divisor: bool

    def call(self, function: Callable[..., Any], X: Any) -> SurvivalCurve:
        """Ask a function of (X, time) about every row at each time."""
        columns = [np.asarray(function(X, np.full(len(X), time)), dtype=np.float64) for time in self.asked]
        return self._checked(np.column_stack(columns))

    def read(self, value: Any) -> SurvivalCurve:
        """Read a table of chances; a curve that was fitted before stays what it is."""
        if isinstance(value, SurvivalCurve):
            return value
        if not self.is_named:
            raise OrthocalError(
                f"`{self.name}` as an array must come with the times of its columns; `grid` is a number of times. Name them in "
                "the effect, grid=(...), or give a function of (X, time)."
            )
        return self._checked(np.asarray(value, dtype=np.float64))

    def _checked(self, table: Floats) -> SurvivalCurve:
        if table.ndim != 2 or table.shape[1] != len(self.grid):
            raise OrthocalError(
                f"`{self.name}` as given must have one column for each of the {len(self.grid)} grid times; its shape is "
                f"{table.shape}. The last grid time is the one the effect asks for."
            )
        low = table > 0 if self.is_divisor else table >= 0
        right = (low & (table <= 1)).all(axis=1) & (np.diff(table, axis=1) <= 0).all(axis=1)
        if not right.all():
            row = int(np.flatnonzero(~right)[0])
            least = "above 0" if self.is_divisor else "of at least 0"
            raise OrthocalError(
                f"`{self.name}` as given must be probabilities {least} that do not rise over time; row {row} is not so: "
                f"{np.round(table[row], 4).tolist()}."
            )
        return SurvivalCurve(self.grid, table)
