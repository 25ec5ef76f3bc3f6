"""What Spark's Python workers do: Arrow batches of a partition in, one pickled answer out."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from orthocal.arrays import Floats
from orthocal.engines.local.table import Filter
from orthocal.engines.partitioned.bundles import bundles, joined_frame
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.errors import OrthocalError

ANSWERS = "number long, answer binary"
"""What workers return: the number of a chunk, partition, range or call, and its answer."""
ROWS = 2**20
"""Of a chunk at most: a worker holds one at a time, however large Spark's partitions are."""
MOST_CHUNKS = 2**24
"""Of a partition: chunks are numbered from here for every partition."""
Changes = tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]
"""Functions of a range, and what else they take."""


def packed(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Return the answer of a function, pickled; a broken rule is an answer, too, so that no task is tried again in vain."""
    try:
        return _pickled(function(*arguments))
    except OrthocalError as error:
        return _pickled(error)


def _pickled(value: Any) -> bytes:
    from pyspark import cloudpickle  # takes what is defined in a notebook, too

    return bytes(cloudpickle.dumps(value))


def unpacked(answer: bytes) -> Any:
    """Return an answer; raise what a worker could not."""
    found = pickle.loads(answer)  # noqa: S301  # written by a worker of the user's own session
    if isinstance(found, OrthocalError):
        raise found
    return found


def _row(number: int, answer: bytes) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {"number": pa.array([number], pa.int64()), "answer": pa.array([answer], pa.binary())}
    )


@dataclass(frozen=True, eq=False)
class ChunkReader:
    """How a worker makes pandas frames of the batches of its partition, a chunk at a time.

    Parameters
    ----------
    read : tuple of str
        Columns as they come.
    columns : tuple of str
        Columns that are wanted.
    filters : tuple of Filter
        Which rows are.
    wanted : mapping of int to sequence of int, optional
        Chunks of partitions that come, in order; all by default.
    """

    read: tuple[str, ...]
    columns: tuple[str, ...]
    filters: tuple[Filter, ...]
    wanted: Mapping[int, Sequence[int]] | None = None

    def frames(self, batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the number of each chunk, and the rows of it that count; a partition without rows is one chunk."""
        from pyspark import TaskContext

        partition = int(TaskContext.get().partitionId())
        chunks = iter(range(MOST_CHUNKS) if self.wanted is None else self.wanted.get(partition, ()))
        # Batches first, so that all are read: a worker that leaves some unread is not used again.
        for found, chunk in zip(chunks_of_batches(batches), chunks, strict=False):
            yield partition * MOST_CHUNKS + chunk, self.frame(found)

    def frame(self, batches: Sequence[Any]) -> Any:
        """Return the rows of a chunk that count."""
        import pandas as pd
        import pyarrow as pa

        if not batches:
            return pd.DataFrame(columns=list(self.columns))
        part = pa.Table.from_batches(batches).rename_columns(list(self.read)).to_pandas()
        for one in self.filters:
            part = part[one.function(part[list(one.columns)], *one.shared)]
        return part[list(self.columns)]


def chunks_of_batches(batches: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield the batches of a chunk after the other, divided where a chunk ends; one without batches where there are no rows."""
    held: list[Any] = []
    rows, is_first = 0, True
    for batch in batches:
        while rows + batch.num_rows > ROWS:
            yield [*held, batch.slice(0, ROWS - rows)]
            batch, held, rows, is_first = batch.slice(ROWS - rows), [], 0, False  # noqa: PLW2901
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
    if held or is_first:
        yield held


def chunk_name(number: int) -> str:
    """Return what sentences call a chunk: by Spark's number of its partition, that of ``spark_partition_id()``."""
    partition, chunk = divmod(number, MOST_CHUNKS)
    return f"Partition {partition}" + (f", from row {chunk * ROWS:,}" if chunk else "")


def answering(
    reader: ChunkReader, function: Callable[..., Any], shared: Sequence[Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does to answer for the chunks of its partition."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for number, part in reader.frames(batches):
            yield _row(number, packed(function, part, chunk_name(number), *shared))

    return task


def summarising(
    reader: ChunkReader, function: Callable[..., Any], shared: Sequence[Any], merge: Callable[[Sequence[Any]], Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does to answer for its partition: the answers of its chunks, merged as they come."""

    def summary(chunks: Iterator[tuple[int, Any]]) -> Any:
        return reduce(
            lambda one, other: merge([one, other]),
            (function(part, chunk_name(number), *shared) for number, part in chunks),
        )

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield _row(TaskContext.get().partitionId(), packed(summary, reader.frames(batches)))
        for _ in batches:  # where a rule is broken: a worker that leaves rows unread is not used again
            pass

    return task


def merging(merge: Callable[[Sequence[Any]], Any]) -> Callable[[Any], Any]:
    """Return what a worker does to merge a few answers into one."""

    def merged_answers(answers: Any) -> Any:
        return merge([unpacked(one) for one in answers])

    def task(group: Any) -> Any:
        import pandas as pd

        ordered = group.sort_values("number")
        found = packed(merged_answers, ordered["answer"])
        return pd.DataFrame({"number": ordered["number"].iloc[:1], "answer": [found]})

    return task


def dividing(
    reader: ChunkReader, function: Callable[..., Any], shared: Sequence[Any], inner: Floats
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does to divide its rows by ranges of the prediction; a broken rule goes to the first."""
    finder = CellFinder.of(inner)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for number, part in reader.frames(batches):
            try:
                table, _ = function(part, chunk_name(number), *shared)
                for where, rows in bundles(table, finder):
                    yield _row(where, _pickled(rows))
            except OrthocalError as error:
                yield _row(0, _pickled(error))

    return task


def building(build: Callable[..., Any], shared: Sequence[Any]) -> Callable[[Any], Any]:
    """Return what a worker does to make a range of the rows that arrive."""

    def built(answers: Any) -> Any:
        return build(joined_frame([unpacked(one) for one in answers]), *shared)

    def task(group: Any) -> Any:
        import pandas as pd

        return pd.DataFrame({"number": group["number"].iloc[:1], "answer": [packed(built, group["answer"])]})

    return task


def asking(
    changes: Changes, function: Callable[..., Any], shared: Sequence[Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does to answer for the ranges it is given."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number, piece in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                yield _row(number, packed(_of_packed, piece.as_py(), number, changes, function, shared))

    return task


def _of_packed(piece: bytes, number: int, *more: Any) -> Any:
    return of_range(unpacked(piece), number, *more)


def of_range(piece: Any, number: int, changes: Changes, function: Callable[..., Any], shared: Sequence[Any]) -> Any:
    """Return the answer of one range, changed before it is asked."""
    for change, more in changes:
        piece = change(piece, *more)
    return function(piece, number, *shared)


def calling(
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], shared: Sequence[Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does to make the calls whose numbers it is given."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _row(number, packed(function, *arguments[number], *shared))

    return task
