"""Rows sorted out of core: chunks are written by ranges of the prediction, then each range is read and sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers, is_constant
from orthocal.engines.local.chunks import Scratch
from orthocal.engines.local.stored import Kept, Stored, stored
from orthocal.engines.local.threads import in_threads
from orthocal.engines.partitioned.bundles import by_range
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.engines.room import Room, memory

if TYPE_CHECKING:
    from pathlib import Path


KEPT_SHARE = 1 / 8
"""Of the memory, that sorted ranges may take; those beyond are written to disk, and read for every sweep."""


class Columns(NamedTuple):
    """What a chunk writes of its rows.

    Parameters
    ----------
    values : dict of str to array
        By column, rows in the order of their ranges; of labels their codes.
    starts : array
        Where each range begins.
    labels : dict of str to array
        Of the columns that hold labels.
    same : dict of str to number
        Of the columns that hold one number only, such as weights where none were given: they are not written.
    """

    values: dict[str, Any]
    starts: Integers
    labels: dict[str, Any]
    same: dict[str, Any]

    @classmethod
    def of(cls, table: Any, finder: CellFinder) -> Columns:
        """Put the rows of a frame in the order of their ranges."""
        import pandas as pd

        order, starts = by_range(table["prediction"].to_numpy(), finder)
        columns: dict[str, Any] = {}
        labels, same = {}, {}
        for name in table.columns:
            values = table[name].to_numpy()
            if values.dtype == object:  # labels of subgroups
                values, labels[name] = pd.factorize(values)
            elif is_constant(values):
                same[name] = values[0]
                continue
            columns[name] = values.take(order)
        return cls(columns, starts, labels, same)


class StoredRows(NamedTuple):
    """Rows that one chunk has in a range, and where they begin in its file."""

    chunk: int
    start: int
    rows: int
    kinds: dict[str, np.dtype[Any]]
    labels: dict[str, Any]
    same: dict[str, Any]

    def read(self, data: Any) -> dict[str, Any]:
        """Return its columns, from the bytes of the file."""
        found, start = {name: np.full(self.rows, value) for name, value in self.same.items()}, self.start
        for name, kind in self.kinds.items():
            values = data[start : start + self.rows * kind.itemsize].view(kind)
            found[name] = self.labels[name][values] if name in self.labels else values
            start += values.nbytes
        return found


class RangeFile:
    """The rows of one range on disk, as chunks bring them: threads write to it in turn."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, Lock()
        self.blocks: list[StoredRows] = []
        self.size = 0

    def add(self, chunk: int, columns: Columns, number: int) -> None:
        """Write what a chunk has of the range of this number."""
        rows = slice(int(columns.starts[number]), int(columns.starts[number + 1]))
        if rows.start == rows.stop:
            return
        own = {name: values[rows] for name, values in columns.values.items()}
        kinds = {name: values.dtype for name, values in own.items()}
        with self.lock, self.path.open("ab") as file:
            block = StoredRows(chunk, self.size, rows.stop - rows.start, kinds, columns.labels, columns.same)
            self.blocks.append(block)
            for values in own.values():
                self.size += file.write(memoryview(values).cast("B"))

    def taken(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the columns, rows in the order of the chunks, and delete the file: what is written next takes its room."""
        data = np.fromfile(self.path, dtype=np.uint8)
        self.path.unlink()
        found = [block.read(data) for block in sorted(self.blocks, key=lambda block: block.chunk)]
        return {name: np.concatenate([part[name] for part in found]) for name in names}


@dataclass(frozen=True, eq=False)
class LocalRanges:
    """Ranges in memory or, beyond a share of it, on disk, of which a thread reads one at a time."""

    stored: Sequence[Stored | Kept]
    notes: Sequence[Any]
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
        """Write the tables by range, then build each range."""
        import pandas as pd

        scratch, finder, room = Scratch(), CellFinder.of(inner), Room(KEPT_SHARE * memory())
        files = [RangeFile(scratch.folder / f"rows-{number}") for number in range(len(finder))]

        def spill(numbered: tuple[int, Callable[[], Any]]) -> Any:
            chunk, table = numbered
            rows, note = table()
            columns = Columns.of(rows, finder)
            for number in range(len(files)):
                own = (number + chunk) % len(files)  # threads begin with different ranges, and seldom wait
                files[own].add(chunk, columns, own)
            return note

        def gather(number: int) -> Stored | Kept:
            file = files[number]
            table = pd.DataFrame(file.taken(empty.columns), copy=False) if file.blocks else empty
            return stored(build(table), scratch.folder / f"range-{number}", room)

        notes = list(in_threads(spill, list(enumerate(tables)), workers))
        found = list(in_threads(gather, range(len(files)), workers))
        return cls(found, notes, scratch, workers)

    def answers(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Read the ranges in turn, one in each thread."""

        def answer(numbered: tuple[int, Stored | Kept]) -> Any:
            number, one = numbered
            piece = one.read()
            for change, more in self.changes:
                piece = change(piece, *more)
            return function(piece, number, *shared)

        return list(in_threads(answer, list(enumerate(self.stored)), self.workers))

    def changed(self, function: Callable[..., Any], *shared: Any) -> LocalRanges:
        """Return what a function makes of the ranges, when they are read."""
        return replace(self, changes=(*self.changes, (function, shared)))
