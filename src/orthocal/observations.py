"""Observations: the rows, checked once, as plain arrays. The only code that knows data frames."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse

from orthocal.arrays import Booleans, Floats, Integers, Labels, RowIndex, one_kind_of_labels, unmasked
from orthocal.errors import OrthocalError, require_finite, require_length, require_rows, require_weights
from orthocal.events import as_event, separated

MOST_LEVELS = 50
"""A text or category covariate becomes one indicator column per level, up to this many levels."""


@dataclass(frozen=True, eq=False)
class Observations:
    """What was observed, one entry per row.

    Parameters
    ----------
    covariates : array of shape (rows, columns)
        Numbers; NaN is allowed, because many learners allow it.
    outcome, treatment, weight : array of shape (rows,)
    instrument, prediction, groups : array of shape (rows,) or None
        ``groups`` holds cluster codes 0, 1, ...
    key, group_names : array of shape (rows,) or None
        What tells rows apart, and what clusters are called, where folds are drawn.
    event : boolean array of shape (rows,) or None
        Whether the outcome is the time of an event, not of the end of follow-up (censored).
    """

    covariates: Floats
    outcome: Floats
    treatment: Labels
    weight: Floats
    instrument: Labels | None = None
    prediction: Floats | None = None
    groups: Integers | None = None
    key: Labels | None = None
    group_names: Labels | None = None
    event: Booleans | None = None

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, rows: RowIndex) -> Observations:
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        selected: dict[str, Any] = {name: None if c is None else c[rows] for name, c in columns.items()}
        return Observations(**selected)


def observe(
    X: Any,
    y: Any,
    *,
    treatment: Any,
    instrument: Any = None,
    prediction: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    key: Any = None,
    event: Any = None,
) -> Observations:
    """Check every column and return them as arrays; rows are aligned by order, never by index."""
    n = len(covariates := as_matrix(X))
    require_rows(n)
    y, event = separated(y, event)
    weight = np.ones(n) if sample_weight is None else as_numbers(sample_weight, "sample_weight", n)
    require_weights(weight)
    names = None if groups is None else as_labels(groups, "groups", n)
    outcome = as_numbers(y, "y", n)
    return Observations(
        covariates=covariates,
        outcome=outcome,
        treatment=as_labels(treatment, "treatment", n),
        weight=weight,
        instrument=None if instrument is None else as_labels(instrument, "instrument", n),
        prediction=None if prediction is None else as_numbers(prediction, "prediction", n),
        groups=None if names is None else _codes(names),
        key=None if key is None else as_labels(key, "key", n),
        group_names=names,
        event=None if event is None else as_event(as_labels(event, "event", n), outcome),
    )


def as_numbers(values: Any, name: str, n: int | None = None, *, first: int = 0) -> Floats:
    """Return one column of finite numbers; `first` is the number of the first row, where these are some of many."""
    column = _vector(values, name, n)
    if column.dtype.kind in "mMcV":
        raise OrthocalError(f"`{name}` must hold numbers; it holds {column.dtype} values. Convert the column first.")
    if column.dtype.kind not in "fiub":
        for row, value in enumerate(column.tolist()):
            if not (value is None or _is_number(value)):
                raise OrthocalError(
                    f"`{name}` must hold numbers; row {first + row} is {value!r}. Convert the column first."
                )
    numbers = np.ascontiguousarray(column, dtype=np.float64)
    require_finite(numbers, name, first)
    return numbers


def as_labels(values: Any, name: str, n: int | None = None) -> Labels:
    """Return one column of labels: numbers, booleans or strings, none missing."""
    column = _vector(values, name, n)
    if column.dtype.kind == "f":
        require_finite(column, name)
    elif column.dtype.kind == "O":
        missing = [_is_missing(value) for value in column]
        if any(missing):
            raise OrthocalError(f"`{name}` must not be missing; row {missing.index(True)} is. Drop such rows.")
        column = one_kind_of_labels(column.tolist(), name)
    return column


MISSING = "missing"
"""What rows are called whose subgroup is not known."""


def as_groups(values: Any, name: str, n: int | None = None) -> Labels:
    """Return one column of subgroups: numbers, in which NaN is missing, or text, in which missing rows are called so."""
    column = _vector(values, name, n)
    if column.dtype.kind != "O":
        return column
    return np.array([MISSING if _is_missing(value) else value for value in column.tolist()])


@dataclass(frozen=True)
class Encoding:
    """How covariates became numbers, so that new rows become the same numbers.

    Parameters
    ----------
    columns : tuple of str, optional
        Their names, where they have names.
    count : int
        How many there are.
    levels : dict of str to tuple of str
        Of each text or category covariate; all but the first have an indicator.
    """

    columns: tuple[str, ...] | None
    count: int
    levels: dict[str, tuple[str, ...]]


def encode(X: Any, like: Encoding | None = None) -> tuple[Floats, Encoding]:
    """Return covariates as a matrix of numbers, and how they became it; `like` repeats an earlier encoding."""
    X = unmasked(X)
    names, columns = _named_columns(X)
    encoding = Encoding(column_names(X), len(columns), {})
    if like is not None:
        require_columns(X, like.columns, like.count)
    blocks = []
    for name, values in zip(names, columns, strict=True):
        block, levels = _encoded(values, name, None if like is None else like.levels.get(name))
        blocks.append(block)
        if levels is not None:
            encoding.levels[name] = levels
    rows = len(columns[0]) if columns else len(X)
    return np.ascontiguousarray(np.hstack([np.empty((rows, 0)), *blocks])), encoding


def as_matrix(X: Any) -> Floats:
    """Return covariates as a matrix of numbers, text and category columns as one indicator per level but the first."""
    X = unmasked(X)
    matrix = X if isinstance(X, np.ndarray) else None
    if matrix is not None and matrix.ndim == 2 and matrix.dtype.kind in "fiub":  # nothing to encode
        return _without_infinity(np.ascontiguousarray(matrix, dtype=np.float64))
    return encode(X)[0]


def _frame(X: Any) -> Any:
    """Return a data frame of any kind as one kind; anything else as it is."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError:
        raise OrthocalError("The columns of `X` must have different names; two are alike. Rename one.") from None
    if isinstance(frame, nw.LazyFrame):
        raise OrthocalError(f"`X` must be in memory; it is a {type(X).__name__}. Call .collect() on it first.")
    return frame


