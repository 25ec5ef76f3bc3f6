"""A dask.dataframe as a table in partitions: the work is done wherever the user's client is connected to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from orthocal.arrays import Booleans, Floats
from orthocal.engines.dask.kept_range import KeptRange
from orthocal.engines.dask.training import train_on_partitions
from orthocal.engines.dask.watch import PassWatch
from orthocal.engines.partitioned.bundles import Bundle, bundles, joined_frame
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.engines.room import give_back_freed_arrays, reuse_freed_arrays
from orthocal.errors import OrthocalError

LARGEST, MOST_FREE = 2**22, 2**25
"""Bytes of arrays that serve again, and of memory that is kept for them: little, for workers watch their memory."""
MOST_BUNDLES = 2**14
"""Tasks that the scheduler is given to move rows; where it would have more, Dask's own shuffle moves them."""
AT_ONCE = 8
"""Summaries that are merged in one step: no worker holds more of them."""


@dataclass(frozen=True, eq=False)
class DaskTable:
    """The partitions of a dask.dataframe."""

    frame: Any
    place: str = "on Dask"
    sampling: str = "frame.sample(frac=0.01).compute()"

    def __post_init__(self) -> None:
        if not hasattr(self.frame, "to_delayed"):
            kind = type(self.frame).__name__
            raise OrthocalError(
                f"`frame` must be a dask.dataframe; it is a {kind}. Use orthocal.CausalCalibrator for data in memory."
            )
        if not hasattr(self.frame, "simplify"):
            raise OrthocalError(
                "`frame` must be a dask.dataframe with query planning; this one is without. Leave out the setting "
                "dataframe.query-planning, before Dask is imported."
            )

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.frame.columns)

    @cached_property
    def parts(self) -> list[Any]:
        """The partitions as the user counts them: Dask's last steps would read several files together.

        Only the columns that are needed are read, but where partitions depend on them: those of a certain size in bytes.
        """
        fewer = self.frame.simplify()
        frame = fewer if fewer.npartitions == self.frame.npartitions else self.frame
        return list(frame.to_delayed(optimize_graph=False))

    @cached_property
    def names(self) -> list[str]:
        """By number."""
        return [f"Partition {number}" for number in range(len(self.parts))]

    def select(self, columns: Sequence[str]) -> DaskTable:
        """Return some columns; no other is read."""
        return DaskTable(self.frame[list(columns)])

    def where(self, columns: Sequence[str], function: Callable[..., Booleans], *shared: Any) -> DaskTable:
        """Return some rows."""
        frame, names = self.frame, list(columns)
        return DaskTable(frame.map_partitions(_rows, names, function, *shared, meta=frame, enforce_metadata=False))

    def answers(self, function: Callable[..., Any], *shared: Any, parts: Sequence[int] | None = None) -> list[Any]:
        """Compute the answers of partitions, all at once."""
        chosen = range(len(self.parts)) if parts is None else parts
        watch = PassWatch(len(chosen))
        return list(self._computed(self._tasks(chosen, watch.counting(function), shared), watch))

    def merged(self, function: Callable[..., Any], merge: Callable[[Sequence[Any]], Any], *shared: Any) -> Any:
        """Compute and merge the answers where they are, in steps of a few."""
        import dask

        watch = PassWatch(len(self.parts))
        tasks = self._tasks(range(len(self.parts)), watch.counting(function), shared)
        merging = dask.delayed(merge, pure=False, traverse=False)
        while len(tasks) > 1:
            tasks = [merging(tasks[k : k + AT_ONCE]) for k in range(0, len(tasks), AT_ONCE)]
        (found,) = self._computed(tasks, watch)
        return found

    def _computed(self, tasks: Sequence[Any], watch: PassWatch) -> Any:
        """Compute tasks; where a column was not found, look for the partition that lacks it."""
        import dask

        try:
            with watch:
                return dask.compute(*tasks)
        except KeyError:
            for name, part in zip(self.names, self.parts, strict=True):
                self._require_columns(name, part)
            raise

    def _require_columns(self, name: str, part: Any) -> None:
        import dask

        try:
            dask.compute(part)
        except KeyError as error:
            column = next((one for one in self.columns if repr(one) in str(error)), str(error))
            raise OrthocalError(f"{name}: column {column!r} must be in every file; it is not in this one.") from None

    def _tasks(self, chosen: Sequence[int], function: Callable[..., Any], shared: Sequence[Any]) -> list[Any]:
        import dask

        task, sent = dask.delayed(function, pure=False), [_sent(one) for one in shared]
        return [task(self.parts[number], self.names[number], *sent) for number in chosen]

    def ranges(
        self, function: Callable[..., Any], build: Callable[..., Any], inner: Floats, empty: Any, *shared: Any
    ) -> DaskRanges:
        """Move rows between workers, which keep the ranges."""
        import dask
        from dask import dataframe as dd

        if len(self.parts) * (len(inner) + 1) <= MOST_BUNDLES:
            return self._bundled(function, build, inner, empty, shared)
        divisions = np.concatenate([[-np.inf], np.nextafter(inner, np.inf), [np.inf]])
        moved = self._tasks(range(len(self.parts)), function, shared)
        table = dd.from_delayed([both[0] for both in moved], meta=empty, verify_meta=False)
        if len(divisions) > 2:
            table = table.set_index("prediction", divisions=divisions.tolist(), drop=False)
        else:
            table = table.repartition(npartitions=1)
        task, sent = dask.delayed(_kept, pure=False), [_sent(one) for one in shared]
        built = [task(part, _sent(build), *sent) for part in table.to_delayed()]
        kept = dask.persist(*built, *(both[1] for both in moved))  # together, so that no partition is read twice
        return DaskRanges(kept[: len(built)], kept[len(built) :])

    def _bundled(
        self, function: Callable[..., Any], build: Callable[..., Any], inner: Floats, empty: Any, shared: Sequence[Any]
    ) -> DaskRanges:
        """Move rows as bundles, a task each: faster than Dask's own shuffle, while there are not too many."""
        import dask

        finder, sent = _sent(CellFinder.of(inner)), [_sent(one) for one in shared]
        divide, gather = (dask.delayed(one, pure=False) for one in (_divided, _gathered))
        moved = [
            divide(part, name, _sent(function), finder, *sent)
            for part, name in zip(self.parts, self.names, strict=True)
        ]
        built = [
            gather([bundles[number + 1] for bundles in moved], _sent(build), _sent(empty), *sent)
            for number in range(len(inner) + 1)
        ]
        kept = dask.persist(*built, *(bundles[0] for bundles in moved))  # together, so that no partition is read twice
        return DaskRanges(kept[: len(built)], kept[len(built) :])

    def calls(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], *shared: Any) -> list[Any]:
        """Have workers make the calls."""
        import dask

        task, sent = dask.delayed(function, pure=False), [_sent(one) for one in shared]
        return list(dask.compute(*[task(*own, *sent) for own in arguments]))

    def trained(self, job: Any, learners: Mapping[str, Any] | str | None, probed: Any) -> tuple[Any, ...]:
        """Learn by estimators that take Dask arrays."""
        return train_on_partitions(self.parts, job, learners, probed)

    def with_column(self, name: str, function: Callable[..., Any], source: str, *shared: Any) -> Any:
        """Return the frame with one more column."""
        column = self.frame[source].map_partitions(function, *shared, meta=(source, "f8"))
        return self.frame.assign(**{name: column})


