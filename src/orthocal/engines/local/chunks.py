"""Files in chunks of about a million rows: Parquet as it is, CSV and DuckDB relations copied to Parquet once."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthocal.errors import OrthocalError, UnavailableError
from orthocal.files.tables import ending, require_different
from orthocal.formats import first_words, listed

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

ROWS = 2**20
"""Of a chunk, about: a row group is never divided, small ones are joined."""
BLOCK = 2**26
"""Bytes of CSV that are parsed at once."""
WIDER = {"null": "int64", "bool": "string", "int64": "double", "double": "string"}
"""What a CSV column becomes where a later row shows that it is not what the rows before it were."""


@dataclass(frozen=True)
class Chunk:
    """Some row groups of a Parquet file."""

    name: str
    path: str
    groups: tuple[int, ...]
    rows: int

    def read(self, columns: Sequence[str]) -> Any:
        """Return columns as a pandas frame; text stays in Arrow's form."""
        import pandas as pd
        import pyarrow as pa
        from pyarrow import parquet

        with _in_a_sentence(self.name), parquet.ParquetFile(self.path) as file:
            there = set(file.schema_arrow.names)
            for name in columns:
                if name not in there:
                    raise OrthocalError(f"{self.name}: column {name!r} must be in every file; it is not in this one.")
            table = file.read_row_groups(list(self.groups), columns=list(columns), use_threads=False)
        text = {pa.string(): pd.StringDtype("pyarrow"), pa.large_string(): pd.StringDtype("pyarrow")}
        # In the order asked for while no column is copied: a pandas frame copies the columns that are selected from it.
        return table.select(list(columns)).to_pandas(types_mapper=text.get, split_blocks=True, self_destruct=True)


@contextmanager
def _in_a_sentence(name: str) -> Iterator[None]:
    """Say in one sentence what is wrong with a file."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> OrthocalError:
    return OrthocalError(f"{name} must be a whole table; it cannot be read: {first_words(error)} Check the file.")


def chunks_of(files: Sequence[str]) -> tuple[list[str], list[Chunk]]:
    """Return the columns of Parquet files, as the first has them, and their chunks."""
    from pyarrow import parquet

    columns: list[str] = []
    found: list[Chunk] = []
    for path in files:
        with _in_a_sentence(f"File {path}"), parquet.ParquetFile(path) as file:
            columns = columns or list(file.schema_arrow.names)
            require_different(columns, Path(path))
            found += _chunks(path, file)
    if not sum(chunk.rows for chunk in found):
        raise OrthocalError(f"The data must have rows; {listed(files)} has none. Check how it was written.")
    return columns, found


def _chunks(path: str, file: ParquetFile) -> Iterator[Chunk]:
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    groups: list[int] = []
    first = done = 0
    for group, size in enumerate(sizes):
        groups.append(group)
        done += size
        if done - first >= ROWS or group == len(sizes) - 1:
            whole = len(groups) == len(sizes)
            rows = "" if whole else f", rows {first:,} to {done - 1:,}"
            yield Chunk(f"File {path}{rows}", path, tuple(groups), done - first)
            groups, first = [], done


def files_of(data: str) -> list[str]:
    """Return the files of a path, a folder or a pattern, in order; what begins with a dot or an underscore is none."""
    path = Path(data)
    found = [str(one) for one in path.rglob("*")] if path.is_dir() else glob(data, recursive=True) or [data]  # noqa: PTH207
    files = sorted(one for one in found if Path(one).is_file() and not Path(one).name.startswith(("_", ".")))
    if not files:
        raise OrthocalError(f"The data {data} must be a table, a folder of them or a pattern; no file is there.")
    return files


def one_ending(files: Sequence[str], data: str) -> str:
    """Return the ending that all files have."""
    endings = {ending(Path(file), CONVERTERS) for file in files}
    if len(endings) > 1:
        raise OrthocalError(
            f"The files of {data} must be of one kind; there are {' and '.join(sorted(endings))}. Use a pattern."
        )
    return endings.pop()


class Scratch:
    """A folder for what does not fit into memory; it goes when nobody needs it any longer."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="orthocal-"))
        self._gone = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


