"""Rows left out, for calibrators that choose by cross-validated loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.folds import assign_folds

if TYPE_CHECKING:
    from orthocal.arrays import Integers
    from orthocal.losses import Loss


def validation_folds(loss: Loss, folds: int, random_state: Any) -> Integers:
    """Return each row's fold; clusters are kept whole."""
    return assign_folds(folds, np.zeros(len(loss), dtype=np.int64), loss.groups, random_state)
