"""Files larger than memory as a table in partitions: one process, a thread for every core, a chunk in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orthocal.arrays import Booleans, Floats
from orthocal.engines.local.chunks import CONVERTERS, Chunk, Scratch, chunks_of, files_of, from_relation, one_ending
from orthocal.engines.local.ranges import LocalRanges
from orthocal.engines.local.threads import in_threads
from orthocal.errors import UnavailableError
from orthocal.progress import followed, passing

if TYPE_CHECKING:
    from pathlib import Path

AT_ONCE = 8
"""Summaries that are merged in one step."""
BLOCK = 2**20
"""Rows that are summed up together, at most; a longer chunk, which a long row group of its file makes, is divided."""


@dataclass(frozen=True)
class Filter:
    """Which rows are kept: a function of some columns."""

    columns: tuple[str, ...]
    function: Callable[..., Booleans]
    shared: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class LocalTable:
    """Chunks of files, some of their columns, and which rows of them count.

    Parameters
    ----------
    chunks : tuple of Chunk
    columns : list of str
    scratch : Scratch
        Where copies and ranges lie.
    filters : tuple of Filter
    place, sampling : str
    """

    chunks: tuple[Chunk, ...]
    columns: list[str]
    scratch: Scratch
    filters: tuple[Filter, ...] = ()
    place: str = "in files"
    sampling: str = "duckdb.sql('FROM ... USING SAMPLE 1%').df()"

    @classmethod
    def of_files(cls, data: str | Path) -> LocalTable:
        """Of a file, a folder of files or a pattern."""
        scratch, files = Scratch(), files_of(str(data))
        columns, chunks = chunks_of(CONVERTERS[one_ending(files, str(data))](files, scratch))
        return cls(tuple(chunks), columns, scratch)

    @classmethod
    def of_relation(cls, relation: Any) -> LocalTable:
        """Of a DuckDB relation."""
        scratch = Scratch()
        columns, chunks = chunks_of(from_relation(relation, scratch))
        return cls(tuple(chunks), columns, scratch, place="in DuckDB", sampling="relation.query('t', '... 1%').df()")

    @cached_property
    def names(self) -> list[str]:
        """By file, and by rows of it."""
        return [chunk.name for chunk in self.chunks]

    @cached_property
    def workers(self) -> int:
        """One for every core."""
        from joblib import effective_n_jobs

        return int(effective_n_jobs(-1))

    def read(self, chunk: Chunk) -> Any:
        """Return the rows of a chunk that count."""
        needed = list(dict.fromkeys([*self.columns, *(name for one in self.filters for name in one.columns)]))
        part = chunk.read(needed)
        for one in self.filters:
            part = part[one.function(part[list(one.columns)], *one.shared)]
        return part if needed == self.columns else part[self.columns]

    def select(self, columns: Sequence[str]) -> LocalTable:
        """Return some columns; no other is read."""
        return replace(self, columns=list(columns))

    def where(self, columns: Sequence[str], function: Callable[..., Booleans], *shared: Any) -> LocalTable:
        """Return some rows."""
        return replace(self, filters=(*self.filters, Filter(tuple(columns), function, shared)))

    def answers(self, function: Callable[..., Any], *shared: Any, parts: Sequence[int] | None = None) -> list[Any]:
        """Take the chunks in turn, one in each thread."""
        return list(self._answers(function, shared, parts))

    def merged(self, function: Callable[..., Any], merge: Callable[[Sequence[Any]], Any], *shared: Any) -> Any:
        """Merge answers as they come, a few at a time; a chunk is summed up in blocks."""

        def in_blocks(part: Any, name: str) -> Any:
            starts = range(0, max(len(part), 1), BLOCK)
            return merge([function(part.iloc[start : start + BLOCK], name, *shared) for start in starts])

        return merged_in_order(self._answers(in_blocks, (), None), merge)

    def _answers(
        self, function: Callable[..., Any], shared: Sequence[Any], parts: Sequence[int] | None
    ) -> Iterator[Any]:
        chosen = self.chunks if parts is None else [self.chunks[number] for number in parts]

        def answer(chunk: Chunk) -> Any:
            return function(self.read(chunk), chunk.name, *shared)

        tell, rows = passing(), 0
        for done, (chunk, found) in enumerate(zip(chosen, in_threads(answer, chosen, self.workers), strict=True), 1):
            rows += chunk.rows
            tell(done, len(chosen), rows)
            yield found

    def ranges(
        self, function: Callable[..., Any], build: Callable[..., Any], inner: Floats, empty: Any, *shared: Any
    ) -> LocalRanges:
        """Write the rows to disk by ranges, then sort one range at a time."""
        tables = [lambda chunk=chunk: function(self.read(chunk), chunk.name, *shared) for chunk in self.chunks]
        return LocalRanges.of(tables, lambda table: build(table, *shared), inner, empty, self.workers)

    def calls(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], *shared: Any) -> list[Any]:
        """Make the calls in turn: learners use all cores by themselves."""
        return [function(*own, *shared) for own in followed(arguments, len(arguments))]

    def trained(self, job: Any, learners: Mapping[str, Any] | str | None, probed: Any) -> tuple[Any, ...]:
        """Refuse: learners here see rows in memory."""
        del job, learners, probed
        raise UnavailableError("Nuisances must be learnt on a sample here; `sample` is None. Pass sample=200_000, say.")

    def with_column(self, name: str, function: Callable[..., Any], source: str, *shared: Any) -> Any:
        """Return a reader of record batches with one more column, to be written or queried as they come."""
        import pyarrow as pa

        def batches() -> Iterator[Any]:
            for chunk in self.chunks:
                part = self.read(chunk)
                yield from pa.Table.from_pandas(
                    part.assign(**{name: function(part[source], *shared)}), preserve_index=False
                ).to_batches()

        first = self.read(self.chunks[0]).iloc[:0]
        schema = pa.Table.from_pandas(first.assign(**{name: 0.0}), preserve_index=False).schema
        return pa.RecordBatchReader.from_batches(schema, batches())


def merged_in_order(answers: Iterable[Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    """Merge answers in order, eight and then eight of eight: few lie waiting, and none is merged again and again."""
    levels: list[list[Any]] = [[]]
    for answer in answers:
        place, level = answer, 0
        levels[0].append(place)
        while len(levels[level]) == AT_ONCE:
            place = merge(levels[level])
            levels[level] = []
            level += 1
            if level == len(levels):
                levels.append([])
            levels[level].append(place)
    return merge([one for level in reversed(levels) for one in level])
