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


def group_sums(group: Integers, value: Floats, count: int) -> Floats:
    """Return the sum of the values in each group 0, ..., count - 1."""
    return np.asarray(np.bincount(group, value, count), dtype=np.float64)
