"""Chunks in threads: one for every core, in order, with no more waiting than there are threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from orthocal.engines.room import reuse_freed_arrays
from orthocal.nuisances.learnt import one_thread

LARGEST, MOST_FREE = 2**25, 2**28
"""Bytes of arrays that serve again, and of memory that is kept for them."""
T = TypeVar("T")
R = TypeVar("R")


def in_threads(function: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """Yield ``function(item)`` of all items, in order, so many at a time; no more wait than there are threads.

    Numeric libraries use one thread in each: threads that share the cores with those of BLAS mostly wait for each other.
    """
    if workers == 1 or len(items) == 1:
        yield from map(function, items)
        return
    reuse_freed_arrays(LARGEST, MOST_FREE)
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        waiting = []
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * workers:
                    yield waiting.pop(0).result()
            for one in waiting:
                yield one.result()
        finally:
            for one in waiting:
                one.cancel()
