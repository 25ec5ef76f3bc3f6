"""Tables on disk: CSV and Parquet in and out, columns found by name."""

from __future__ import annotations

import difflib
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyarrow import ChunkedArray, Table


def _read_csv(path: Path) -> Table:
    from pyarrow import csv

    return csv.read_csv(path)


def _read_parquet(path: Path) -> Table:
    from pyarrow import parquet

    return parquet.read_table(path)


def _write_csv(table: Table, path: Path) -> None:
    from pyarrow import csv

    csv.write_csv(table, path)


def _write_parquet(table: Table, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path)


FORMATS: dict[str, tuple[Callable[[Path], Table], Callable[[Table, Path], None]]] = {
    ".csv": (_read_csv, _write_csv),
    ".parquet": (_read_parquet, _write_parquet),
}


def read_table(path: Path) -> Table:
    """Read a table; the ending of the name says how."""
    from pyarrow import ArrowException

    reader = _format(path)[0]
    if not path.is_file():
        raise OrthocalError(f"The data file {path} must exist; it does not. Check the path.")
    try:
        table = reader(path)
    except (ArrowException, OSError) as error:
        raise OrthocalError(f"The data file {path} cannot be read: {str(error).splitlines()[0]}") from None
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise OrthocalError(f"The columns of {path} must have different names; {twice[0]!r} occurs twice. Rename one.")
    if table.num_rows == 0:
        raise OrthocalError(f"The data file {path} must have rows; it has none.")
    return table


def write_table(table: Table, path: Path) -> None:
    """Write a table; the ending of the name says how."""
    _format(path)[1](table, path)


def column(table: Table, name: str, role: str) -> ChunkedArray:
    """Return a column, or name the nearest one there is."""
    if name not in table.column_names:
        near = difflib.get_close_matches(name, table.column_names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(table.column_names[:20])}."
        raise OrthocalError(f"The {role} column must be in the data; {name!r} is not. {hint}")
    return table[name]


def select(table: Table, names: Sequence[str], role: str) -> Table:
    """Return several columns, each checked by name."""
    for name in names:
        column(table, name, role)
    return table.select(list(names))


def with_column(table: Table, name: str, values: Any) -> Table:
    """Return the table with one more column, or that column replaced."""
    import pyarrow as pa

    values = pa.array(values)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, values)
    return table.append_column(name, values)


@contextmanager
def all_or_nothing(folder: Path, own: Sequence[str] = ()) -> Iterator[Path]:
    """Give a scratch folder inside `folder`; its files move up only if nothing fails.

    `own` are patterns of files that an earlier run may have left: those not written again are removed, so that results of two
    runs never mix. On failure, folders that were made for the occasion go too.
    """
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise OrthocalError(f"`--out` must name a folder; {folder} is a file.")
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder, prefix=".unfinished-"))
    try:
        yield scratch
        for pattern in own:
            for stale in folder.glob(pattern):
                stale.unlink()
        for file in sorted(scratch.iterdir()):
            file.replace(folder / file.name)
        made = []
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        for path in made:
            path.rmdir()


def file_name(text: str) -> str:
    """Return text fit for a file's name."""
    return re.sub(r"[^\w.-]+", "_", text)


def _format(path: Path) -> tuple[Callable[[Path], Table], Callable[[Table, Path], None]]:
    if path.suffix not in FORMATS:
        raise OrthocalError(f"A table's name must end in {' or '.join(FORMATS)}; it is {path.name!r}.")
    return FORMATS[path.suffix]
