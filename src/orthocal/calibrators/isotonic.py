"""Isotonic calibration."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats, Integers, RowIndex, group_sums, sorting_order
from orthocal.errors import require_at_least
from orthocal.losses import Loss, as_counts, counted_rows
from orthocal.maps import StepMap
from orthocal.solvers import constants, monotone
from orthocal.solvers.monotone import shortened


class Isotonic(BaseEstimator):  # type: ignore[misc]
    """Fit the nondecreasing step function that minimises the summed loss (paper, Table 2; van der Laan et al. 2023).

    On every block the summed derivative is zero, so the block means are right whatever the shape of the truth.

    Parameters
    ----------
    min_samples : float, default 20
        Fewest rows in a block; smaller ones, usually at the ends, join the neighbour nearest in value. 1 is plain isotonic
        regression. Whole-number weights count as that many rows, others are scaled to average one. The default had a smaller
        error and mean squared error than 1 in every design of benchmarks/min_samples.md.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> loss = QuadraticLoss(np.array([0.0, 2.0, 1.0, 3.0]), np.ones(4))
    >>> fitted = Isotonic(min_samples=1).fit(np.array([0.0, 1.0, 2.0, 3.0]), loss)
    >>> fitted.map_
    StepMap(edges=array([0., 2.]), values=array([0. , 1.5, 3. ]))
    """

    def __init__(self, min_samples: float = 20) -> None:
        self.min_samples = min_samples

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn the blocks and their values."""
        require_at_least(self.min_samples, 1, "min_samples")
        prediction, loss = counted_rows(prediction, loss)
        self.map_ = isotonic_map(*shortened(loss, prediction, as_counts(loss.weight)), self.min_samples)
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)


def isotonic_map(prediction: Floats, loss: Loss, count: Floats, least: float) -> StepMap:
    """Return the best nondecreasing map whose blocks hold at least so many of the counted rows.

    The minimiser of a union lies between its parts', so joining blocks keeps the order.
    """
    order = sorting_order(prediction)  # once, for the blocks and for counting their rows
    edges, values = monotone(loss, prediction, order)
    if least <= 1 or len(values) == 1:
        return StepMap(edges, values)
    block = block_of(prediction, order, edges)
    joined = join_small(group_sums(block, count, len(values)), values, least)
    if joined[-1] + 1 == len(values):
        return StepMap(edges, values)
    return StepMap(edges[np.flatnonzero(np.diff(joined))], constants(loss, joined[block], int(joined[-1]) + 1))


def block_of(prediction: Floats, order: RowIndex, edges: Floats) -> Integers:
    """Return each row's block ( , ], by finding the edges among the sorted predictions, which are many, not the reverse."""
    level = prediction[order]
    ends = np.append(np.searchsorted(level, edges, side="right"), len(level))
    block = np.empty(len(level), dtype=np.int64)
    block[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return block


def join_small(weight: Floats, value: Floats, least: float) -> Integers:
    """Return a new block number for each block: the lightest block joins its nearest neighbour until all are heavy."""
    count = len(weight)
    left, right = np.arange(count) - 1, np.arange(count) + 1
    weight, value, parent = weight.copy(), value.copy(), np.arange(count)
    for block in np.argsort(weight, kind="stable"):
        while parent[block] == block and weight[block] < least and (left[block] >= 0 or right[block] < count):
            a, b = int(left[block]), int(right[block])
            near_left = b >= count or (a >= 0 and value[block] - value[a] <= value[b] - value[block])
            keep, gone = (a, block) if near_left else (block, b)
            total = weight[keep] + weight[gone]
            if total > 0:
                value[keep] = (value[keep] * weight[keep] + value[gone] * weight[gone]) / total
            weight[keep], parent[gone], right[keep] = total, keep, right[gone]
            if right[gone] < count:
                left[right[gone]] = keep
            block = keep  # noqa: PLW2901
    return np.cumsum(parent == np.arange(count)) - 1
