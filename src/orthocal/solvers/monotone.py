"""The best nondecreasing map, as blocks of rows sorted by prediction (mathematics 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from orthocal.arrays import Booleans, Floats, Integers, Labels, RowIndex, is_constant, sorting_order
from orthocal.losses import HingeLoss, Loss, QuadraticLoss, total_mass
from orthocal.solvers.constants import constants, finite_bounds, narrowest

LEAST_POOLED_SHARE = 0.01
"""Where masses can be negative, rows are pooled until they hold this share of the total mass."""


@singledispatch
def monotone(loss: Loss, prediction: Floats, order: RowIndex | None = None) -> tuple[Floats, Floats]:
    """Return (edges, values) of the step map with nondecreasing values that minimises the summed loss.

    Rows with the same prediction get the same value. Block b covers (edges[b-1], edges[b]] and `edges` are the last
    predictions of all blocks but the last, so that the map's level sets are the blocks the theory speaks of.

    Any convex loss: blocks are split on levels. Each block holds an interval of candidate values; rows whose running derivative
    at its middle is largest go below the middle, the others above; the intervals halve until they are points.

    `order` sorts the predictions, where that is known already.
    """
    low, high = finite_bounds(loss)
    order = sorting_order(prediction) if order is None else order
    level, sorted_loss = prediction[order], loss[order]
    tied = np.append(level[1:] == level[:-1], False)
    start, below, above = np.array([0]), np.array([low]), np.array([high])
    while (above - below).max() > narrowest(low, high):
        middle = (below + above) / 2
        # All blocks in one pass: every row's score at the middle of its own block.
        slope = sorted_loss.derivative(np.repeat(middle, np.diff(start, append=len(level))))
        start, below, above = _split(start, np.cumsum(slope), tied, below, middle, middle, above)
    return _pooled(sorted_loss, level, start)


@monotone.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats, order: RowIndex | None = None) -> tuple[Floats, Floats]:
    total = total_mass(loss)
    blocks = pooled(loss, prediction, loss.weight, sorting_order(prediction) if order is None else order)
    level, numerator, denominator = blocks.level, blocks.numerator, blocks.denominator
    last = np.flatnonzero(level[1:] != level[:-1])  # the last of each tied level but the highest
    level, numerator, denominator = pool(level, last, numerator, denominator)
    if denominator.min() <= 0:  # the summed loss is convex only over runs whose masses add up to more than 0
        last = enough_mass(denominator, LEAST_POOLED_SHARE * total)
        level, numerator, denominator = pool(level, last, numerator, denominator)
    # Up to a constant, sum 1/2 d v^2 - n v is weighted least squares of n / d: adjacent violators are pooled.
    fit = isotonic_regression(numerator / denominator, weights=denominator)
    starts = fit.blocks[:-1]
    return level[starts[1:] - 1], fit.x[starts]


@monotone.register(HingeLoss)
def _(loss: HingeLoss, prediction: Floats, order: RowIndex | None = None) -> tuple[Floats, Floats]:
    """Exact after log2(rows) passes: the candidate values are the carrying outcomes and the bounds (mathematics 4.3)."""
    low, high = loss.bounds
    # The summed loss is piecewise linear: some minimiser is a kink or a bound. Ranks of the candidates are compared, not values.
    carrying = np.flatnonzero(loss.slope > 0)
    values = np.concatenate([[low, high], np.clip(loss.outcome[carrying], low, high)])
    candidate, place = np.unique(values, return_inverse=True)
    rank = np.zeros(len(loss), np.int32)
    rank[carrying] = place[2:]
    order = sorting_order(prediction) if order is None else order
    level, slope, tilt, rank = prediction[order], loss.slope[order], loss.tilt[order], rank[order]
    tied = np.append(level[1:] == level[:-1], False)
    start = np.array([0])
    below: Labels = np.array([0], np.int32)
    above: Labels = np.array([len(candidate) - 1], np.int32)
    while (below < above).any():
        middle = (below + above) // 2
        # Right derivatives s 1{y <= v} - t at the middle candidate, summed up; a right part begins at the next candidate.
        size = np.diff(start, append=len(level))
        running = np.cumsum(np.where(rank <= np.repeat(middle, size), slope, 0.0) - tilt)
        start, below, above = _split(start, running, tied, below, middle, np.minimum(middle + 1, above), above)
    return level[start[1:] - 1], candidate[below]


def _split(
    start: Integers,
    running: Floats,
    tied: Booleans,
    lowest: Labels,
    left_top: Labels,
    right_bottom: Labels,
    highest: Labels,
) -> tuple[Integers, Labels, Labels]:
    """Split every block after the last row where its running derivative is largest; a tied row cannot end a part.

    Let c be the middle of a block's interval. Raising the rows after row k above c changes the summed loss at the rate of their
    summed right derivatives at c, which is the block's total less the running sum at k. That is least after the largest running
    sum: values are at most c up to there, and more after it (mathematics 4.3). The last of equal sums keeps values as low as
    they can be. Derivatives of earlier blocks are in all running sums of a block alike, so they need not be taken off.
    """
    candidate = np.where(tied, -np.inf, running) if tied.any() else running
    size = np.diff(start, append=len(running))
    most = np.maximum.reduceat(candidate, start)
    before = np.concatenate([[0.0], running[start[1:] - 1]])  # the running sum of no row: all of the block goes up
    where = np.flatnonzero(candidate == np.repeat(most, size))
    last = np.empty(len(start), dtype=np.int64)
    last[np.searchsorted(start, where, side="right") - 1] = where  # the last of several wins
    left_size = np.where(most >= before, last + 1 - start, 0)
    has_left, has_right = left_size > 0, left_size < size
    # Interleave: the left part of each block, then its right part, keeping those that are not empty.
    keep = np.column_stack([has_left, has_right]).ravel()
    new_start = np.column_stack([start, start + left_size]).ravel()[keep]
    new_low = np.column_stack([lowest, right_bottom]).ravel()[keep]
    new_high = np.column_stack([left_top, highest]).ravel()[keep]
    return new_start, new_low, new_high


def _pooled(loss: Loss, level: Floats, start: Integers) -> tuple[Floats, Floats]:
    """Solve for the value of each block; neighbours that rounding put out of order become one."""
    while True:
        group = np.repeat(np.arange(len(start)), np.diff(start, append=len(level)))
        values = constants(loss, group, len(start))
        rising = np.append(True, values[1:] > values[:-1])
        if rising.all():
            return level[start[1:] - 1], values
        start = start[rising]


def pool(level: Floats, last: Integers, *sums: Floats) -> tuple[Floats, ...]:
    """Sum columns over runs of sorted rows; `last` ends each run but the final one. A run keeps its highest level."""
    starts = np.concatenate([[0], last + 1])
    ends = np.append(last, len(level) - 1)

    def summed(column: Floats) -> Floats:
        if column.strides[0] == 0:  # one number
            return np.asarray(column[0] * (ends + 1 - starts))
        return np.add.reduceat(column, starts)

    return level[ends], *map(summed, sums)


def enough_mass(mass: Floats, least: float) -> Integers:
    """Return the last row of each run, left to right, that holds at least `least` mass; the rest joins the final run.

    A share of the total keeps a run's ratio from being divided by a mass that is 0 by chance.
    """
    ends, running = [], 0.0
    for row, amount in enumerate(mass):
        running += amount
        if running >= least:
            ends.append(row)
            running = 0.0
    # RowIndex after the last full run join it, taking back runs until what is left over is not negative.
    while len(ends) > 1 and mass[ends[-2] + 1 :].sum() < least:
        ends.pop()
    return np.array(ends[:-1], dtype=np.int64)


@singledispatch
def positive_runs(loss: Loss, prediction: Floats) -> tuple[Floats, Loss]:
    """Return (prediction, loss) as they are: the loss of every row is convex."""
    return prediction, loss


@positive_runs.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats) -> tuple[Floats, Loss]:
    """Pool neighbours where masses can be negative, as isotonic regression does: each run is one row at its mean prediction."""
    if not len(loss) or loss.denominator.min() >= 0:
        return prediction, loss
    order = sorting_order(prediction)
    level, columns = prediction[order], [loss.numerator[order], loss.denominator[order], loss.weight[order]]
    last = np.flatnonzero(level[1:] != level[:-1])
    _, mass = pool(level, last, columns[1])
    last = np.append(last, len(level) - 1)[enough_mass(mass, LEAST_POOLED_SHARE * total_mass(loss))]
    _, numerator, denominator, weight, weighed = pool(level, last, *columns, columns[2] * level)
    return weighed / weight, QuadraticLoss(numerator, denominator, weight, unit=loss.unit, is_ratio=loss.is_ratio)


class Blocks(NamedTuple):
    """Runs of sorted rows that a nondecreasing map does not divide: all that is needed of the rows.

    Parameters
    ----------
    level : array
        Highest prediction of each.
    numerator, denominator, weight : array
        Sums.
    """

    level: Floats
    numerator: Floats
    denominator: Floats
    weight: Floats

    @classmethod
    def together(cls, parts: Iterable[Blocks]) -> Blocks:
        """Blocks of rows that follow each other."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @property
    def loss(self) -> QuadraticLoss:
        """The blocks as if each were one row."""
        return QuadraticLoss(self.numerator, self.denominator, self.weight)


