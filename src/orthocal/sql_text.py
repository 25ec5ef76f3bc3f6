"""Numbers, names and searches as they stand in SQL."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from orthocal.errors import OrthocalError


def is_finite(names: Sequence[str]) -> str:
    """Return the condition that columns hold finite numbers."""
    low, high = literal(-sys.float_info.max), literal(sys.float_info.max)
    return " AND ".join(f"{name} BETWEEN {low} AND {high}" for name in names)


def search(comparison: str, edges: Sequence[str], values: Sequence[str]) -> str:
    """Return a binary search among blocks: a plain list of thousands of cases is slow, or too long for a parser."""
    if not edges:
        return values[0]
    middle = len(edges) // 2
    left = search(comparison, edges[:middle], values[: middle + 1])
    right = search(comparison, edges[middle + 1 :], values[middle + 1 :])
    return f"CASE WHEN {comparison} {edges[middle]} THEN {left} ELSE {right} END"


def literal(number: float) -> str:
    """Return a double literal: with an exponent, or it would be a decimal, and with 18 digits.

    17 digits tell doubles apart, but readers that round twice (SQLite before 3.43) need one close to the double itself.
    """
    digits, exponent = f"{number:.17e}".split("e")
    text = f"{digits.rstrip('0').rstrip('.')}e{exponent}"
    return f"({text})" if text.startswith("-") else text


def identifier(column: str, quote: str | None) -> str:
    """Return the column's name as it stands in SQL; a mark inside it is doubled."""
    if not column or "\0" in column:
        raise OrthocalError(f"`column` must be the name of a column; it is {column!r}.")
    if quote not in {None, '"', "`"}:
        raise OrthocalError(f'`quote` must be " or `; it is {quote!r}.')
    if quote is None and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column):
        return column
    mark = quote or '"'
    return mark + column.replace(mark, 2 * mark) + mark


def label(value: str | bool | float) -> str:
    """Return a value that is only compared as it stands in SQL: text between quotes, a truth value, or a number."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else literal(value)
