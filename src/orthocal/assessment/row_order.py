"""Rows sorted by prediction, whatever order they came in."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Floats, Rows, sorting_order
from orthocal.assessment.sweeps import piece_ends
from orthocal.calibrators.left_out import value_columns
from orthocal.folds import VALIDATION, drawn_within, hashed_ranks
from orthocal.losses import Loss

AT_ONCE = 2**16
"""Rows whose ties are put in order at once, so that no more memory is needed than for these."""


def settled_order(prediction: Floats, loss: Loss) -> Rows:
    """Return what sorts the predictions; tied rows stand in an order drawn by what their losses hold, not as they came.

    Where halves of the rows judge each other it matters which of them are tied neighbours.
    """
    order = sorting_order(prediction)
    level = prediction[order]
    if not (level[1:] == level[:-1]).any():
        return order
    rows = np.arange(len(level))[order]
    columns = value_columns(prediction, loss)
    ends = piece_ends(level, AT_ONCE)
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        rises = level[start + 1 : end] > level[start : end - 1]
        if not rises.all():
            own = rows[start:end]
            contents = hashed_ranks([column[own] for column in columns])
            rows[start:end] = own[drawn_within(np.append(0, np.cumsum(rises)), contents, 0, VALIDATION)]
    return rows
