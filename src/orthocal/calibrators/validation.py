"""Rows left out, for calibrators that choose by cross-validated loss."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np

from orthocal.arrays import MANY, Floats, Integers, packed_argsort
from orthocal.folds import assign_folds
from orthocal.losses import Loss, columns_of, without_overlap


def validation_folds(loss: Loss, folds: int, random_state: Any) -> Integers:
    """Return the fold of each of the rows, which are in the order of their values; clusters are kept whole.

    Of neighbours one goes to each fold, by chance: all folds have the same predictions, whatever the outcomes.
    """
    neighbours = np.minimum(np.arange(len(loss)) // folds, max(len(loss) // folds - 1, 0))
    strata = neighbours if loss.groups is None else np.zeros(len(loss), dtype=np.int64)
    return assign_folds(folds, strata, loss.groups, random_state)


def by_value(prediction: Floats, loss: Loss) -> tuple[Floats, Loss]:
    """Return the rows in the order of their values, so that which are left out does not depend on where they stood."""
    order = value_order(prediction, loss)
    return prediction[order], without_overlap(loss)[order]


def value_order(prediction: Floats, loss: Loss) -> Integers:
    """Return the rows by prediction, those of one prediction by what their losses are made of."""
    order = packed_argsort(prediction) if len(prediction) > MANY else np.argsort(prediction, kind="stable")
    level = prediction[order]
    alike = level[1:] == level[:-1]
    if alike.any():
        tied = np.flatnonzero(np.append(alike, False) | np.concatenate([[False], alike]))
        own = order[tied]
        columns = [column[own] for column in value_columns(prediction, loss)]
        order[tied] = own[np.lexsort((*reversed(columns), level[tied]))]
    return order


def value_columns(prediction: Floats, loss: Loss) -> list[Floats]:
    """Return what a row's loss is made of: numerator, denominator, ...; of an own kind, what it says at the prediction."""
    columns: list[Floats] = list(columns_of(loss).values()) if is_dataclass(loss) else []
    return columns or [loss.derivative(prediction), loss.value(prediction), loss.weight]
