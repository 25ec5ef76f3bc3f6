"""Who gets which arm within a budget: a knapsack with several choices for each person (mathematics 10.8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, ordered, runs


class Steps(NamedTuple):
    """Steps from one arm to a dearer one, the largest gain per cost first: a budget buys them from the front.

    Parameters
    ----------
    row, arm, previous : array
        Whose step it is, the arm it leads to and the arm it leaves; 0 is the control, k the k-th treatment.
    cost, gain, ratio : array
        What the step costs and is predicted to gain, and gain over cost, which never rises. Steps without a cost are infinite.
    """

    row: Integers
    arm: Integers
    previous: Integers
    cost: Floats
    gain: Floats
    ratio: Floats

    @property
    def ends(self) -> Integers:
        """Place of the last step of each block: steps with the same ratio are one block, so that row order does not matter."""
        last = np.ones(len(self.ratio), dtype=bool)
        np.not_equal(self.ratio[1:], self.ratio[:-1], out=last[:-1])
        return np.flatnonzero(last).astype(np.int64, copy=False)

    @property
    def free(self) -> int:
        """How many steps cost nothing."""
        return int(np.searchsorted(-self.ratio, -np.inf, side="right"))


@dataclass(frozen=True, eq=False)
class Allocation:
    """Who gets which arm.

    Parameters
    ----------
    arm : array of shape (rows,)
        0 is the control, k the k-th treatment.
    before : array of shape (rows,)
        The arm of the last people that the budget reaches, were it a little smaller; of all others the same as `arm`.
    share : float
        Share of the last people, who have the same gain per cost, that get `arm`; the others get `before`.

    Examples
    --------
    >>> import numpy as np
    >>> steps = steps_of(np.array([[3.0], [1.0], [2.0]]), np.ones((3, 1)))
    >>> found = allocation(steps, np.ones(3), budget=0.5)
    >>> found.arm.tolist(), found.before.tolist(), round(found.share, 9)
    ([1, 0, 1], [1, 0, 0], 0.5)
    """

    arm: Integers
    before: Integers
    share: float = 1.0

    def expected(self, values: Floats) -> Floats:
        """Return what each row gets on average of values that have one column for each treatment; the control is worth 0."""
        got = at_arm(values, self.arm)
        if self.share < 1:
            got += (1 - self.share) * (at_arm(values, self.before) - got)
        return got

    def shares(self, weight: Floats, arms: int) -> Floats:
        """Return the share of people that get each treatment."""
        counts = self.share * np.bincount(self.arm, weight, arms + 1)
        counts += (1 - self.share) * np.bincount(self.before, weight, arms + 1)
        return np.asarray(counts[1:] / weight.sum())


def at_arm(values: Floats, arm: Integers) -> Floats:
    """Return each row's value under its arm."""
    got = np.zeros(len(arm))
    for k in range(values.shape[1]):
        np.copyto(got, values[:, k], where=arm == k + 1)
    return got


def steps_of(gain: Floats, cost: Floats) -> Steps:
    """Return the steps along the upper concave hull of (0, 0) and each row's (cost, predicted gain), in the order of buying.

    Only steps that gain are taken. Arms below a row's hull are never worth their cost, at any budget.

    Parameters
    ----------
    gain : array of shape (rows, treatments)
        Predicted gains over the control.
    cost : array of the same shape
        At least 0.
    """
    gains, costs = ([column[:, k] for k in range(gain.shape[1])] for column in (gain, cost))
    rounds: list[list[Steps]] = [[] for _ in gains]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for rows in runs(len(gain)):
            climbed = _climb([g[rows] for g in gains], [c[rows] for c in costs], rows.start)
            for level, found in zip(rounds, climbed, strict=False):
                level.append(found)
    # The first steps of all rows, then the second: the sort keeps the order of ties, so that no row takes a step too early.
    found = Steps(*(np.concatenate(column) for column in zip(*chain.from_iterable(rounds), strict=True)))
    order, falling = ordered(-found.ratio)
    row, arm, previous = (column[order] for column in (found.row, found.arm, found.previous))
    return Steps(row, arm, previous, found.cost[order], found.gain[order], -falling)


