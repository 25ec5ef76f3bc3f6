"""Tables that pass through: columns added, the others as they were, however many rows there are.

From CSV to CSV every other field keeps its text; from Parquet to Parquet every other column keeps its type and bits.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from orthocal.errors import OrthocalError
from orthocal.files.applied import ANYWHERE, Added, Applied, Ends
from orthocal.files.atomic import new_file
from orthocal.files.parsed import parsed_labels, parsed_numbers, require_full, typed_numbers
from orthocal.files.tables import ending, require_column, require_different, require_file
from orthocal.files.text_tables import found_encoding, openable, require_encoding, require_text, typed_table
from orthocal.formats import first_words, shown
from orthocal.observations import as_groups

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyarrow import RecordBatch, Schema

    from orthocal.joint_maps import JointMap
    from orthocal.maps import Map

STANDARD = Path("-")
"""The name of standard input and output, which carry CSV."""
BATCH, TEXT_BATCH = 2**20, 2**16
"""Rows in memory at once: of Parquet, whose largest row groups have as many by default, and of CSV."""
GZIP_LEVEL = 6
"""What the gzip command uses; 9 takes three times as long for little."""


def add_calibrated(
    fitted: Map | JointMap,
    source: Path,
    target: Path,
    predictions: str | Sequence[str],
    tell: Callable[[int], None] = lambda _: None,
    *,
    ends: Sequence[Ends] = (),
    band: Any = None,
    overwrite: bool = False,
    encoding: str | None = None,
) -> Added:
    """Copy a table with a column of calibrated predictions for each of predictions, and return how many rows it has.

    Where a prediction is missing, so is the calibrated one, and with several arms all of them.

    Parameters
    ----------
    source, target : path, or ``Path("-")`` for standard input or output
        The ending of a name says how the table is kept. A file appears under its name when it is whole.
    predictions : str or sequence of str
        Columns of predictions, one for a map of one; a new column is called after it, with ``_calibrated``, and replaces one of
        that name.
    tell : callable
        Receives the number of rows done.
    ends : sequence of (float, float), optional
        The ranges of predictions that the map was fitted on; those beyond them are counted.
    band : EffectBand, optional
        Adds columns ``_lower`` and ``_upper``: for the average effect of people with that prediction, never for a person's own.
    overwrite : bool, default False
        Whether a file that exists may be replaced.
    encoding : str, optional
        Of a CSV source, where its first bytes do not say it and it is not UTF-8, in which targets are written.
    """
    names = [predictions] if isinstance(predictions, str) else list(predictions)
    copy = _copy_text if _format(source) is _format(target) is _CSV else _copy_batches
    if source != STANDARD:
        require_file(source)
    require_encoding(encoding)
    with _finished(target, overwrite) as unfinished, _readable(source):
        added = Added()
        applied = Applied(fitted, ends or [ANYWHERE] * len(names), band)
        for done in copy(applied, source, unfinished, names, encoding):
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
    except (ArrowException, UnicodeError, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OrthocalError(f"The data file {source} cannot be copied: {first_words(error)} Check the file.") from None


def _copy_text(
    applied: Applied, source: Path, target: Path, predictions: Sequence[str], encoding: str | None
) -> Iterator[Added]:
    """CSV to CSV: fields are never anything but text, so that 007 stays 007."""
    with _text(source, "r", _encoding(source, encoding) or "utf-8-sig") as read, _text(target, "w", "utf-8") as write:
        reader = filter(None, csv.reader(read, strict=True))  # empty lines are no rows
        writer = csv.writer(write, lineterminator="\n")
        header = next(reader, [])
        names, places = _checked(header, source, predictions, applied)
        writer.writerow(names)
        first, columns = 0, [header.index(name) for name in predictions]
        kinds = {name: (header.index(name), kind) for name, kind in applied.group_kinds.items()}
        while rows := list(islice(reader, TEXT_BATCH)):
            require_full(rows, len(header), source, first)
            numbers = [
                parsed_numbers([row[k] for row in rows], name, first)
                for k, name in zip(columns, predictions, strict=True)
            ]
            groups = {
                name: parsed_labels([row[k] for row in rows], kind, name, first) for name, (k, kind) in kinds.items()
            }
            values, added = applied.to(np.column_stack(numbers), groups)
            for row, new in zip(rows, values.tolist(), strict=True):
                row.extend([""] * (len(names) - len(header)))
                for place, value in zip(places, new, strict=True):
                    row[place] = "" if math.isnan(value) else value
            writer.writerows(rows)
            first += len(rows)
            yield added


def _encoding(source: Path, named: str | None) -> str | None:
    """Return the encoding of a CSV source: as named, or as its first bytes say."""
    return named or (None if source == STANDARD else found_encoding(source))


def _copy_batches(
    applied: Applied, source: Path, target: Path, predictions: Sequence[str], encoding: str | None
) -> Iterator[Added]:
    """Any table to any other, a batch of typed columns at a time."""
    import pyarrow as pa

    reading, writing = _format(source)[0], _format(target)[1]
    with reading(source, encoding) as (schema, batches):
        names, places = _checked(schema.names, source, predictions, applied)
        fields = [schema.field(k) if k < len(schema) else None for k in range(len(names))]
        for place in places:
            fields[place] = pa.field(names[place], pa.float64())
        wide, first = pa.schema(fields, metadata=schema.metadata), 0
        with writing(target, wide) as write:
            for batch in batches:
                read = [typed_numbers(pa.chunked_array([batch.column(name)]), name, first) for name in predictions]
                groups = {name: as_groups(batch.column(name), name) for name in applied.group_kinds}
                values, added = applied.to(np.column_stack(read), groups)
                columns = [*batch.columns, *([None] * (len(names) - len(schema)))]
                for place, new in zip(places, values.T, strict=True):
                    columns[place] = pa.array(
                        np.ascontiguousarray(new), from_pandas=True
                    )  # NaN becomes a missing value
                write(pa.RecordBatch.from_arrays(columns, schema=wide))
                first += batch.num_rows
                yield added


def _checked(
    names: list[str], source: Path, predictions: Sequence[str], applied: Applied
) -> tuple[list[str], list[int]]:
    """Return the names of all columns and the places of the new ones: last, or where one of that name is."""
    require_different(names, source)
    for prediction in predictions:
        require_column(names, prediction, "prediction")
    for column in applied.group_kinds:
        require_column(names, column, "group")
    new = applied.new_columns(predictions)
    wide = [*names, *(name for name in new if name not in names)]
    return wide, [wide.index(name) for name in new]


def _opened(path: Path, mode: str) -> AbstractContextManager[IO[bytes]]:
    """Open the bytes of a CSV table; standard input and output stay open afterwards."""
    if path == STANDARD:
        stream = {"r": sys.stdin, "w": sys.stdout}[mode]
        if stream is None or getattr(stream, "closed", False):
            raise OrthocalError("Standard input and output must be open where - is read or written; one is closed.")
        return nullcontext(stream.buffer)
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
def _csv_batches(path: Path, encoding: str | None) -> Iterator[tuple[Schema, Iterable[RecordBatch]]]:
    # Not a batch at a time: a column's type may show in its last rows only.
    with _opened(path, "r") as stream:
        content = stream.read()
    table = typed_table(content, _encoding(path, encoding))
    require_text(table, path)
    yield table.schema, table.to_batches(max_chunksize=BATCH)


@contextmanager
def _csv_writer(path: Path, schema: Schema) -> Iterator[Callable[[RecordBatch], None]]:
    from pyarrow import csv as arrow_csv

    with _opened(path, "w") as stream, arrow_csv.CSVWriter(stream, schema) as writer:
        yield writer.write_batch


@contextmanager
def _parquet_batches(path: Path, encoding: str | None) -> Iterator[tuple[Schema, Iterable[RecordBatch]]]:
    from pyarrow import parquet

    if encoding is not None:
        raise OrthocalError(f"`encoding` must be left out of Parquet, which has its own; it is {shown(encoding)}.")
    with _sound(path):
        opened = parquet.ParquetFile(openable(path))
    with opened as file:
        yield file.schema_arrow, _groups(file, path)


def _groups(file: Any, path: Path) -> Iterator[RecordBatch]:
    """Yield row groups one by one: a batch across two holds both in memory and takes longer."""
    with _sound(path):
        for group in range(file.num_row_groups):
            yield from file.iter_batches(batch_size=BATCH, row_groups=[group])


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Say that a Parquet file is damaged: pyarrow calls that an error of the system, as it does a full disk."""
    try:
        yield
    except OSError as error:
        raise OrthocalError(f"The data file {path} cannot be read: {first_words(error)} Check the file.") from None


@contextmanager
def _parquet_writer(path: Path, schema: Schema) -> Iterator[Callable[[RecordBatch], None]]:
    from pyarrow import parquet

    with path.open("wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
        yield writer.write_batch


_CSV: tuple[Any, Any] = (_csv_batches, _csv_writer)
FORMATS: dict[str, tuple[Any, Any]] = {".csv": _CSV, ".csv.gz": _CSV, ".parquet": (_parquet_batches, _parquet_writer)}
"""How tables are read and written, by the ending of their names."""


def _format(path: Path) -> tuple[Any, Any]:
    return _CSV if path == STANDARD else FORMATS[ending(path, FORMATS)]
