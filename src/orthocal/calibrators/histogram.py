"""Histogram calibration: uniform mass bins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats, Integers, group_sums, is_sorted, sorting_order, step_of
from orthocal.errors import require_positive_mass, require_whole
from orthocal.losses import Loss, counted_rows, is_ratio
from orthocal.losses.counting import MOST_BINS, Counts
from orthocal.maps import StepMap
from orthocal.solvers import constants
from orthocal.solvers.monotone import enough_mass

LEAST_FILLED = 0.2
"""Mass of a bin of a ratio effect, as a share of the bins' mean; with less it joins the next one."""


class Histogram(BaseEstimator):  # type: ignore[misc]
    """Fit one constant in each of `bins` bins of equal weight (paper, Table 2, with mathematics 12.11). Not monotone.

    Parameters
    ----------
    bins : int, default 20
        Ties in the prediction can leave fewer: a bin never divides rows that share a prediction. Bins of a ratio effect that
        hold less than a fifth of their fair part of the mass, or a negative one, join their right neighbour.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> loss = QuadraticLoss(np.array([0.0, 2.0, 1.0, 3.0]), np.ones(4))
    >>> Histogram(bins=2).fit(np.array([0.0, 1.0, 2.0, 3.0]), loss).map_
    StepMap(edges=array([1.]), values=array([1., 2.]))
    """

    def __init__(self, bins: int = 20) -> None:
        self.bins = bins

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn the edges and one value per bin."""
        require_whole(self.bins, 1, "bins", MOST_BINS)
        prediction, loss = counted_rows(prediction, loss)
        edges = uniform_mass_edges(prediction, loss.weight, self.bins)
        group = step_of(prediction, edges)
        if is_ratio(loss):
            edges = edges[filled(group_sums(group, loss.mass, len(edges) + 1))]
            group = step_of(prediction, edges)
        self.map_ = StepMap(edges, constants(loss, group, len(edges) + 1))
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)


def filled(mass: Floats) -> Integers:
    """Return which edges to keep so that every bin of a ratio effect holds a fair part of the mass, from the left."""
    require_positive_mass(float(mass.sum()))
    return enough_mass(mass, LEAST_FILLED * float(mass.mean()))


def uniform_mass_edges(prediction: Floats, weight: Floats, bins: int) -> Floats:
    """Return the inner edges of bins ( , ] that hold nearly equal weight.

    Edge b is the order statistic number floor(b n / bins) of n rows (mathematics 4.2). Whole-number weights count as that many
    rows; other weights put edge b at the smallest prediction whose running weight reaches b / bins of the total.
    """
    counts = Counts.of(weight)
    if counts.are_rows:
        level = prediction if is_sorted(prediction) else np.sort(prediction)
        edges = level[counts.edges(bins).astype(np.int64) - 1]
    else:
        order = sorting_order(prediction)
        level, running = prediction[order], np.cumsum(weight[order])
        edges = level[np.searchsorted(running, replace(counts, total=float(running[-1])).edges(bins), side="left")]
    return np.unique(edges[edges < level[-1]])