def _climb(gains: Sequence[Floats], costs: Sequence[Floats], start: int) -> Iterator[Steps]:
    """Yield the first step of each row, then the second, and so on, for rows that follow each other."""
    n = len(gains[0])
    row, arm = np.arange(start, start + n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    reached, paid, last = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    for _ in gains:
        ratio, rise, dearer, to = _steepest(gains, costs, reached, paid)
        on = ratio > 0
        row, arm, to, rise, dearer = row[on], arm[on], to[on], rise[on], dearer[on]
        last = np.minimum(ratio[on], last[on])  # rounding must not make a row's next step steeper than the one before
        yield Steps(row, to, arm, dearer, rise, last)
        gains, costs = _kept(gains, on), _kept(costs, on)
        arm, reached, paid = to, reached[on] + rise, paid[on] + dearer


def _kept(columns: Sequence[Floats], on: Booleans) -> list[Floats]:
    return [column[on] for column in columns]


def _steepest(
    gains: Sequence[Floats], costs: Sequence[Floats], reached: Floats, paid: Floats
) -> tuple[Floats, Floats, Floats, Integers]:
    """Return ratio, gain, cost and arm of the step with the largest gain per cost; a ratio of 0 where none gains."""
    ratio, rise, dearer = np.zeros((3, len(reached)))
    to = np.zeros(len(reached), dtype=np.int64)
    for k, (gain, cost) in enumerate(zip(gains, costs, strict=True), start=1):
        more = np.maximum(gain - reached, 0.0)
        extra = cost - paid
        slope = more / extra  # 0 / 0, an arm that costs and gains nothing, is NaN and never better
        better = slope > ratio  # an equal one further along is the next step, in the same block
        for best, found in ((ratio, slope), (rise, more), (dearer, extra)):
            np.copyto(best, found, where=better)
        to[better] = k
    return ratio, rise, dearer, to


def allocation(steps: Steps, weight: Floats, budget: float) -> Allocation:
    """Return who gets which arm when the mean cost per person, by weight, may be `budget`.

    All of it is spent unless every step that gains is bought. Steps with the same gain per cost are bought in the same share,
    so that the order of the rows has no say; only the last block is bought in part.
    """
    ends = steps.ends
    spent = np.cumsum(weight[steps.row] * steps.cost)[ends] / weight.sum()
    full = int(np.searchsorted(spent, budget, side="right"))
    bought = ends[full - 1] + 1 if full else 0
    before = np.zeros(len(weight), dtype=np.int64)
    before[steps.row[:bought]] = steps.arm[:bought]  # of a row's several steps the last one counts
    if full == len(ends):
        return Allocation(before, before)
    arm, block = before.copy(), slice(bought, ends[full] + 1)
    arm[steps.row[block]] = steps.arm[block]
    held = spent[full - 1] if full else 0.0
    return Allocation(arm, before, float((budget - held) / (spent[full] - held)))


def unlimited(gain: Floats, cost: Floats) -> Allocation:
    """Return the arm with the largest predicted gain less cost, or the control where none is above 0."""
    arm, best = np.zeros(len(gain), dtype=np.int64), np.zeros(len(gain))
    for k in range(gain.shape[1]):
        net = gain[:, k] - cost[:, k]
        better = net > best
        np.copyto(best, net, where=better)
        arm[better] = k + 1
    return Allocation(arm, arm)


def step_values(values: Floats, steps: Steps) -> Floats:
    """Return by how much each step changes what has one column for each treatment; the control is worth 0."""
    rows = len(values)
    flat = np.ravel(values, order="F")  # a view where columns are contiguous
    change = flat[(steps.arm - 1) * rows + steps.row]
    later = np.flatnonzero(steps.previous)
    change[later] -= flat[(steps.previous[later] - 1) * rows + steps.row[later]]
    return np.asarray(change)
