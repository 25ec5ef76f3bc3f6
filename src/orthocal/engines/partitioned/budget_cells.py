"""People by cells of predicted gain per cost: how far down a budget reaches, and how near that is to buying row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.decisions.people import People

TREATED = "treated"
"""Measure of the share of people that are treated."""
MEASURES = ("cost", "gain", "promised", TREATED)
"""What a step of a rule adds, the cost first."""


def gain_per_cost(prediction: Floats, cost: Floats) -> Floats:
    """Return predicted gain per cost: infinite where a gain costs nothing, 0 where nothing is gained."""
    gain = np.maximum(prediction, 0.0)
    return np.divide(gain, cost, out=np.where(gain > 0, np.inf, 0.0), where=cost > 0)


@dataclass(frozen=True, eq=False)
class RatioCells:
    """Sums of people by cells of the predicted gain per cost, the highest first; before them those who cost nothing.

    Parameters
    ----------
    sums : array of shape (measures, cells + 1)
        Of weights times what each person adds.
    squares : array of shape (6, cells + 1)
        Of squared weights times 1, cost, cost squared, gain squared, gain times cost, and a count of rows.
    total, total_square : float
        Of all weights, and of their squares.
    """

    sums: Floats
    squares: Floats
    total: float
    total_square: float

    @classmethod
    def of(cls, people: People, name: str, edges: Floats) -> RatioCells:
        """Of some rows."""
        prediction, cost, gain = people.predictions[name][:, 0], people.cost[:, 0], people.gains[:, 0]
        cell, count = cells_of(prediction, cost, edges), len(edges) + 3
        w, one = people.weight, np.ones(len(people))
        columns = [w * column for column in (cost, gain, prediction, one)]
        squares = [w * w * column for column in (one, cost, cost**2, gain**2, gain * cost)]
        sums, more = (
            np.array([group_sums(cell, column, count)[:-1] for column in some]) for some in (columns, [*squares, one])
        )
        return cls(sums, more, float(w.sum()), float(w @ w))

    def merge(self, other: RatioCells) -> RatioCells:
        """Of both."""
        return RatioCells(
            self.sums + other.sums,
            self.squares + other.squares,
            self.total + other.total,
            self.total_square + other.total_square,
        )


def cells_of(prediction: Floats, cost: Floats, edges: Floats) -> Integers:
    """Return the cell of each row: 0 for gains that cost nothing, then from the highest ratio down, last those never bought."""
    ratio = gain_per_cost(prediction, cost)
    down = len(edges) + 1 - np.searchsorted(edges, ratio, side="left")
    return np.where(ratio == 0, len(edges) + 2, np.where(np.isinf(ratio), 0, down)).astype(np.int64)


class Reach(NamedTuple):
    """How far a budget reaches down the cells: the first that is not bought whole, its share, and what more would bring.

    `marginal` is by measure: what one more unit of cost adds. `bound` is how far the gain can be from that of buying row by row.
    """

    cell: int
    share: float
    marginal: Floats
    bound: float


def reach_of(cells: RatioCells, budget: float) -> Reach:
    r"""Return how far a budget reaches.

    In the last cell everyone gets the same share. Buying row by row would gain more or less by a partial sum of
    :math:`w_i (g_i - \lambda c_i)` over the cell, whose total is 0: by at most half of the sum of their sizes, and that by half
    the root of rows times squares (Cauchy and Schwarz). What one more unit of cost brings is taken over one standard error of the
    spend to either side, as far as the draws of other samples would move it.
    """
    count = cells.sums.shape[1]
    path = np.cumsum(cells.sums, axis=1) / cells.total
    spent = path[0]  # begins with what costs nothing
    if spent[-1] <= budget:
        return Reach(count, 1.0, np.zeros(len(MEASURES)), 0.0)
    cell = int(np.searchsorted(spent, budget, side="right"))
    share = float((budget - spent[cell - 1]) / (spent[cell] - spent[cell - 1]))
    costs, squares = cells.squares[1:3, :cell].sum(axis=1)
    error = np.sqrt(max(squares - 2 * budget * costs + budget**2 * cells.total_square, 0.0)) / cells.total
    ladder = np.clip([budget - error, budget + error], spent[0], spent[-1])
    wide = float(np.diff(ladder)[0])
    ends = np.array([np.interp(ladder, spent, one) for one in path])
    marginal = np.diff(ends, axis=1)[:, 0] / wide if wide > 0 else np.zeros(len(MEASURES))
    per_cost = cells.sums[1, cell] / cells.sums[0, cell]
    of_cell = cells.squares[:, cell]
    left = of_cell[3] - 2 * per_cost * of_cell[4] + per_cost**2 * of_cell[2]
    bound = 0.5 * float(np.sqrt(max(of_cell[5] * left, 0.0))) / cells.total if of_cell[5] > 1 else 0.0
    return Reach(cell, share, marginal, bound)