@singledispatch
def shortened(loss: Loss, prediction: Floats, count: Floats) -> tuple[Floats, Loss, Floats]:
    """Return (prediction, loss, count) of fewer rows, if there are, that have the same best nondecreasing map."""
    return prediction, loss, count


@shortened.register(QuadraticLoss)
def _(loss: QuadraticLoss, prediction: Floats, count: Floats) -> tuple[Floats, Loss, Floats]:
    blocks = pooled(loss, prediction, count, sorting_order(prediction))
    return blocks.level, blocks.loss, blocks.weight


AT_ONCE = 2**15
"""Sorted rows that are pooled at once: they fit the cache, and no array as long as all rows is needed."""
SPANS = (1, 4, 16, 64)
"""Rows before and after a place whose means are compared, to see that no block ends there."""


def pooled(loss: QuadraticLoss, prediction: Floats, count: Floats, order: RowIndex) -> Blocks:
    """Return the blocks of sorted rows, pooled a part at a time; rows as they are where masses can be negative."""
    if loss.denominator.min() <= 0:
        return Blocks(prediction[order], loss.numerator[order], loss.denominator[order], count[order])
    level = prediction[order]
    alike = is_constant(loss.denominator)
    parts = []
    for part in _untied_parts(level):
        rows = part if isinstance(order, slice) else order[part]
        mass = np.broadcast_to(loss.denominator[0], part.stop - part.start) if alike else loss.denominator[rows]
        weight = mass if count is loss.denominator else count[rows]  # gathering is half the work
        parts.append(_blocks_of_part(level[part], loss.numerator[rows], mass, weight))
    return Blocks.together(parts)


