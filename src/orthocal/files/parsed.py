"""Numbers of a column of a table, be it text or typed; what is wrong with one is said with its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.errors import OrthocalError, require_finite
from orthocal.formats import shown
from orthocal.values import MISSING as NO_GROUP
from orthocal.values import as_numbers

if TYPE_CHECKING:
    from pathlib import Path

MISSING = {"", "na", "nan", "null", "none"}
"""Texts that stand for a missing number."""
NO_TEXT = {"", "#N/A", "#N/A N/A", "#NA", "-NaN", "-nan", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}
"""Texts that stand for a missing text, as where a table is read to be worked on."""
TRUTH = {"true": "1", "false": "0"}


def typed_numbers(column: Any, name: str, first: int) -> Floats:
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


def parsed_numbers(texts: list[str], name: str, first: int) -> Floats:
    """Return texts as numbers, NaN where they are missing."""
    numbers = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            # Python reads 1_000 as a number, tables do not.
            numbers[row] = np.nan if text.strip().lower() in MISSING else float(text.replace("_", "?"))
        except ValueError:
            raise OrthocalError(
                f"`{name}` must hold numbers; row {first + row} is {shown(text)}. Drop such rows or fill them in."
            ) from None
    require_finite(np.where(np.isnan(numbers), 0.0, numbers), name, first)
    return numbers


def parsed_labels(texts: list[str], kind: type, name: str, first: int) -> Labels:
    """Return a column of groups as the map knows them: text, or numbers, to which booleans belong."""
    if kind is str:
        return np.array([NO_GROUP if text in NO_TEXT else text for text in texts])
    return parsed_numbers([TRUTH.get(text.lower(), text) for text in texts], name, first)


def require_full(rows: list[list[str]], width: int, source: Path, first: int) -> None:
    """Every row has a field for each column."""
    for row, fields in enumerate(rows, first):
        if len(fields) != width:
            raise OrthocalError(
                f"Every row of {source} must have {width} fields, as its header has; row {row} has {len(fields)}. "
                "Fix the file."
            )
