"""The best nondecreasing map, as blocks of rows sorted by prediction."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression

from orthocal.losses import Loss, QuadraticLoss, total_mass

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers

LEAST_POOLED_SHARE = 0.01
"""Where masses can be negative, rows are pooled until they hold this share of the total mass."""


@singledispatch
def monotone(loss: Loss, prediction: Floats) -> tuple[Floats, Floats]:
    """Return (edges, values) of the step map with nondecreasing values that minimises the summed loss.

    Rows with the same prediction get the same value. Block b covers (edges[b-1], edges[b]] and `edges` are the last
    predictions of all blocks but the last, so that the map's level sets are the blocks the theory speaks of.
    """
    raise NotImplementedError(type(loss).__name__)


@monotone.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats) -> tuple[Floats, Floats]:
    total = total_mass(loss)
    order = np.argsort(prediction)
    level = prediction[order]
    numerator, denominator = loss.numerator[order], loss.denominator[order]
    last = np.flatnonzero(level[1:] != level[:-1])  # the last row of each tied level but the highest
    if len(last) < len(level) - 1:
        level, numerator, denominator = pool(level, last, numerator, denominator)
    if denominator.min() <= 0:
        last = enough_mass(denominator, LEAST_POOLED_SHARE * total)
        level, numerator, denominator = pool(level, last, numerator, denominator)
    fit = isotonic_regression(numerator / denominator, weights=denominator)
    starts = fit.blocks[:-1]
    return level[starts[1:] - 1], fit.x[starts]


def pool(level: Floats, last: Integers, *sums: Floats) -> tuple[Floats, ...]:
    """Sum columns over runs of sorted rows; `last` ends each run but the final one. A run keeps its highest level."""
    starts = np.concatenate([[0], last + 1])
    return level[np.append(last, len(level) - 1)], *(np.add.reduceat(column, starts) for column in sums)


def enough_mass(mass: Floats, least: float) -> Integers:
    """Return the last row of each run, left to right, that holds at least `least` mass; the rest joins the final run."""
    ends, running = [], 0.0
    for row, amount in enumerate(mass):
        running += amount
        if running >= least:
            ends.append(row)
            running = 0.0
    # Rows after the last full run join it, taking back runs until what is left over is not negative.
    while len(ends) > 1 and mass[ends[-2] + 1 :].sum() < least:
        ends.pop()
    return np.array(ends[:-1], dtype=np.int64)
