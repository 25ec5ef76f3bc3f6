"""Tables that pass through: one column added, the others as they were, however many rows there are.

From CSV to CSV every other field keeps its text; from Parquet to Parquet every other column keeps its type and bits.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

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


def add_calibrated(
    fitted: Map,
    source: Path,
    target: Path,
    prediction: str,
    tell: Callable[[int], None] = lambda _: None,
    *,
    overwrite: bool = False,
) -> int:
    """Copy a table with one more column, the calibrated prediction, and return its number of rows.

    Parameters
    ----------
    source, target : path, or ``Path("-")`` for standard input or output
        The ending of a name says how the table is kept. A file appears under its name when it is whole.
    prediction : str
        Column of predictions; the new column is called after it, with ``_calibrated``, and replaces one of that name.
    tell : callable
        Is told the number of rows done.
    overwrite : bool, default False
        Whether a file that exists may be replaced.
    """
    copy = _copy_text if _format(source) is _format(target) is _CSV else _copy_batches
    if source != STANDARD:
        require_file(source)
    with _finished(target, overwrite) as unfinished, _readable(source):
        rows = 0
        for done in copy(fitted, source, unfinished, prediction):
            rows += done
            tell(rows)
        if rows == 0:
            raise OrthocalError(f"The data file {source} must have rows; it has none.")
    return rows


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


def _copy_text(fitted: Map, source: Path, target: Path, prediction: str) -> Iterator[int]:
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
            values = fitted.predict(_parsed([row[column] for row in rows], prediction, first))
            pairs = zip(rows, values.tolist(), strict=True)
            writer.writerows([*row[:where], value, *row[where + 1 :]] for row, value in pairs)
            first += len(rows)
            yield len(rows)


def _copy_batches(fitted: Map, source: Path, target: Path, prediction: str) -> Iterator[int]:
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
                values = fitted.predict(as_numbers(column, prediction, first=first))
                old = batch.columns
                write(pa.RecordBatch.from_arrays([*old[:where], pa.array(values), *old[where + 1 :]], schema=wide))
                first += batch.num_rows
                yield batch.num_rows


def _places(names: list[str], prediction: str) -> tuple[list[str], int]:
    """Return the names of all columns and the place of the new one: last, or where one of that name is."""
    new = f"{prediction}_calibrated"
    wide = names if new in names else [*names, new]
    return wide, wide.index(new)


def _parsed(texts: list[str], name: str, first: int) -> Floats:
    numbers = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            numbers[row] = float(text.replace("_", "?"))  # Python reads 1_000 as a number, tables do not
        except ValueError:
            raise OrthocalError(
                f"`{name}` must hold numbers; row {first + row} is {text!r}. Drop such rows or fill them in."
            ) from None
    require_finite(numbers, name, first)
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
