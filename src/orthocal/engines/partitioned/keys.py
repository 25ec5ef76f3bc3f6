"""Seeded hashes of row keys, and values in one form, whatever type a partition holds them in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Booleans, Integers, Labels
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.hashing import scrambled

if TYPE_CHECKING:
    import numpy.typing as npt


NUMBER, TEXT, TIME = "numbers", "text", "times"
OF_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean"}
"""Names that pandas has for objects that are all numbers."""
LARGEST_EXACT = 2**53
"""Up to which every whole number is a floating point number."""


def kind_of(column: Any) -> str | None:
    """Return what a column of a pandas frame holds; None where all is missing."""
    from pandas.api import types

    if not (column.iloc[:1].notna().any() or column.notna().any()):
        return None
    if isinstance(column.dtype, types.CategoricalDtype):  # a category is a label, even when it looks like a number
        return TEXT
    if types.is_numeric_dtype(column.dtype):  # truth values among them
        return NUMBER
    if types.is_datetime64_any_dtype(column.dtype):
        return TIME
    if column.dtype == object and types.infer_dtype(column, skipna=True) in OF_NUMBERS:
        return NUMBER
    return TEXT


def canonical(column: Any) -> Labels:
    """Return a column such that equal values are the same, whatever the column's type: 5 and 5.0, True and 1, any text."""
    kind = kind_of(column)
    if kind == NUMBER:
        return _bits(column)
    if kind == TIME:
        return np.asarray(column.dt.as_unit("ns").astype("int64"))
    return _text(column)


def _text(column: Any) -> Labels:
    from pandas.api import types

    plain = column.astype(object).where(column.notna(), None)
    if types.infer_dtype(plain, skipna=True) != "string":
        plain = plain.map(str, na_action="ignore")
    return np.asarray(plain, dtype=object)


def _bits(column: Any) -> Labels:
    """Return the bits of numbers as floating point; of whole numbers that are too large for it, their own."""
    import pandas as pd

    plain = pd.to_numeric(column) if column.dtype == object else column
    if plain.dtype.kind in "iu":
        whole = plain.to_numpy(dtype=plain.dtype.name.lower(), na_value=0) if plain.hasnans else plain.to_numpy()
        large = (whole > LARGEST_EXACT) | (whole < -LARGEST_EXACT)
        if large.any():
            return np.where(large, whole.astype(np.uint64), _as_floats(plain))
    return _as_floats(plain)


def _as_floats(column: Any) -> Labels:
    if column.dtype.kind == "c":
        raise OrthocalError(f"Column {shown(column.name)} must hold real numbers or text; it holds {column.dtype}.")
    numbers = np.array(column.to_numpy(dtype=np.float64, na_value=np.nan)) + 0.0  # -0 becomes a plain 0
    return numbers.view(np.uint64)


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
