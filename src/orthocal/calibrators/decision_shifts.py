"""Decision calibration: what is promised for the chosen arm is what it delivers (Zhao and others 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np

from orthocal.arrays import Floats, group_sums
from orthocal.joint_maps import DecisionShifts
from orthocal.losses import ArmScores

WINNERS, MOST_BINS = 5000, 5
"""Rows with a winner that a bin of the winner's predicted gain must have, and bins at most."""


def decision_shifts(values: Floats, scores: ArmScores, costs: Floats) -> DecisionShifts:
    """Return the mean of (score - prediction) of the winning arm, and of the others, by the winner's predicted net gain.

    All arms share it, and a shift is taken as far as it stands out of its standard error (the positive part of James and Stein's
    estimator): shifts of each arm apart follow noise, and who wins by noise is a winner's curse of its own.
    """
    arms, net = values.shape[1], values - costs
    winner, value = np.argmax(net, axis=1), net.max(axis=1)
    wins = value > 0
    bins = int(np.clip(wins.sum() // WINNERS, 1, MOST_BINS))
    edges = np.quantile(value[wins], np.linspace(0, 1, bins + 1)[1:-1]) if wins.any() else np.empty(0)
    rest = scores.gains - values
    of_winner = rest[np.arange(len(rest)), winner]
    of_others = (rest.sum(axis=1) - of_winner) / max(arms - 1, 1)
    cell = np.where(wins, 1 + np.searchsorted(edges, value), 0)
    first, second = (_shrunk_means(cell, own, scores, 1 + bins)[1:] for own in (of_winner, of_others))
    shifts = np.repeat(second[:, None], arms, axis=1)[None].repeat(arms, axis=0)
    for k in range(arms):
        shifts[k, :, k] = first
    every = np.concatenate([np.zeros((1, arms)), shifts.reshape(arms * bins, arms)])
    return DecisionShifts(costs, np.tile(edges, (arms, 1)), every)


def _shrunk_means(cell: Any, values: Floats, scores: ArmScores, count: int) -> Floats:
    """Return the mean of each cell, less the part of it that its noise explains."""
    held = group_sums(cell, scores.weight, count)
    held = np.where(held > 0, held, 1.0)
    mean = group_sums(cell, scores.weight * values, count) / held
    variance = _squares_by_cell(cell, scores.weight * (values - mean[cell]), scores.groups, count) / held**2
    return np.asarray(mean * np.maximum(1 - variance / np.maximum(mean**2, np.finfo(float).tiny), 0.0))


def _squares_by_cell(cell: Any, own: Floats, groups: Any, count: int) -> Floats:
    """Return the summed squares of each cell, of rows or of a cluster's sum in it."""
    if groups is None:
        return group_sums(cell, own**2, count)
    pairs, index = np.unique(np.column_stack([cell, groups]), axis=0, return_inverse=True)
    return group_sums(pairs[:, 0], group_sums(index.ravel(), own, len(pairs)) ** 2, count)
