"""The survival curve of an arm, averaged over all rows, doubly robust at every time of the grid."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums, runs
from orthocal.effects.survival_gains import at_risk_and_event, hazards_of
from orthocal.nuisances.time_grid import Histories

LEAST = 1e-12
"""Chances of no event below this are taken to be this where they are divided by."""


def scores_over_time(survival: Floats, follow_up: Floats, history: Histories, inverse: Floats) -> Floats:
    r"""Return :math:`\phi_a(t_k)` of some rows at every time of the grid (mathematics 3.13)."""
    hazard = hazards_of(survival)
    at_risk, event = at_risk_and_event(survival.shape[1], history)
    surprise = (at_risk * hazard - event) / (np.maximum(survival, LEAST) * follow_up)
    return np.asarray(survival * (1 + inverse[:, None] * np.cumsum(surprise, axis=1)))


def mean_and_error(
    survival: Floats,
    follow_up: Floats,
    history: Histories,
    inverse: Floats,
    weight: Floats,
    groups: Integers | None,
) -> tuple[Floats, Floats]:
    r"""Return the mean over all rows at each time, and its standard error; clusters count as one.

    The square of the error is :math:`\sum_g (\sum_{i \in g} w_i (\phi_i - m))^2 / W^2`, from sums that go over the rows once.
    """
    cells, count = survival.shape[1], 0 if groups is None else int(groups.max()) + 1
    by_group, masses = (
        np.zeros((count, cells)),
        np.zeros(count) if groups is None else group_sums(groups, weight, count),
    )
    total, first, second = np.zeros((3, cells))
    for some in runs(len(weight)):
        own = Histories(history.entered[some], history.died[some])
        scores = scores_over_time(survival[some].astype(np.float64), follow_up[some], own, inverse[some])
        weighted = weight[some, None] * scores
        total += weighted.sum(axis=0)
        if groups is None:
            first, second = first + weight[some] @ weighted, second + (weighted**2).sum(axis=0)
        else:
            np.add.at(by_group, groups[some], weighted)
    mean = total / weight.sum()
    alone = second - 2 * mean * first + mean**2 * (weight @ weight if groups is None else 0.0)
    together = ((by_group - masses[:, None] * mean) ** 2).sum(axis=0)
    return mean, np.sqrt(np.maximum(alone, 0) + together) / weight.sum()
