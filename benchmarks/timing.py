"""Ratios of two pieces of work, measured side by side in one process."""

from __future__ import annotations

import gc
import time
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def interleaved(ours: Callable[[], Any], floor: Callable[[], Any], repeats: int = 7) -> float:
    """Return median time of ours / median time of the floor, the two run in turn after one unmeasured run each."""
    ours(), floor()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for record, work in zip(times, (ours, floor), strict=True):
            gc.collect()
            start = time.perf_counter()
            work()
            record.append(time.perf_counter() - start)
    return median(times[0]) / median(times[1])
