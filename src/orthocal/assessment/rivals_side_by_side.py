"""What a leaderboard must know of some rows, which merges: losses of rivals side by side, and what deciding by them is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from orthocal.arrays import ROUNDING, Floats, Integers
from orthocal.assessment.compare import WEIGHT, Clusters, Moments, loss_change, moments_of
from orthocal.assessment.rules import blanket_gains, decided_gain
from orthocal.errors import OrthocalError


@dataclass(frozen=True, eq=False)
class RivalSums:
    """What a leaderboard must know of some rows.

    Parameters
    ----------
    rows : int
    sums : Moments or Clusters
        Of weights, losses of the rivals relative to the first, values of the rivals, and values of the rules.
    rules : tuple of str
        Rules that are the same for everyone, where there is a cost.
    size : array of shape (rivals,)
        The largest prediction of each, whatever its sign.
    gap : array of shape (rivals, rivals)
        How far two are apart at most.
    """

    rows: int
    sums: Moments | Clusters
    rules: tuple[str, ...]
    size: Floats
    gap: Floats

    def merge(self, other: RivalSums) -> RivalSums:
        """Of both."""
        return RivalSums(
            self.rows + other.rows,
            self.sums.merge(other.sums),  # type: ignore[arg-type]
            self.rules,
            np.maximum(self.size, other.size),
            np.maximum(self.gap, other.gap),
        )

    @cached_property
    def paired(self) -> Moments | Clusters:
        """The sums with the same loss for predictions that differ by rounding alone, for rounding decides nothing."""
        first = np.arange(len(self.size))
        for place in first:
            near = self.gap[place, :place] <= ROUNDING * np.maximum(self.size[place], self.size[:place])
            first[place] = first[int(np.argmax(near))] if near.any() else place
        factors = np.eye(len(self.sums.total))
        losses = slice(WEIGHT + 1, WEIGHT + 1 + len(first))
        factors[losses, losses] = np.eye(len(first))[first]
        return self.sums.combined(factors)


def rival_sums(predictions: Sequence[Floats], loss: Any, cost: Any) -> RivalSums:
    """Return what a leaderboard must know of some rows, none of weight 0."""
    rules = {} if cost is None else blanket_gains(loss, cost)
    gains = [] if cost is None else [decided_gain(loss, one, cost) for one in predictions]
    changes = [loss_change(loss, predictions[0], one) for one in predictions]
    gap = np.zeros((len(predictions), len(predictions)))
    for i, j in combinations(range(len(predictions)), 2):
        gap[i, j] = gap[j, i] = np.abs(predictions[i] - predictions[j]).max()
    return RivalSums(
        len(loss),
        moments_of([loss.weight, *changes, *gains, *rules.values()], loss.groups),
        tuple(rules),
        np.array([np.abs(one).max() for one in predictions]),
        gap,
    )


def that_count(loss: Any) -> Integers:
    """Return the rows that have weight: others are no evidence."""
    rows = np.flatnonzero(loss.weight > 0)
    if len(rows) == 0:
        raise OrthocalError("At least one row must have positive weight; all are 0.")
    return rows
