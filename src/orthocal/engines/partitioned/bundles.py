"""Rows of a partition in bundles, one for each range of the prediction, as they travel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from orthocal.arrays import Floats, Integers, is_constant
from orthocal.engines.partitioned.cell_finder import CellFinder

Bundle: TypeAlias = "dict[str, Any]"
"""Columns of some rows; one that holds a single number, such as weights where none were given, has one entry."""


def by_range(prediction: Floats, finder: CellFinder) -> tuple[Integers, Integers]:
    """Return the order that puts rows by range, and where each range begins in it."""
    place = finder.cells(prediction)
    order = np.argsort(place.astype(np.min_scalar_type(len(finder) - 1)), kind="stable")  # short numbers sort fast
    return order, np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(finder)))])


def bundles(table: Any, finder: CellFinder) -> Iterator[tuple[int, Bundle]]:
    """Divide a frame: yield the numbers of the ranges that have rows, and their rows."""
    order, starts = by_range(table["prediction"].to_numpy(), finder)
    same: Bundle = {}
    columns: Bundle = {}
    for name in table.columns:
        values = table[name].to_numpy()
        is_same = name != "prediction" and values.dtype != object and is_constant(values)
        (same if is_same else columns)[name] = values[:1].copy() if is_same else values.take(order)
    for number, (first, last) in enumerate(pairwise(starts.tolist())):
        if last > first:  # copies, for a part of an array would keep the whole of it in memory
            yield (
                number,
                {name: same[name] if name in same else columns[name][first:last].copy() for name in table.columns},
            )


def joined_frame(parts: Sequence[Bundle]) -> Any:
    """Return the rows of some bundles in one frame."""
    import pandas as pd

    def column(name: str) -> Any:
        return np.concatenate([np.broadcast_to(part[name], len(part["prediction"])) for part in parts])

    return pd.DataFrame({name: column(name) for name in parts[0]}, copy=False)
