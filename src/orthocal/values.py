"""One column of values, of whatever library it comes from, as a plain array that was checked."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from orthocal.arrays import Floats, Labels, one_kind_of_labels, unmasked
from orthocal.errors import OrthocalError, require_finite, require_length, require_not_tiny
from orthocal.formats import shown


def as_numbers(values: Any, name: str, n: int | None = None, *, first: int = 0) -> Floats:
    """Return one column of finite numbers; `first` is the number of the first row, where these are some of many."""
    column = _vector(values, name, n)
    if column.dtype.kind in "mMcV":
        raise OrthocalError(f"`{name}` must hold numbers; it holds {column.dtype} values. Convert the column first.")
    if column.dtype.kind not in "fiub":
        column = _numbers_of(column, name, first)
    numbers = np.ascontiguousarray(column, dtype=np.float64)
    largest = require_finite(numbers, name, first)
    if n is not None:  # all rows of something, not some of many
        require_not_tiny(largest, name)
    return numbers


def _numbers_of(column: Labels, name: str, first: int) -> Floats:
    """Return objects that are numbers as such; a missing one is NaN, one too large for a double infinite."""
    numbers = np.empty(len(column))
    for row, value in enumerate(column.tolist()):
        if not is_number_or_missing(value):
            raise OrthocalError(
                f"`{name}` must hold numbers; row {first + row} is {shown(value)}. Convert the column first."
            )
        numbers[row] = as_double(value)
    return numbers


def as_double(value: Any) -> float:
    """Return a number as a double: NaN where it is missing, infinite where it is too large for one."""
    try:
        return np.nan if is_missing(value) else float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def as_labels(values: Any, name: str, n: int | None = None) -> Labels:
    """Return one column of labels: numbers, booleans or strings, none missing."""
    column = _comparable(_vector(values, name, n), name)
    if column.dtype.kind == "f":
        require_finite(column, name)
    elif column.dtype.kind == "O":
        missing = [is_missing(value) for value in column]
        if any(missing):
            raise OrthocalError(f"`{name}` must not be missing; row {missing.index(True)} is. Drop such rows.")
        column = one_kind_of_labels(column.tolist(), name)
    return column


MISSING = "missing"
"""What rows are called whose subgroup is not known."""


def as_groups(values: Any, name: str, n: int | None = None) -> Labels:
    """Return one column of subgroups: numbers, in which NaN is missing, or text, in which missing rows are called so."""
    column = _comparable(_vector(values, name, n), name)
    if column.dtype.kind != "O":
        return column
    return one_kind_of_labels([MISSING if is_missing(value) else value for value in column.tolist()], name)


def _comparable(column: Labels, name: str) -> Labels:
    """Refuse what is neither equal nor in order."""
    if column.dtype.kind in "cV" or any(isinstance(value, complex) for value in column[:1].tolist()):
        raise OrthocalError(f"`{name}` must hold numbers, text or booleans; it holds {column.dtype}. Recode it.")
    return column


def _vector(values: Any, name: str, n: int | None) -> Labels:
    if values is None:
        raise OrthocalError(f"`{name}` must be given; it is None. Pass one value per row.")
    plain = type(values) is np.ndarray  # most common, and narwhals would only hand it back
    series = values if plain else nw.from_native(unmasked(values), series_only=True, pass_through=True)
    column = series_values(series) if isinstance(series, nw.Series) else _plain(series, name)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise OrthocalError(f"`{name}` must be one column; its shape is {column.shape}. Select the column you mean.")
    if n is not None:
        require_length(column, n, name)
    return column


def _plain(values: Any, name: str) -> Labels:
    """Return what is no column of a library as an array."""
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths
        raise OrthocalError(
            f"`{name}` must be one column; its rows have different lengths. Pass one value per row."
        ) from None


def series_values(series: nw.Series[Any], *, of_categories: Any = None) -> Labels:
    """Values as numpy, missing ones as NaN in numbers and None in text; `of_categories` is applied to those of categories."""
    if series.dtype == nw.Float64:
        plain = series.to_numpy()
        if plain.dtype == np.float64:  # as it is, not copied; a column that can hold NA comes as objects
            return np.asarray(plain)
    if (series.dtype.is_numeric() and series.dtype not in WIDE) or series.dtype == nw.Boolean:
        if series.null_count() or not (series.dtype.is_integer() or series.dtype == nw.Boolean):
            return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        return np.asarray(series.to_numpy())
    if series.dtype.is_temporal() or series.dtype.is_nested():
        raise OrthocalError(
            f"Column `{series.name}` must hold numbers or text; it holds {series.dtype}. Turn it into numbers first."
        )
    values = series.to_list()
    if of_categories is not None and series.dtype in {nw.Categorical, nw.Enum}:
        values = [None if value is None else of_categories(value) for value in values]
    return np.array([*values, None], dtype=object)[:-1]  # the extra None keeps numpy from guessing


WIDE = {nw.Int128, nw.UInt128}
"""Numbers that numpy has no array of."""


def is_number_or_missing(value: Any) -> bool:
    """Return whether a value of a column of objects is a real number, or stands for none."""
    is_real = isinstance(value, int | float | Decimal | np.number | np.bool_) and not isinstance(value, complex)
    return is_real or is_missing(value)


def is_missing(value: Any) -> bool:
    """None, NaN, and pandas' NA, whose comparison with itself is neither true nor false."""
    return value is None or (not isinstance(value, int) and str(value) in {"nan", "NaN", "<NA>", "NaT"})