def _untied_parts(level: Floats) -> Iterator[slice]:
    """Divide sorted rows; tied ones stay together: part of a level could be pooled with a lower one that all of it lies above."""
    wanted = np.minimum(np.arange(AT_ONCE, len(level) + AT_ONCE, AT_ONCE), len(level))
    ends = np.unique(np.searchsorted(level, level[wanted - 1], side="right")).tolist()
    yield from map(slice, [0, *ends[:-1]], ends)


def blocks_of(level: Floats, numerator: Floats, denominator: Floats, weight: Floats) -> Blocks:
    """Pool sorted rows of positive mass, a part at a time, as far as each part alone tells; others can only pool further.

    Isotonic regression of the parts, then of their blocks, is that of all rows: no block of a part is divided by rows outside it.
    """
    columns = Blocks(level, numerator, denominator, weight)
    if not len(level):
        return columns
    return Blocks.together(_blocks_of_part(*(column[part] for column in columns)) for part in _untied_parts(level))


def _blocks_of_part(level: Floats, numerator: Floats, denominator: Floats, weight: Floats) -> Blocks:
    last = np.flatnonzero(level[1:] != level[:-1])
    if len(last) == len(level) - 1 and denominator.strides[0] == 0:
        last = _possible_ends(numerator)
    if len(last) < len(level) - 1:
        level, numerator, denominator, weight = pool(level, last, numerator, denominator, weight)
    fit = isotonic_regression(numerator / denominator, weights=denominator)
    return Blocks(*pool(level, fit.blocks[1:-1] - 1, numerator, denominator, weight))


def _possible_ends(numerator: Floats) -> Integers:
    """Return after which rows, of one mass and no ties, a block may end: some rows before never have a larger mean than after.

    Where a block ends the running sums touch their greatest convex minorant, and lie below all their chords. A look at a few
    chords leaves a sixth of noisy rows to be pooled one by one, for which other threads have to wait.
    """
    running = np.concatenate([[0.0], np.cumsum(numerator)])
    # Two totals, each of at most 64 roundings by half an eps of the largest sum; doubled.
    rounding = 2 * max(SPANS) * np.finfo(float).eps * float(np.abs([running.min(), running.max()]).max())
    possible = np.ones(len(running), dtype=bool)
    for span in SPANS:
        if len(running) <= 2 * span:
            break
        total = running[span:] - running[:-span]
        possible[span:-span] &= total[:-span] <= total[span:] + rounding
    return np.flatnonzero(possible[1:-1])


RUNS = 2**16
"""Runs into which many rows are pooled where masses can be negative."""


def runs_of(
    level: Floats, numerator: Floats, denominator: Floats, weight: Floats, place: Integers, rows: int
) -> Blocks:
    """Pool sorted rows, whose places among all rows are known, into runs of equally many; ties are never divided."""
    if not len(level):
        return Blocks(level, numerator, denominator, weight)
    tied = np.append(level[1:] == level[:-1], False)
    run = place * RUNS // rows
    last = np.flatnonzero(~tied)
    last = last[np.append(run[last][1:] != run[last][:-1], False)]
    return Blocks(*pool(level, last, numerator, denominator, weight))