@dataclass(frozen=True, eq=False)
class DaskRanges:
    """Ranges that workers keep."""

    pieces: Sequence[Any]
    noted: Sequence[Any]
    changes: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = ()

    @cached_property
    def notes(self) -> list[Any]:
        """Of all partitions."""
        import dask

        return list(dask.compute(*self.noted))

    def answers(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Compute the answers of all ranges."""
        import dask

        task, sent = dask.delayed(_answer, pure=False), [_sent(one) for one in (self.changes, function, *shared)]
        asked = [task(piece, number, *sent) for number, piece in enumerate(self.pieces)]
        return list(dask.compute(*asked))

    def changed(self, function: Callable[..., Any], *shared: Any) -> DaskRanges:
        """Return what a function makes of the ranges, when they are read."""
        return replace(self, changes=(*self.changes, (function, shared)))


def _sent(value: Any) -> Any:
    """Return a value that is sent once, to whoever needs it, and as it is."""
    import dask

    return dask.delayed(value, pure=False, traverse=False)


def _divided(part: Any, name: str, function: Callable[..., Any], finder: CellFinder, *shared: Any) -> list[Any]:
    """The note of a partition, and its rows by range, None where there are none."""
    table, note = function(part, name, *shared)
    found = dict(bundles(table, finder))
    return [note, *(found.get(number) for number in range(len(finder)))]


def _gathered(parts: Sequence[Bundle | None], build: Callable[..., Any], empty: Any, *shared: Any) -> Any:
    """A range of the rows that arrive."""
    some = [part for part in parts if part is not None]
    found = _kept(joined_frame(some) if some else empty, build, *shared)
    give_back_freed_arrays()  # those of bundles: a worker that seems full writes its part of the others to disk
    return found


def _kept(table: Any, build: Callable[..., Any], *shared: Any) -> KeptRange:
    return KeptRange(build(table, *shared))


def _answer(kept: Any, number: int, changes: Sequence[Any], function: Callable[..., Any], *shared: Any) -> Any:
    """The answer of a range, on a worker, whose many short steps would else have their memory provided anew each."""
    reuse_freed_arrays(LARGEST, MOST_FREE)
    piece = kept.read()
    for change, more in changes:
        piece = change(piece, *more)
    return function(piece, number, *shared)


def _rows(part: Any, columns: list[str], function: Callable[..., Booleans], *shared: Any) -> Any:
    return part[function(part[columns], *shared)]
