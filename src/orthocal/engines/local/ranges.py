"""Rows sorted out of core: chunks are written by ranges of the prediction, then each range is read and sorted."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.engines.local.chunks import Scratch

if TYPE_CHECKING:
    from pathlib import Path


class Spilled(NamedTuple):
    """A chunk on disk, its rows by range: where each range begins, and for each column its kind and its labels, if it has any."""

    path: Path
    starts: Integers
    kinds: dict[str, np.dtype[Any]]
    labels: dict[str, Any]

    @classmethod
    def of(cls, table: Any, inner: Floats, path: Path) -> Spilled:
        """Write a frame, its rows by range."""
        import pandas as pd

        place = np.searchsorted(inner, table["prediction"].to_numpy(), side="left")
        order = np.argsort(place.astype(np.uint16 if len(inner) < 2**16 else np.int64), kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(inner) + 1))])
        kinds, labels = {}, {}
        with path.open("wb") as file:
            for name in table.columns:
                values = table[name].to_numpy()
                if values.dtype == object:  # labels of subgroups
                    values, labels[name] = pd.factorize(values)
                kinds[name] = values.dtype
                np.ascontiguousarray(values[order]).tofile(file)
        return cls(path, starts, kinds, labels)

    def read(self, number: int) -> dict[str, Any]:
        """Return the columns of one range."""
        first, last, rows = int(self.starts[number]), int(self.starts[number + 1]), int(self.starts[-1])
        found, before = {}, 0
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

    paths: Sequence[Path]
    scratch: Scratch
    workers: int
    changes: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = ()

    @classmethod
    def of(
        cls,
        tables: Iterable[Callable[[], Any]],
        build: Callable[[Any], Any],
        inner: Floats,
        empty: Any,
        workers: int,
    ) -> LocalRanges:
        """Write the tables by range, then build each range and write it."""
        import pandas as pd

        scratch = Scratch()

        def spill(numbered: tuple[int, Callable[[], Any]]) -> Spilled:
            return Spilled.of(numbered[1](), inner, scratch.folder / f"chunk-{numbered[0]}")

        def gather(number: int) -> Path:
            found = [one.read(number) for one in spilled if one.starts[number + 1] > one.starts[number]]
            columns = {name: np.concatenate([part[name] for part in found]) for name in empty.columns} if found else {}
            path = scratch.folder / f"range-{number}"
            with path.open("wb") as file:
                pickle.dump(build(pd.DataFrame(columns) if found else empty), file, protocol=5)
            return path

        with ThreadPoolExecutor(workers) as pool:
            spilled = list(pool.map(spill, enumerate(tables)))
            paths = list(pool.map(gather, range(len(inner) + 1)))
        for one in spilled:
            one.path.unlink()
        return cls(paths, scratch, workers)

    def answers(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Read the ranges in turn, one in each thread."""

        def answer(numbered: tuple[int, Path]) -> Any:
            number, path = numbered
            with path.open("rb") as file:
                piece = pickle.load(file)  # noqa: S301  # written by this process
            for change, more in self.changes:
                piece = change(piece, *more)
            return function(piece, number, *shared)

        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(answer, enumerate(self.paths)))

    def changed(self, function: Callable[..., Any], *shared: Any) -> LocalRanges:
        """Return what a function makes of the ranges, when they are read."""
        return LocalRanges(self.paths, self.scratch, self.workers, (*self.changes, (function, shared)))