def _named_columns(X: Any) -> tuple[list[str], list[Labels]]:
    frame = _frame(X)
    if isinstance(frame, nw.DataFrame):
        return [str(name) for name in frame.columns], [_series_values(column) for column in frame.iter_columns()]
    if issparse(X):
        raise OrthocalError(
            "`X` must be dense; it is a sparse matrix. Pass X.toarray(), or fewer columns if that is large."
        )
    matrix = np.asarray(X) if isinstance(X, np.ndarray) else np.array([list(row) for row in X], dtype=object)
    if matrix.dtype.kind in "mMcV":
        raise OrthocalError(
            f"`X` must hold numbers or text; it holds {matrix.dtype} values. Turn them into numbers first."
        )
    if matrix.ndim != 2:
        raise OrthocalError(
            f"`X` must have rows and columns; its shape is {matrix.shape}. Pass X.reshape(-1, 1) for one covariate."
        )
    return [f"X[:, {j}]" for j in range(matrix.shape[1])], list(matrix.T)


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the covariates where they have names, that is, where all are text."""
    frame = _frame(X)
    if not isinstance(frame, nw.DataFrame) or not all(isinstance(name, str) for name in frame.columns):
        return None
    return tuple(frame.columns)


def require_columns(X: Any, names: tuple[str, ...] | None, count: int) -> None:
    """New rows have the columns of the rows that were learnt from."""
    named, shape = column_names(X), np.shape(X)
    if named != names or shape[1:] != (count,):
        seen, now = names or f"{count} columns", named or f"shape {shape}"
        raise OrthocalError(
            f"`X` must have the columns it had in fit, {seen}; it has {now}. Select and order them alike."
        )


def _vector(values: Any, name: str, n: int | None) -> Labels:
    if values is None:
        raise OrthocalError(f"`{name}` must be given; it is None. Pass one value per row.")
    plain = type(values) is np.ndarray  # most common, and narwhals would only hand it back
    series = values if plain else nw.from_native(unmasked(values), series_only=True, pass_through=True)
    column = _series_values(series) if isinstance(series, nw.Series) else np.asarray(series)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise OrthocalError(f"`{name}` must be one column; its shape is {column.shape}. Select the column you mean.")
    if n is not None:
        require_length(column, n, name)
    return column


def _series_values(series: nw.Series[Any]) -> Labels:
    """Values as numpy, missing ones as NaN in numbers and None in text."""
    if series.dtype == nw.Float64:
        plain = series.to_numpy()
        if plain.dtype == np.float64:  # as it is, not copied; a column that can hold NA comes as objects
            return np.asarray(plain)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        if series.null_count() or not (series.dtype.is_integer() or series.dtype == nw.Boolean):
            return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        return np.asarray(series.to_numpy())
    if series.dtype.is_temporal() or series.dtype.is_nested():
        raise OrthocalError(
            f"Column `{series.name}` must hold numbers or text; it holds {series.dtype}. Turn it into numbers first."
        )
    if series.dtype in {nw.Categorical, nw.Enum}:  # a category is a label, even when it looks like a number
        return np.array([*(None if value is None else str(value) for value in series.to_list()), None], object)[:-1]
    return np.array([*series.to_list(), None], dtype=object)[:-1]  # the extra None keeps numpy from guessing


def _encoded(values: Labels, name: str, known: tuple[str, ...] | None) -> tuple[Floats, tuple[str, ...] | None]:
    """One covariate as one numeric column, or as indicators of its levels (the first level is left out)."""
    if values.dtype.kind == "O" and all(_is_missing(value) or _is_number(value) for value in values):
        values = np.array([np.nan if _is_missing(value) else float(value) for value in values])
    if values.dtype.kind in "fiub" and known is None:
        return _without_infinity(values.astype(np.float64)[:, None]), None
    text = np.array([str(value) for value in values])
    levels = np.unique(text) if known is None else np.array(known)
    if len(levels) > MOST_LEVELS:
        raise OrthocalError(
            f"Covariate `{name}` has {len(levels)} levels; at most {MOST_LEVELS} are encoded. "
            "Group rare levels, encode it as numbers, or leave it out."
        )
    indicator = text[:, None] == levels
    if not indicator.any(axis=1).all():
        unseen = str(text[~indicator.any(axis=1)][0])
        raise OrthocalError(f"The level {unseen!r} of covariate `{name}` must have been seen in fit; it was not.")
    return indicator[:, 1:].astype(np.float64), tuple(levels.tolist())


def _without_infinity(matrix: Floats) -> Floats:
    infinite = np.isinf(matrix)
    if infinite.any():
        row, column = np.argwhere(infinite)[0].tolist()
        raise OrthocalError(f"`X` must not be infinite; row {row}, column {column} is. Use NaN for missing values.")
    return matrix


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal | np.number | np.bool_) and not isinstance(value, complex)


def _is_missing(value: Any) -> bool:
    """None, NaN, and pandas' NA, whose comparison with itself is neither true nor false."""
    return value is None or str(value) in {"nan", "NaN", "<NA>", "NaT"}


def _codes(labels: Labels) -> Integers:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
