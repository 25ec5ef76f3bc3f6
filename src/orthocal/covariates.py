"""Covariates, of whatever library they come from, as a matrix of numbers. The only code that knows data frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse

from orthocal.arrays import Floats, Labels, unmasked
from orthocal.errors import OrthocalError
from orthocal.formats import listed, shown
from orthocal.values import as_double, is_number_or_missing, series_values

LARGEST_COVARIATE = 1e30
"""Trees of scikit-learn hold covariates as numbers of 32 bits."""
MOST_LEVELS = 50
"""A text or category covariate becomes one indicator column per level, up to this many levels."""


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
    """Return covariates as a matrix of numbers, text and category columns as one indicator per category but the first."""
    X = unmasked(X)
    matrix = X if isinstance(X, np.ndarray) else None
    if matrix is not None and matrix.ndim == 2 and matrix.dtype.kind in "fiub":  # nothing to encode
        return _of_usual_size(np.ascontiguousarray(matrix, dtype=np.float64))
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
        return [str(name) for name in frame.columns], [
            series_values(column, of_categories=str)  # a category is a label, even when it looks like a number
            for column in frame.iter_columns()
        ]
    if issparse(X):
        raise OrthocalError(
            "`X` must be dense; it is a sparse matrix. Pass X.toarray(), or fewer columns if that is large."
        )
    matrix = np.asarray(X) if isinstance(X, np.ndarray) else _rows_of(X)
    if matrix.dtype.kind in "mMcV":
        raise OrthocalError(
            f"`X` must hold numbers or text; it holds {matrix.dtype} values. Turn them into numbers first."
        )
    if matrix.ndim != 2:
        raise OrthocalError(
            f"`X` must have rows and columns; its shape is {matrix.shape}. Pass X.reshape(-1, 1) for one covariate."
        )
    return [f"X[:, {j}]" for j in range(matrix.shape[1])], list(matrix.T)


def _rows_of(X: Any) -> Labels:
    """Return lists of lists, or anything else that has rows, as a matrix of objects."""
    rows = list(X) if _is_sequence(X) else []
    if not rows or not all(_is_sequence(row) for row in rows):
        what = f"a {type(X).__name__}" if X is not None else "None"
        raise OrthocalError(
            f"`X` must have rows and columns; it is {what} without. Pass a table, or a matrix such as X.reshape(-1, 1)."
        )
    return np.array([list(row) for row in rows], dtype=object)


def _is_sequence(values: Any) -> bool:
    """Return whether values can be gone through, and are no text, set or mapping."""
    is_other = isinstance(values, str | bytes | Mapping | AbstractSet) or getattr(values, "ndim", 1) == 0
    return isinstance(values, Collection) and not is_other


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the covariates where they have names, that is, where all are text."""
    frame = _frame(X)
    if not isinstance(frame, nw.DataFrame) or not all(isinstance(name, str) for name in frame.columns):
        return None
    return tuple(frame.columns)


def require_columns(X: Any, names: tuple[str, ...] | None, count: int) -> None:
    """New rows have the columns of the rows that were learnt from."""
    named = column_names(X)
    try:
        shape = np.shape(X)
    except ValueError:
        raise OrthocalError("`X` must have rows and columns; its rows have different lengths. Pass a table.") from None
    if named != names or shape[1:] != (count,):
        seen = listed(names) if names else f"{count} columns"
        now = listed(named) if named else f"shape {shape}"
        raise OrthocalError(
            f"`X` must have the columns it had in fit, {seen}; it has {now}. Select and order them alike."
        )


def _encoded(values: Labels, name: str, known: tuple[str, ...] | None) -> tuple[Floats, tuple[str, ...] | None]:
    """One covariate as one numeric column, or as indicators of its categories (the first is left out)."""
    if values.dtype.kind == "O" and all(is_number_or_missing(value) for value in values):
        values = np.array([as_double(value) for value in values])
    if values.dtype.kind in "fiub" and known is None:
        return _of_usual_size(values.astype(np.float64)[:, None]), None
    text = np.array([str(value) for value in values])
    levels = np.unique(text) if known is None else np.array(known)
    if len(levels) > MOST_LEVELS:
        raise OrthocalError(
            f"Covariate `{shown(name)[1:-1]}` has {len(levels)} categories; at most {MOST_LEVELS} are encoded. "
            "Group rare categories, encode it as numbers, or leave it out."
        )
    indicator = text[:, None] == levels
    if not indicator.any(axis=1).all():
        unseen = str(text[~indicator.any(axis=1)][0])
        raise OrthocalError(
            f"The category {shown(unseen)} of covariate `{shown(name)[1:-1]}` must have been seen in fit; it was not. "
            "Drop such rows, or fit with them."
        )
    return indicator[:, 1:].astype(np.float64), tuple(levels.tolist())


def _of_usual_size(matrix: Floats) -> Floats:
    ends = (
        np.fmin.reduce(matrix, axis=None, initial=0.0),
        np.fmax.reduce(matrix, axis=None, initial=0.0),
    )  # but for NaN
    if max(-ends[0], ends[1]) > LARGEST_COVARIATE:
        row, column = np.argwhere(np.abs(matrix) > LARGEST_COVARIATE)[0].tolist()
        raise OrthocalError(
            f"`X` must not be infinite; row {row}, column {column} is {matrix[row, column]}, and {LARGEST_COVARIATE:g} the most. "
            "Use NaN for missing values."
        )
    return matrix
