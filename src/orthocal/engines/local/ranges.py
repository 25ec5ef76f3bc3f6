"""Rows sorted out of core: chunks are written by ranges of the prediction, then each range is read and sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers, is_constant
from orthocal.engines.local.chunks import Scratch
from orthocal.engines.local.stored import Stored
from orthocal.engines.local.threads import in_threads
from orthocal.engines.partitioned.cell_finder import CellFinder

if TYPE_CHECKING:
    from pathlib import Path


class Spilled(NamedTuple):
    """A chunk on disk, its rows by range.

    Parameters
    ----------
    path : Path
    starts : array
        Where each range begins.
    kinds : dict of str to dtype
        Of the columns in the file.
    labels : dict of str to array
        Of the columns that hold labels.
    same : dict of str to number
        Of the columns that hold one number only, such as weights where none were given: they are not written.
    """

    path: Path
    starts: Integers
    kinds: dict[str, np.dtype[Any]]
    labels: dict[str, Any]
    same: dict[str, Any]

    @classmethod
    def of(cls, table: Any, finder: CellFinder, path: Path) -> Spilled:
        """Write a frame, its rows by range."""
        import pandas as pd

        place = finder.cells(table["prediction"].to_numpy())
        order = np.argsort(place.astype(np.uint16 if len(finder) <= 2**16 else np.int64), kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(finder)))])
        kinds, labels, same = {}, {}, {}
        with path.open("wb") as file:
            for name in table.columns:
                values = table[name].to_numpy()
                if values.dtype == object:  # labels of subgroups
                    values, labels[name] = pd.factorize(values)
                elif is_constant(values):
                    same[name] = values[0]
                    continue
                kinds[name] = values.dtype
                np.ascontiguousarray(values[order]).tofile(file)
        return cls(path, starts, kinds, labels, same)

    def read(self, number: int) -> dict[str, Any]:
        """Return the columns of one range."""
        first, last, rows = int(self.starts[number]), int(self.starts[number + 1]), int(self.starts[-1])
        found, before = {name: np.full(last - first, value) for name, value in self.same.items()}, 0
        with self.path.open("rb") as file:
            for name, kind in self.kinds.items():
                file.seek(before + first * kind.itemsize)
                values = np.fromfile(file, dtype=kind, count=last - first)
                found[name] = self.labels[name][values] if name in self.labels else values
                before += rows * kind.itemsize
        return found


@dataclass(frozen=True, eq=False)
class LocalRanges:
    """Ranges on disk, of which a thread reads one at a time."""

    stored: Sequence[Stored]
    scratch: Scratch
    workers: int
    changes: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = ()

    @classmethod
    def of(
        cls,
        tables: Sequence[Callable[[], Any]],
        build: Callable[[Any], Any],
        inner: Floats,
        empty: Any,
        workers: int,
    ) -> LocalRanges:
        """Write the tables by range, then build each range and write it."""
        import pandas as pd

        scratch, finder = Scratch(), CellFinder.of(inner)

        def spill(numbered: tuple[int, Callable[[], Any]]) -> Spilled:
            return Spilled.of(numbered[1](), finder, scratch.folder / f"chunk-{numbered[0]}")

        def gather(number: int) -> Stored:
            found = [one.read(number) for one in spilled if one.starts[number + 1] > one.starts[number]]
            columns = {name: np.concatenate([part[name] for part in found]) for name in empty.columns} if found else {}
            table = pd.DataFrame(columns, copy=False) if found else empty
            return Stored.of(build(table), scratch.folder / f"range-{number}")

        spilled = list(in_threads(spill, list(enumerate(tables)), workers))
        stored = list(in_threads(gather, range(len(inner) + 1), workers))
        for one in spilled:
            one.path.unlink()
        return cls(stored, scratch, workers)

    def answers(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Read the ranges in turn, one in each thread."""

        def answer(numbered: tuple[int, Stored]) -> Any:
            number, stored = numbered
            piece = stored.read()
            for change, more in self.changes:
                piece = change(piece, *more)
            return function(piece, number, *shared)

        return list(in_threads(answer, list(enumerate(self.stored)), self.workers))

    def changed(self, function: Callable[..., Any], *shared: Any) -> LocalRanges:
        """Return what a function makes of the ranges, when they are read."""
        return LocalRanges(self.stored, self.scratch, self.workers, (*self.changes, (function, shared)))
