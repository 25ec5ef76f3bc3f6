"""CSV tables: their encoding, and the types of their columns."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from orthocal.errors import OrthocalError
from orthocal.formats import shown

if TYPE_CHECKING:
    from pathlib import Path

    from pyarrow import Table

MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}
"""How a text begins that says its encoding."""


def read_csv(
    source: Path | IO[bytes],
    *,
    missing_text: bool = False,
    encoding: str | None = None,
    types: Mapping[str, Any] | None = None,
) -> Table:
    """Read CSV, whose fields may have line breaks in them; on demand an empty text is a missing one, as an empty number is."""
    from pyarrow import csv, enable_signal_handlers

    enable_signal_handlers(False)  # pyarrow loses a signal to stop, now and then, that comes while it reads
    return csv.read_csv(
        source,
        read_options=csv.ReadOptions(encoding=encoding or "utf8"),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=missing_text, column_types=types),
    )


def typed_table(content: bytes, encoding: str | None) -> Table:
    """Return CSV as typed columns, but for those of numbers that begin with a zero, as codes do: 007 stays 007."""
    import pyarrow as pa
    from pyarrow import compute

    table = read_csv(io.BytesIO(content), encoding=encoding)
    if len(set(table.column_names)) < len(table.column_names):  # who reads it refuses that
        return table
    numbers = [one.name for one in table.schema if pa.types.is_integer(one.type) or pa.types.is_floating(one.type)]
    texts = read_csv(io.BytesIO(content), encoding=encoding, types=dict.fromkeys(numbers, pa.string()))
    for name in numbers:
        if compute.any(compute.match_substring_regex(texts[name], r"^[+-]?0[0-9]")).as_py():
            table = table.set_column(table.column_names.index(name), name, texts[name])
    return table


def require_encoding(encoding: str | None) -> None:
    """An encoding that is named is one that there is."""
    try:
        "".encode(
            encoding or "utf-8"
        )  # codecs that do not encode text, such as base64, are refused as unknown ones are
    except (LookupError, ValueError):
        raise OrthocalError(
            f"`encoding` must be the name of an encoding, such as latin-1 or utf-16; it is {shown(encoding)}."
        ) from None


def openable(path: Path) -> Path | IO[bytes]:
    """Return a path as pyarrow opens it; one whose name is no UTF-8 it cannot, so the file itself."""
    try:
        str(path).encode()
    except UnicodeError:
        content = path.read_bytes()
        return io.BytesIO(gzip.decompress(content) if path.name.lower().endswith(".gz") else content)
    return path


def found_encoding(path: Path) -> str | None:
    """Return the encoding that the first bytes of a CSV file say; None where they say none, as most do."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rb") as file:
        head = file.read(3)
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), None)


def require_text(table: Table, path: Path) -> None:
    """Text could be read as such: bytes that are no UTF-8 come as another type."""
    from pyarrow.types import is_binary

    for field in table.schema:
        if is_binary(field.type):
            raise other_encoding(path, f"column {shown(field.name)} is not")


def other_encoding(path: Path, what: str) -> OrthocalError:
    """Return the error of a text that is not UTF-8."""
    return OrthocalError(
        f"The data file {path} must be text in UTF-8; {what}. Name its encoding, as in --encoding latin-1, or in Python "
        "pass the table that pandas.read_csv(..., encoding=...) returns."
    )
