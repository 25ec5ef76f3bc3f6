"""Tables that pass through: one column added, the others as they were, however many rows there are.

From CSV to CSV every other field keeps its text; from Parquet to Parquet every other column keeps its type and bits.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError, require_finite
from orthocal.files.atomic import new_file
from orthocal.files.tables import ending, read_csv, require_column, require_different, require_file
from orthocal.observations import as_numbers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyarrow import RecordBatch, Schema

    from orthocal.maps import Map

STANDARD = Path("-")
"""The name of standard input and output, which carry CSV."""
BATCH, TEXT_BATCH = 2**20, 2**16
"""Rows in memory at once: of Parquet, whose largest row groups have as many by default, and of CSV."""
GZIP_LEVEL = 6
"""What the gzip command uses; 9 takes three times as long for little."""


MISSING = {"", "na", "nan", "null", "none"}
"""Texts that stand for a missing number."""


class Added(NamedTuple):
    """How many rows a table has, how many of them without a prediction, and how many with one beyond the fitted range."""

    rows: int = 0
    missing: int = 0
    outside: int = 0

    def merge(self, other: Added) -> Added:
        """Of both."""
        return Added(*(one + two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class Applied:
    """A map, and the range of predictions it was fitted on."""

    fitted: Map
    ends: tuple[float, float] = (-np.inf, np.inf)

    def to(self, prediction: Floats) -> tuple[Floats, Added]:
        """Return the calibrated predictions, missing where the predictions are, and what is to be counted."""
        known = ~np.isnan(prediction)
        values = np.full(len(prediction), np.nan)
        values[known] = self.fitted.predict(prediction[known])
        low, high = self.ends
        outside = int(((prediction < low) | (prediction > high)).sum())
        return values, Added(len(prediction), int((~known).sum()), outside)


def add_calibrated(
    fitted: Map,
    source: Path,
    target: Path,
    prediction: str,
    tell: Callable[[int], None] = lambda _: None,
    *,
    ends: tuple[float, float] = (-np.inf, np.inf),
    overwrite: bool = False,
) -> Added:
    """Copy a table with one more column, the calibrated prediction, and return how many rows it has.

    Where a prediction is missing, so is the calibrated one.

    Parameters
    ----------
    source, target : path, or ``Path("-")`` for standard input or output
        The ending of a name says how the table is kept. A file appears under its name when it is whole.
    prediction : str
        Column of predictions; the new column is called after it, with ``_calibrated``, and replaces one of that name.
    tell : callable
        Is told the number of rows done.
    ends : (float, float), optional
        The range of predictions that the map was fitted on; those beyond it are counted.
    overwrite : bool, default False
        Whether a file that exists may be replaced.
    """
    copy = _copy_text if _format(source) is _format(target) is _CSV else _copy_batches
    if source != STANDARD:
        require_file(source)
    with _finished(target, overwrite) as unfinished, _readable(source):
        added = Added()
        for done in copy(Applied(fitted, ends), source, unfinished, prediction):
            added = added.merge(done)
            tell(added.rows)
        if added.rows == 0:
            raise OrthocalError(f"The data file {source} must have rows; it has none.")
    return added


def _finished(target: Path, overwrite: bool) -> AbstractContextManager[Path]:
    """Where to write so that the target appears whole or not at all; standard output can only be written as it comes."""
    return nullcontext(target) if target == STANDARD else new_file(target, overwrite=overwrite)


@contextmanager
def _readable(source: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with the data, whoever finds out."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OrthocalError(f"The data file {source} cannot be copied: {str(error).splitlines()[0]}") from None


def _copy_text(applied: Applied, source: Path, target: Path, prediction: str) -> Iterator[Added]:
    """CSV to CSV: fields are never anything but text, so that 007 stays 007."""
    with _text(source, "r", "utf-8-sig") as read, _text(target, "w", "utf-8") as write:
        reader = filter(None, csv.reader(read, strict=True))  # empty lines are no rows
        writer = csv.writer(write, lineterminator="\n")
        header = next(reader, [])
        require_different(header, source)
        require_column(header, prediction, "prediction")
        names, where = _places(header, prediction)
        writer.writerow(names)
        first, column = 0, header.index(prediction)
        while rows := list(islice(reader, TEXT_BATCH)):
            _require_full(rows, len(header), source, first)
            values, added = applied.to(_parsed([row[column] for row in rows], prediction, first))
            texts = ["" if math.isnan(value) else value for value in values.tolist()]
            pairs = zip(rows, texts, strict=True)
            writer.writerows([*row[:where], value, *row[where + 1 :]] for row, value in pairs)
            first += len(rows)
            yield added


def _copy_batches(applied: Applied, source: Path, target: Path, prediction: str) -> Iterator[Added]:
    """Any table to any other, a batch of typed columns at a time."""
    import pyarrow as pa

    reading, writing = _format(source)[0], _format(target)[1]
    with reading(source) as (schema, batches):
        require_different(schema.names, source)
        require_column(schema.names, prediction, "prediction")
        names, where = _places(schema.names, prediction)
        fields = [*list(schema)[:where], pa.field(names[where], pa.float64()), *list(schema)[where + 1 :]]
        wide, first = pa.schema(fields, metadata=schema.metadata), 0
        with writing(target, wide) as write:
            for batch in batches:
                column = pa.chunked_array([batch.column(prediction)])
                values, added = applied.to(_numbers(column, prediction, first))
                new, old = pa.array(values, from_pandas=True), batch.columns  # NaN becomes a missing value
                write(pa.RecordBatch.from_arrays([*old[:where], new, *old[where + 1 :]], schema=wide))
                first += batch.num_rows
                yield added


def _numbers(column: Any, name: str, first: int) -> Floats:
    """Return a typed column of numbers, NaN where they are missing."""
    numbers = np.full(len(column), np.nan)
    known = np.asarray(column.is_valid()) & ~_are_nan(column)
    numbers[known] = as_numbers(column.filter(known), name, first=first)
    return numbers


def _are_nan(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), dtype=bool)
    return np.asarray(compute.fill_null(compute.is_nan(column), False))


def _places(names: list[str], prediction: str) -> tuple[list[str], int]:
    """Return the names of all columns and the place of the new one: last, or where one of that name is."""
    new = f"{prediction}_calibrated"
    wide = names if new in names else [*names, new]
    return wide, wide.index(new)


def _parsed(texts: list[str], name: str, first: int) -> Floats:
    numbers = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            # Python reads 1_000 as a number, tables do not.
            numbers[row] = np.nan if text.strip().lower() in MISSING else float(text.replace("_", "?"))
        except ValueError:
            raise OrthocalError(
                f"`{name}` must hold numbers; row {first + row} is {text!r}. Drop such rows or fill them in."
            ) from None
    require_finite(np.where(np.isnan(numbers), 0.0, numbers), name, first)
    return numbers


def _require_full(rows: list[list[str]], width: int, source: Path, first: int) -> None:
    for row, fields in enumerate(rows, first):
        if len(fields) != width:
            raise OrthocalError(
                f"Every row of {source} must have {width} fields, as its header has; row {row} has {len(fields)}. "
                "Mend the file."
            )


def _opened(path: Path, mode: str) -> AbstractContextManager[IO[bytes]]:
    """Open the bytes of a CSV table; standard input and output stay open afterwards."""
    if path == STANDARD:
        return nullcontext({"r": sys.stdin, "w": sys.stdout}[mode].buffer)
    if path.name.lower().endswith(".gz"):
        return gzip.GzipFile(path, f"{mode}b", compresslevel=GZIP_LEVEL)  # type: ignore[return-value]
    return path.open(f"{mode}b")


@contextmanager
def _text(path: Path, mode: str, encoding: str) -> Iterator[IO[str]]:
    """Open a CSV table as text; bytes that are no UTF-8 pass through as they are."""
    with _opened(path, mode) as stream:
        text = io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="")
        try:
            yield text
        finally:
            text.detach()


@contextmanager
def _csv_batches(path: Path) -> Iterator[tuple[Schema, Iterable[RecordBatch]]]:
    # Not a batch at a time: a column's type may show in its last rows only.
    with _opened(path, "r") as stream:
        table = read_csv(stream)
    yield table.schema, table.to_batches(max_chunksize=BATCH)


@contextmanager
def _csv_writer(path: Path, schema: Schema) -> Iterator[Callable[[RecordBatch], None]]:
    from pyarrow import csv as arrow_csv

    with _opened(path, "w") as stream, arrow_csv.CSVWriter(stream, schema) as writer:
        yield writer.write_batch


@contextmanager
def _parquet_batches(path: Path) -> Iterator[tuple[Schema, Iterable[RecordBatch]]]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        groups = range(file.num_row_groups)  # one by one: a batch across two holds both in memory and takes longer
        yield file.schema_arrow, (b for g in groups for b in file.iter_batches(batch_size=BATCH, row_groups=[g]))


@contextmanager
def _parquet_writer(path: Path, schema: Schema) -> Iterator[Callable[[RecordBatch], None]]:
    from pyarrow import parquet

    with parquet.ParquetWriter(path, schema) as writer:
        yield writer.write_batch


_CSV: tuple[Any, Any] = (_csv_batches, _csv_writer)
FORMATS: dict[str, tuple[Any, Any]] = {".csv": _CSV, ".csv.gz": _CSV, ".parquet": (_parquet_batches, _parquet_writer)}
"""How tables are read and written, by the ending of their names."""


def _format(path: Path) -> tuple[Any, Any]:
    return _CSV if path == STANDARD else FORMATS[ending(path, FORMATS)]
