"""Ratios of two pieces of work, measured side by side in one process."""

from __future__ import annotations

import gc
import time
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Skipped(Exception):  # noqa: N818
    """What is needed is not installed."""


def interleaved(
    ours: Callable[[], Any],
    floor: Callable[[], Any],
    repeats: int = 7,
    typical: Callable[[list[float]], float] = median,
) -> float:
    """Return typical time of ours / typical time of the floor, the two run in turn after one unmeasured run each.

    The median by default; the least (`typical=min`) for work of seconds, whose median moves with whatever else the machine does.
    """
    ours(), floor()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for record, work in zip(times, (ours, floor), strict=True):
            gc.collect()
            start = time.perf_counter()
            work()
            record.append(time.perf_counter() - start)
    return typical(times[0]) / typical(times[1])


def seeded(learner):
    """Return a learner, and what it contains, with a seed of 0."""
    return learner.set_params(**{name: 0 for name in learner.get_params() if name.endswith("random_state")})
