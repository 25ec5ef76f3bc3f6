"""Observations: the rows, checked once, as plain arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import Any

import narwhals as nw
import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, Labels, RowIndex
from orthocal.covariates import Encoding, as_matrix, column_names, encode, require_columns
from orthocal.errors import AlignmentWarning, require_rows, require_weights
from orthocal.events import as_event, separated
from orthocal.values import MISSING, as_groups, as_labels, as_numbers

__all__ = [
    "MISSING",
    "Encoding",
    "Observations",
    "as_groups",
    "as_labels",
    "as_matrix",
    "as_numbers",
    "column_names",
    "encode",
    "observe",
    "require_columns",
    "warn_of_other_order",
]


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
        What identifies rows, and what clusters are called, where folds are drawn.
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
    warn_of_other_order(X=X, y=y, treatment=treatment, instrument=instrument, prediction=prediction, groups=groups)
    y, event = separated(y, event)
    weight = np.broadcast_to(1.0, n) if sample_weight is None else as_numbers(sample_weight, "sample_weight", n)
    if sample_weight is not None:
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


def _codes(labels: Labels) -> Integers:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def warn_of_other_order(**columns: Any) -> None:
    """Warn where pandas' indexes of columns disagree: rows are aligned by order, never by index."""
    is_pandas = (nw.dependencies.is_pandas_dataframe, nw.dependencies.is_pandas_series)
    indexes = {name: one.index for name, one in columns.items() if any(check(one) for check in is_pandas)}
    for name, index in indexes.items():
        first = next(iter(indexes))
        if len(index) == len(indexes[first]) and not index.equals(indexes[first]):
            warnings.warn(
                f"`{first}` and `{name}` have different indexes; rows are aligned by their order. Sort both alike, or call "
                "reset_index(drop=True) where the order is right.",
                AlignmentWarning,
                stacklevel=4,
            )
