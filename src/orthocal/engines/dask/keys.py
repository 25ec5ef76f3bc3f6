"""Seeded hashes of row keys: a row's fold, and whether it is in a sample, do not depend on partitions or on other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Booleans, Integers
from orthocal.engines.dask.labels import canonical
from orthocal.hashing import scrambled

if TYPE_CHECKING:
    import numpy.typing as npt


def keys_of(frame: Any) -> npt.NDArray[np.uint64]:
    """Return one 64-bit key for the contents of each row of a pandas frame, whatever its index and the types of its columns.

    One file may hold 5 where another holds 5.0: a value has one key, whatever type it comes in.
    """
    import pandas as pd
    from pandas.util import hash_pandas_object

    plain = pd.DataFrame({place: canonical(column) for place, (_, column) in enumerate(frame.items())})
    return np.asarray(hash_pandas_object(plain, index=False).to_numpy(), dtype=np.uint64)


def folds_of(key: npt.NDArray[np.uint64], folds: int, seed: int) -> Integers:
    """Return the fold of each key."""
    return np.asarray(scrambled(key, seed) % np.uint64(folds), dtype=np.int64)


def sampled(key: npt.NDArray[np.uint64], share: float, seed: int) -> Booleans:
    """Return which keys are in a sample of about this share; another draw than the folds."""
    return np.asarray(scrambled(scrambled(key, seed), 1) < np.uint64(min(share, 1.0) * float(2**64 - 2**11)))
