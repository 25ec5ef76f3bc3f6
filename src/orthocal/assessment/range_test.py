"""The bin-free test: how far cumulated residuals stray (MATH 7.5 iii)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array

from orthocal.arrays import group_sums, sorting_order
from orthocal.assessment.parts import TestResult

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers
    from orthocal.losses import Loss

FEW_LEVELS = 500
"""Below as many distinct predictions the walk has too few steps for the law of Brownian motion."""


def range_test(prediction: Floats, loss: Loss, draws: int, rng: np.random.Generator) -> TestResult:
    """Sort by prediction, cumulate the residuals and compare their range with what chance gives; ties move as one."""
    order = sorting_order(prediction)
    level, residual = prediction[order], -loss.derivative(prediction)[order]
    last = np.append(np.flatnonzero(level[1:] != level[:-1]), len(level) - 1)
    walk = np.concatenate([[0.0], np.cumsum(residual)[last]])
    reach = float(walk.max() - walk.min())
    if loss.groups is not None:
        return _cluster_bootstrap(reach, residual, loss.groups[order], last, draws, rng)
    variance = float(np.sum(np.diff(residual) ** 2)) / 2 * len(residual) / max(len(residual) - 1, 1)
    if not variance > 0:
        return TestResult(None, None, "does not apply: no noise")
    statistic = reach / float(np.sqrt(variance))
    if len(last) >= FEW_LEVELS:
        return TestResult(statistic, 1 - brownian_range_cdf(statistic), "range of cumulated residuals, Brownian law")
    steps = np.sqrt(np.diff(np.concatenate([[0.0], np.cumsum(residual**2)[last]])))
    simulated = _ranges(rng.standard_normal((draws, len(steps))) * steps)
    p_value = float((1 + (simulated >= reach).sum()) / (1 + draws))
    return TestResult(statistic, p_value, f"range of cumulated residuals, {len(steps)} levels simulated")


def brownian_range_cdf(x: float) -> float:
    """P(range of Brownian motion on [0, 1] <= x)."""
    k = np.arange(200) + 0.5
    series = (8 / x**2 + 2 / (np.pi * k) ** 2) * np.exp(-2 * (np.pi * k / x) ** 2)
    return float(np.clip(series.sum(), 0.0, 1.0))


def _cluster_bootstrap(
    reach: float, residual: Floats, groups: Integers, last: Integers, draws: int, rng: np.random.Generator
) -> TestResult:
    """Flip the signs of whole clusters: the walk's law under no error, whatever the dependence within a cluster."""
    start = np.concatenate([[0], last[:-1] + 1])
    block = np.repeat(np.arange(len(last)), last - start + 1)
    if len(last) > FEW_LEVELS:  # the walk is watched at this many places
        block = block * FEW_LEVELS // len(last)
    units = np.unique(groups, return_inverse=True)[1]
    count, cells = int(units.max()) + 1, int(block.max()) + 1
    sums = coo_array((residual, (units, block)), shape=(count, cells)).tocsr()
    watched = _ranges(group_sums(block, residual, cells)[None, :])[0]
    simulated = _ranges(np.asarray(rng.choice([-1.0, 1.0], (draws, count)) @ sums))
    p_value = float((1 + (simulated >= watched).sum()) / (1 + draws))
    return TestResult(reach, p_value, "range of cumulated residuals, cluster wild bootstrap")


def _ranges(steps: Floats) -> Floats:
    walk = np.cumsum(steps, axis=1)
    return np.asarray(np.maximum(walk.max(axis=1), 0.0) - np.minimum(walk.min(axis=1), 0.0))
