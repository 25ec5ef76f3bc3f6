"""Tables on disk: CSV and Parquet, columns found by name."""

from __future__ import annotations

import itertools
import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from orthocal.errors import OrthocalError, did_you_mean
from orthocal.files.text_tables import (
    found_encoding,
    openable,
    other_encoding,
    read_csv,
    require_encoding,
    require_text,
)
from orthocal.formats import first_words, listed, shown

if TYPE_CHECKING:
    from pathlib import Path

    from pyarrow import Table


def _read_for_work(path: Path, encoding: str | None) -> Table:
    try:
        table = read_csv(openable(path), missing_text=True, encoding=encoding or found_encoding(path))
        _ = table.column_names
    except UnicodeError as error:
        raise other_encoding(path, first_words(error).rstrip(".")) from None
    require_text(table, path)
    return table


def _read_parquet(path: Path, encoding: str | None) -> Table:
    from pyarrow import parquet

    if encoding is not None:
        raise OrthocalError(f"`encoding` must be left out of Parquet, which has its own; it is {shown(encoding)}.")
    return parquet.read_table(openable(path))


READERS: dict[str, Callable[[Path, str | None], Table]] = {
    ".csv": _read_for_work,
    ".csv.gz": _read_for_work,
    ".parquet": _read_parquet,
}


def read_table(path: Path, encoding: str | None = None) -> Table:
    """Read a table; the ending of the name says how, and a text in another encoding than UTF-8 is named so."""
    from pyarrow import ArrowException

    reader = READERS[ending(path, READERS)]
    require_file(path)
    require_encoding(encoding)
    try:
        table = reader(path, encoding)
        names = table.column_names  # of Parquet they are decoded here
    except (ArrowException, EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise OrthocalError(f"The data file {path} cannot be read: {first_words(error)} Check the file.") from None
    require_different(names, path)
    if table.num_rows == 0:
        raise OrthocalError(f"The data file {path} must have rows; it has none.")
    return table


def ending(path: Path, known: Collection[str]) -> str:
    """Return the ending of a name, which says how the table is kept."""
    found = [end for end in known if path.name.lower().endswith(end)]
    if not found:
        raise OrthocalError(
            f"A table's name must end in {' or '.join(known)}; it is {shown(path.name)}. Rename the file."
        )
    return found[0]


def require_file(path: Path) -> None:
    """A file is there to be read."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):  # a name that is too long, or has a zero in it, is none either
        raise OrthocalError(
            f"The data file {shown(str(path))[1:-1]} must exist; it does not. Check the path."
        ) from None
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "a pipe or device"
        raise OrthocalError(f"The data file {path} must be a file; it is {what}. Name a file, or - for standard input.")


def require_different(names: Sequence[str], path: Path) -> None:
    """No two columns share a name."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OrthocalError(
            f"The columns of {path} must have different names; {shown(twice[0])} occurs twice. Rename one."
        )


def require_column(names: Sequence[str], name: str, role: str) -> None:
    """A column is there, or the nearest one there is gets named."""
    if name not in names:
        hint = did_you_mean(name, names) or f" There are {listed(names)}."
        raise OrthocalError(f"The {role} column must be in the data; {shown(name)} is not.{hint}")


LONGEST = 60
"""Characters of a name of a file, of at most four bytes each."""


def file_names(texts: Iterable[str]) -> list[str]:
    """Return texts fit for names of files, numbered where two would be alike, be it but for capitals."""
    names: list[str] = []
    taken: set[str] = set()
    for text in texts:
        name = re.sub(r"[^\w.-]+", "_", text)[:LONGEST]
        numbered = (f"{name}-{number}" for number in itertools.count(len(names)))
        names.append(
            next(one for one in (name, *itertools.islice(numbered, len(names) + 1)) if one.lower() not in taken)
        )
        taken.add(names[-1].lower())
    return names
