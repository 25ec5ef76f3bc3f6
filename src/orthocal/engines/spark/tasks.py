"""What Spark's Python workers do: Arrow batches of a partition in, one pickled answer out."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.engines.local.table import Filter
from orthocal.errors import OrthocalError

ANSWERS = "number int, answer binary"
"""What workers return: the number of a partition, range or call, and its answer."""
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
        {"number": pa.array([number], pa.int32()), "answer": pa.array([answer], pa.binary())}
    )


@dataclass(frozen=True, eq=False)
class PartitionReader:
    """How a worker makes a pandas frame of the batches of its partition.

    Parameters
    ----------
    read : tuple of str
        Columns as they come.
    columns : tuple of str
        Columns that are wanted.
    filters : tuple of Filter
        Which rows are.
    """

    read: tuple[str, ...]
    columns: tuple[str, ...]
    filters: tuple[Filter, ...]

    def frame(self, batches: Iterator[Any]) -> Any:
        """Return the rows of a partition that count. All are read: a worker that leaves some unread is not used again."""
        import pandas as pd
        import pyarrow as pa

        found = [batch for batch in batches if batch.num_rows]
        if not found:
            return pd.DataFrame(columns=list(self.columns))
        part = pa.Table.from_batches(found).rename_columns(list(self.read)).to_pandas()
        for one in self.filters:
            part = part[one.function(part[list(one.columns)], *one.shared)]
        return part[list(self.columns)]


def partition_number() -> int:
    """Return the number of the partition that a worker is at."""
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


def partition_name(number: int) -> str:
    """Return what sentences call a partition: Spark's own number of it, that of ``spark_partition_id()``."""
    return f"Partition {number}"


def answering(
    reader: PartitionReader, function: Callable[..., Any], shared: Sequence[Any], parts: Sequence[int] | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does to answer for its partition."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        number, part = partition_number(), reader.frame(batches)
        if parts is None or number in parts:
            yield _row(number, packed(function, part, partition_name(number), *shared))

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
    reader: PartitionReader, function: Callable[..., Any], shared: Sequence[Any], inner: Floats
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does to divide its rows by ranges of the prediction."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        number, part = partition_number(), reader.frame(batches)
        try:
            table = function(part, partition_name(number), *shared)
        except OrthocalError as error:
            yield _row(0, _pickled(error))
            return
        place = np.searchsorted(inner, table["prediction"].to_numpy(), side="left")
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place, minlength=len(inner) + 1))
        columns = {name: table[name].to_numpy()[order] for name in table.columns}
        for first, last, where in zip([0, *ends[:-1].tolist()], ends.tolist(), range(len(ends)), strict=True):
            if last > first:
                yield _row(where, _pickled({name: one[first:last] for name, one in columns.items()}))

    return task


def building(build: Callable[..., Any], shared: Sequence[Any]) -> Callable[[Any], Any]:
    """Return what a worker does to make a range of the rows that arrive."""

    def built(answers: Any) -> Any:
        import pandas as pd

        parts = [unpacked(one) for one in answers]
        return build(pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}), *shared)

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
