"""Tables on disk: CSV and Parquet, columns found by name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import IO, TYPE_CHECKING

from orthocal.errors import OrthocalError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from pyarrow import Table


def read_csv(source: Path | IO[bytes], *, missing_text: bool = False) -> Table:
    """Read CSV, whose fields may have line breaks in them; on demand an empty text is a missing one, as an empty number is."""
    from pyarrow import csv, enable_signal_handlers

    enable_signal_handlers(False)  # pyarrow loses a signal to stop, now and then, that comes while it reads
    return csv.read_csv(
        source,
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=missing_text),
    )


def _read_for_work(path: Path) -> Table:
    return read_csv(path, missing_text=True)


def _read_parquet(path: Path) -> Table:
    from pyarrow import parquet

    return parquet.read_table(path)


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_for_work,
    ".csv.gz": _read_for_work,
    ".parquet": _read_parquet,
}


def read_table(path: Path) -> Table:
    """Read a table; the ending of the name says how."""
    from pyarrow import ArrowException

    reader = READERS[ending(path, READERS)]
    require_file(path)
    try:
        table = reader(path)
    except (ArrowException, OSError) as error:
        raise OrthocalError(f"The data file {path} cannot be read: {str(error).splitlines()[0]}") from None
    require_different(table.column_names, path)
    if table.num_rows == 0:
        raise OrthocalError(f"The data file {path} must have rows; it has none.")
    return table


def ending(path: Path, known: Collection[str]) -> str:
    """Return the ending of a name, which says how the table is kept."""
    found = [end for end in known if path.name.lower().endswith(end)]
    if not found:
        raise OrthocalError(f"A table's name must end in {' or '.join(known)}; it is {path.name!r}. Rename the file.")
    return found[0]


def require_file(path: Path) -> None:
    """A file is there to be read."""
    if not path.is_file():
        raise OrthocalError(f"The data file {path} must exist; it does not. Check the path.")


def require_different(names: Sequence[str], path: Path) -> None:
    """No two columns share a name."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OrthocalError(f"The columns of {path} must have different names; {twice[0]!r} occurs twice. Rename one.")


def require_column(names: Sequence[str], name: str, role: str) -> None:
    """A column is there, or the nearest one there is gets named."""
    if name not in names:
        hint = did_you_mean(name, names) or f" There are {', '.join(names[:20])}."
        raise OrthocalError(f"The {role} column must be in the data; {name!r} is not.{hint}")


def file_names(texts: Iterable[str]) -> list[str]:
    """Return texts fit for names of files, numbered where two would be alike."""
    names: list[str] = []
    for text in texts:
        name = re.sub(r"[^\w.-]+", "_", text)
        numbered = (f"{name}-{number}" for number in itertools.count(len(names)))
        names.append(name if name not in names else next(other for other in numbered if other not in names))
    return names
