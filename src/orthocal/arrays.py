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
