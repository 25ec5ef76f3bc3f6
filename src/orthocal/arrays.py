"""The array types every module speaks of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
Labels: TypeAlias = npt.NDArray[Any]
"""Values that are only compared: treatments, clusters."""
Rows: TypeAlias = Booleans | Integers | slice
"""Anything that selects rows of an array."""

MANY = 10_000
"""Rows beyond which it pays to look whether groups are in order."""


def group_sums(group: Integers, value: Floats, count: int) -> Floats:
    """Return the sum of the values in each group 0, ..., count - 1; groups that follow each other are summed in one sweep."""
    if len(group) > MANY and bool((group[1:] >= group[:-1]).all()):
        start = np.searchsorted(group, np.arange(count))
        if group[0] == 0 and group[-1] == count - 1 and (np.diff(start) > 0).all():  # no group is empty
            return np.asarray(np.add.reduceat(value, start), dtype=np.float64)
    return np.asarray(np.bincount(group, value, count), dtype=np.float64)


FEW = 40
"""Edges up to which comparing with each of them in turn is faster than a binary search, whose branches cannot be foreseen."""


def step_of(values: Floats, edges: Floats) -> Integers:
    """Return for each value the number of its step ( , ] between increasing edges."""
    if len(edges) > FEW:
        return np.searchsorted(edges, values, side="left").astype(np.int64, copy=False)
    step = np.zeros(len(values), dtype=np.uint8)
    for edge in edges:
        step += values > edge
    return step.astype(np.int64)


def is_sorted(values: Floats) -> bool:
    """Return whether the values do not fall."""
    return bool((values[1:] >= values[:-1]).all())


def sorting_order(values: Floats) -> Rows:
    """Return what sorts the values: an index, or the trivial slice where they are sorted already."""
    return slice(None) if is_sorted(values) else np.argsort(values).astype(np.int64, copy=False)
