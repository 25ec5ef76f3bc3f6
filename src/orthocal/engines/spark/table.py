"""A Spark frame as a table in partitions: Arrow batches to the workers, summaries to the driver."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from itertools import groupby
from operator import or_
from typing import Any

from orthocal.arrays import Booleans, Floats
from orthocal.engines.local.table import Filter
from orthocal.engines.spark.tasks import (
    ANSWERS,
    MOST_CHUNKS,
    ROWS,
    Changes,
    ChunkReader,
    answering,
    asking,
    building,
    calling,
    chunk_name,
    dividing,
    merging,
    of_range,
    summarising,
    unpacked,
)
from orthocal.errors import UnavailableError

AT_ONCE = 16
"""Summaries that are merged in one step, by a worker or, the last of them, by the driver."""


@dataclass(frozen=True, eq=False)
class SparkTable:
    """The partitions of a Spark frame, some of its columns, and which of its rows count.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    columns : list of str
    chunks : callable
        The numbers of the chunks that partitions come in: Spark is asked once, and late.
    filters : tuple of Filter
    place, sampling : str
    """

    frame: Any
    columns: list[str]
    chunks: Callable[[], list[int]]
    filters: tuple[Filter, ...] = ()
    place: str = "on Spark"
    sampling: str = "frame.sample(0.01).toPandas()"

    @classmethod
    def of_frame(cls, frame: Any) -> SparkTable:
        """Of a user's frame."""
        return cls(frame, list(frame.columns), cache(lambda: _chunks(frame)))

    @property
    def names(self) -> list[str]:
        """By Spark's number of the partition, and the first row of a chunk."""
        return [chunk_name(number) for number in self.chunks()]

    def select(self, columns: Sequence[str]) -> SparkTable:
        """Return some columns; no other is read."""
        return replace(self, columns=list(columns))

    def where(self, columns: Sequence[str], function: Callable[..., Booleans], *shared: Any) -> SparkTable:
        """Return some rows."""
        return replace(self, filters=(*self.filters, Filter(tuple(columns), function, shared)))

    def answers(self, function: Callable[..., Any], *shared: Any, parts: Sequence[int] | None = None) -> list[Any]:
        """Collect the answers of chunks; one that Spark has no longer, for it may divide a frame anew, is empty."""
        wanted = None if parts is None else [self.chunks()[part] for part in parts]
        frame, reader = self._read(wanted)
        found = _collected(frame.mapInArrow(answering(reader, function, shared), ANSWERS))
        every = sorted(found) if wanted is None else wanted
        lost = [number for number in every if number not in found]
        found |= {number: function(reader.frame([]), chunk_name(number), *shared) for number in lost}
        return [found[number] for number in every]

    def merged(self, function: Callable[..., Any], merge: Callable[[Sequence[Any]], Any], *shared: Any) -> Any:
        """Have workers merge answers, a few at a time and in order, until few are left."""
        from pyspark.sql import functions as spark

        frame, reader = self._read(None)
        found = frame.mapInArrow(summarising(reader, function, shared, merge), ANSWERS)
        left, step = max(self.chunks(), default=0) // MOST_CHUNKS + 1, 1
        while left > AT_ONCE:
            step, left = step * AT_ONCE, -(-left // AT_ONCE)
            found = found.groupBy(spark.floor(spark.col("number") / step)).applyInPandas(merging(merge), ANSWERS)
        answers = _collected(found)
        if not answers:  # a frame without partitions
            return merge([function(reader.frame([]), chunk_name(0), *shared)])
        return merge([answers[number] for number in sorted(answers)])

    def _read(self, wanted: Sequence[int] | None) -> tuple[Any, ChunkReader]:
        """Return the frame of the columns that are read, under names that mean nothing to Spark, and how workers read it."""
        from pyspark.sql import functions as spark

        needed = list(dict.fromkeys([*self.columns, *(name for one in self.filters for name in one.columns)]))
        chosen = [_column(name).alias(f"c{place}") for place, name in enumerate(needed)]
        if not chosen:  # rows are counted by a column
            needed, chosen = [""], [spark.lit(0).alias("c0")]
        reader = ChunkReader(tuple(needed), tuple(self.columns), self.filters)
        if wanted is None:
            return self.frame.select(*chosen), reader
        # Spark numbers the rows of a partition from a multiple of 2^33; they are left out before they become Arrow batches.
        numbered = self.frame.select(*chosen, spark.monotonically_increasing_id().alias("row"))
        ends = [(number // MOST_CHUNKS * 2**33 + number % MOST_CHUNKS * ROWS) for number in wanted]
        kept = reduce(or_, [spark.col("row").between(first, first + ROWS - 1) for first in ends])
        frame = numbered.where(kept).drop("row")
        by_partition = {partition: list(own) for partition, own in groupby(sorted(wanted), lambda n: n // MOST_CHUNKS)}
        chunks = {partition: [number % MOST_CHUNKS for number in own] for partition, own in by_partition.items()}
        return frame, replace(reader, wanted=chunks)

    def ranges(
        self, function: Callable[..., Any], build: Callable[..., Any], inner: Floats, empty: Any, *shared: Any
    ) -> SparkRanges:
        """Move rows in bundles, one of each partition for each range; Spark keeps the ranges, in memory or on disk."""
        frame, reader = self._read(None)
        moved = frame.mapInArrow(dividing(reader, function, shared, inner), ANSWERS)
        moved = moved.repartition(len(inner) + 1, "number").groupBy("number")
        kept = KeptFrame(moved.applyInPandas(building(build, shared), ANSWERS))
        return SparkRanges(
            kept, len(inner) + 1, cache(lambda: build(empty, *shared)), lambda: self.answers(_noted, function, *shared)
        )

    def calls(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], *shared: Any) -> list[Any]:
        """Have workers make the calls, a task each."""
        if not arguments:
            return []
        numbers = self.frame.sparkSession.range(0, len(arguments), 1, len(arguments))
        found = _collected(numbers.mapInArrow(calling(function, list(arguments), shared), ANSWERS))
        return [found[number] for number in range(len(arguments))]

    def trained(self, job: Any, learners: Mapping[str, Any] | str | None, probed: Any) -> tuple[Any, ...]:
        """Refuse: learners here see rows in memory."""
        del job, learners, probed
        raise UnavailableError(
            "Nuisances must be learnt on a sample on Spark; `sample` is None. Pass sample=200_000, say, or give them as columns."
        )

    def with_column(self, name: str, function: Callable[..., Any], source: str, *shared: Any) -> Any:
        """Return the frame with one more column."""
        import pandas as pd
        from pyspark.sql.functions import pandas_udf

        def calibrated(column: Any) -> Any:
            return function(column, *shared)

        calibrated.__annotations__ = {"column": pd.Series, "return": pd.Series}  # by which Spark knows what to pass
        return self.frame.withColumn(name, pandas_udf(calibrated, "double")(_column(source)))


class KeptFrame:
    """A frame that Spark keeps once it is computed, for as long as this object lives."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame.persist()
        weakref.finalize(self, _release, self.frame).atexit = False


@dataclass(frozen=True, eq=False)
class SparkRanges:
    """Ranges that Spark keeps; one without rows is made on the driver.

    Parameters
    ----------
    kept : KeptFrame
    count : int
    empty, noting : callable
        Make a range without rows, and the notes of all partitions.
    changes : tuple
        What is made of ranges before they are asked.
    """

    kept: KeptFrame
    count: int
    empty: Callable[[], Any]
    noting: Callable[[], list[Any]]
    changes: Changes = ()

    @cached_property
    def notes(self) -> list[Any]:
        """Of all partitions, in a pass of their own."""
        return self.noting()

    def answers(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Collect the answers of all ranges."""
        found = _collected(self.kept.frame.mapInArrow(asking(self.changes, function, shared), ANSWERS))
        for number in range(self.count):
            if number not in found:
                found[number] = of_range(self.empty(), number, self.changes, function, shared)
        return [found[number] for number in range(self.count)]

    def changed(self, function: Callable[..., Any], *shared: Any) -> SparkRanges:
        """Return what a function makes of the ranges, when they are asked."""
        return replace(self, changes=(*self.changes, (function, shared)))


def _noted(part: Any, name: str, function: Callable[..., Any], *shared: Any) -> Any:
    """The note of a partition whose rows are to be moved."""
    return function(part, name, *shared)[1]


def _chunks(frame: Any) -> list[int]:
    """Return the numbers of all chunks, in order; partitions without rows have none."""
    from pyspark.sql import functions as spark

    counted = frame.select(spark.spark_partition_id().alias("partition")).groupBy("partition").count().collect()
    sizes = sorted((row["partition"], row["count"]) for row in counted)
    return [partition * MOST_CHUNKS + chunk for partition, size in sizes for chunk in range(-(-size // ROWS))]


def _column(name: str) -> Any:
    """Return a column by its name, dots and all."""
    from pyspark.sql import functions as spark

    return spark.col("`" + name.replace("`", "``") + "`")


def _collected(answers: Any) -> dict[int, Any]:
    return {row["number"]: unpacked(row["answer"]) for row in answers.collect()}


def _release(frame: Any) -> None:
    with suppress(Exception):  # the session may have ended
        frame.unpersist()