def _as_they_are(files: Sequence[str], scratch: Scratch) -> Sequence[str]:
    del scratch
    return files


def _from_csv(files: Sequence[str], scratch: Scratch) -> list[str]:
    """Copy CSV files to Parquet, once: text is parsed slowly, and every pass would do it again."""
    types: dict[str, Any] = {}
    return [_copied(path, scratch.folder / f"{number:06}.parquet", types) for number, path in enumerate(files)]


def _copied(path: str, target: Path, types: dict[str, Any]) -> str:
    import pyarrow as pa

    while True:
        try:
            _copy_csv(path, target, types)
        except pa.ArrowInvalid as error:
            _widen(types, path, error)
        except UnicodeDecodeError as error:  # the name of a column
            raise _unreadable(f"File {path}", error) from None
        else:
            return str(target)


def _copy_csv(path: str, target: Path, types: dict[str, Any]) -> None:
    from pyarrow import csv, parquet

    reader = csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=BLOCK),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True),
    )
    with reader, parquet.ParquetWriter(target, reader.schema) as writer:
        types |= {field.name: field.type for field in reader.schema}
        for batch in reader:
            writer.write_batch(batch)


def _widen(types: dict[str, Any], path: str, error: Exception) -> None:
    """Give a column the next wider type, where a row does not fit the one that earlier rows had."""
    import pyarrow as pa

    place = re.search(r"In CSV column #(\d+)", str(error))
    names = list(types)
    name = names[int(place[1])] if place is not None and int(place[1]) < len(names) else None
    wider = None if name is None else WIDER.get(str(types[name]))
    if name is None or wider is None:
        raise _unreadable(f"File {path}", error)
    types[name] = pa.type_for_alias(wider)


def _from_duckdb(files: Sequence[str], scratch: Scratch) -> list[str]:
    """Copy the one table of a DuckDB file to Parquet."""
    duckdb = imported_duckdb()
    if len(files) != 1:
        raise OrthocalError(f"One DuckDB file must be given; there are {len(files)}: {listed(files)}. Name one.")
    path = files[0]
    try:
        with duckdb.connect(path, read_only=True) as connection:
            return from_relation(connection.table(_only_table(connection, path)), scratch)
    except duckdb.Error as error:
        raise _unreadable(f"File {path}", error) from None


def _only_table(connection: Any, path: str) -> str:
    names = [str(row[0]) for row in connection.sql("SHOW TABLES").fetchall()]
    if len(names) != 1:
        raise OrthocalError(
            f"A DuckDB file must hold one table; {path} has {len(names)}: {listed(names) or 'none'}. Pass "
            "duckdb.connect(...).table(name)."
        )
    return f'"{names[0].replace(chr(34), 2 * chr(34))}"'


def from_relation(relation: Any, scratch: Scratch) -> list[str]:
    """Copy a relation to Parquet, once, so that a query, or a database behind it, runs once and not for every pass."""
    target = scratch.folder / "relation.parquet"
    relation.write_parquet(str(target), row_group_size=ROWS)
    return [str(target)]


def imported_duckdb() -> Any:
    """Return DuckDB, if it can be had."""
    try:
        import duckdb
    except ImportError:
        raise UnavailableError("DuckDB must be installed; it is not. Run: pip install 'orthocal[duckdb]'") from None
    return duckdb


CONVERTERS: dict[str, Callable[[Sequence[str], Scratch], Sequence[str]]] = {
    ".csv": _from_csv,
    ".csv.gz": _from_csv,
    ".parquet": _as_they_are,
    ".duckdb": _from_duckdb,
}
"""By the ending of a file's name: how it becomes Parquet."""
