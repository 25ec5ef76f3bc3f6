"""The array types every module speaks of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from orthocal.errors import OrthocalError
from orthocal.formats import shown

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
Labels: TypeAlias = npt.NDArray[Any]
"""Values that are only compared: treatments, clusters."""
RowIndex: TypeAlias = Booleans | Integers | slice
"""Anything that selects rows of an array."""


def unmasked(values: Any) -> Any:
    """Return a masked array as a plain one: what is masked is missing, whatever number lies under the mask."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    if values.dtype.kind in "fiub":
        return np.ma.filled(values.astype(np.float64), np.nan)
    plain = np.array(values.data, dtype=object)
    plain[np.ma.getmaskarray(values)] = None
    return plain


def as_floats(values: Any, name: str, rule: str = "be an array of numbers") -> Floats:
    """Return numbers of any shape as an array of doubles, not copied where they are that; what is missing is NaN."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        plain = np.asarray(unmasked(values))
        if plain.dtype.kind in "fiubO":
            return plain.astype(np.float64, copy=False)
    except Exception:  # noqa: BLE001, S110  # no numbers, or of different lengths; libraries of tables have errors of their own
        pass
    raise OrthocalError(f"`{name}` must {rule}; it is {shown(values)}.")


def one_column(values: Any, name: str) -> Floats:
    """Return one column of numbers as an array of doubles, not copied where it is that."""
    column = as_floats(values, name)
    if column.ndim != 1:
        raise OrthocalError(f"`{name}` must be one column; its shape is {column.shape}. Select the column you mean.")
    return column


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
    step = np.empty(len(values), dtype=np.int64)
    for rows in runs(len(values)):
        count = np.zeros(rows.stop - rows.start, dtype=np.uint8)
        for edge in edges:
            count += values[rows] > edge
        step[rows] = count
    return step


RUN = 2**13
"""Rows that are worked on at once where many columns of them are needed: they stay in the cache, and BLAS on one thread."""


def runs(n: int, rows: int = RUN) -> Iterator[slice]:
    """Divide n rows into runs of so many."""
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


LONG_RUN = 2**16
"""Rows of a run where a formula makes a few arrays of them, which then stay in the cache."""


def in_runs(formula: Callable[..., Floats], *columns: Any) -> Floats:
    """Return a formula of columns, row by row, worked out for one long run of rows after the other."""
    found = np.empty(len(columns[0]))
    for rows in runs(len(found), LONG_RUN):
        found[rows] = formula(*(column[rows] for column in columns))
    return found


def is_sorted(values: Floats) -> bool:
    """Return whether the values do not fall."""
    return bool((values[1:] >= values[:-1]).all())


def distinct(values: Floats) -> Floats:
    """Return sorted values, each once."""
    return values[np.append(True, values[1:] > values[:-1])] if len(values) else values


def sorting_order(values: Floats) -> RowIndex:
    """Return what sorts the values: an index, or the trivial slice where they are sorted already. Ties keep their order."""
    return sorting_order_and_sorted(values)[0]


def sorting_order_and_sorted(values: Floats) -> tuple[RowIndex, Floats]:
    """Return what sorts the values, as `sorting_order` does, and the sorted values."""
    if is_sorted(values):
        return slice(None), values
    if len(values) > MANY:
        return ordered(values)
    order = np.argsort(values, kind="stable").astype(np.int64, copy=False)
    return order, values[order]


def taken(values: Floats, rows: RowIndex) -> Floats:
    """Return the values of some rows; where all are the same number, without looking each of them up in memory."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind == "i" and len(rows) > MANY:
        return np.full(len(rows), values[0]) if is_constant(values) else values.take(rows)
    return values[rows]


def is_constant(values: Floats) -> bool:
    """Return whether all values are the same number."""
    return len(values) > 0 and (
        values.strides[0] == 0 or bool(values[0] == values[-1] and values.min() == values.max())
    )


def unrepeated(values: Floats) -> Floats:
    """Return a column that repeats one number as that one entry, which broadcasts; any other column as it is."""
    return values[:1] if values.strides[0] == 0 else values


ROUNDING = 1e-9
"""Share of their size within which numbers differ by rounding alone."""


def is_nearly_constant(ends: Floats) -> bool:
    """Return whether the lowest and the highest of some values are the same number but for rounding."""
    return bool(ends[1] - ends[0] <= ROUNDING * float(np.abs(ends).max()))


MOST_ALIKE = 4
"""One row in so many may share its key with another; where more do, all are sorted again."""
BITS = 62
"""Of a whole number that can be filled: one is the sign, and one is kept for rounding."""
ROOM, LOOKED_AT = 16, 1000
"""How many steps of the range a number must have to itself, by and large, for it to pay to sort by them; and how many numbers are
looked at to see whether they have."""


def packed_argsort(values: Floats) -> Integers:
    """Return the stable order of numbers, none of which is NaN; see `ordered`."""
    return ordered(values)[0]


def ordered(values: Floats) -> tuple[Integers, Floats]:
    """Return (stable order, sorted numbers) by sorting integers that hold a key and the row's place: no number is looked up.

    The key rises with the number: it is the step of the range that a number lies in or, where numbers crowd in a few of these,
    its leading bits. The few rows that share a key are put in order after.
    """
    if not len(values):
        return np.arange(0), values
    places = int(len(values) - 1).bit_length()
    key = _rising_key(values, places)
    order = np.empty(len(values), dtype=np.int64)
    for rows in runs(len(values)):
        packed = key(values[rows])
        packed <<= places
        packed |= np.arange(rows.start, rows.stop)
        order[rows] = packed
    order.sort()
    order &= np.int64(2**places - 1)
    level = values.take(order)
    return (order, level) if is_sorted(level) else _settled(values, order, level, key(level))


def _rising_key(values: Floats, places: int) -> Callable[[Floats], Integers]:
    """Return the function that gives each number its key; keys leave `places` bits free."""
    low, high = float(values.min()), float(values.max())
    few = np.sort(values[:: max(len(values) // LOOKED_AT, 1)])
    scale = 2.0 ** (BITS - places) / (high - low) if high > low and np.isfinite(high - low) else np.inf
    if not np.isfinite(scale) or (few[3 * len(few) // 4] - few[len(few) // 4]) * scale <= ROOM * len(values):
        return partial(_leading_bits, places=places)
    return partial(_step, low=low, scale=scale)


def _step(values: Floats, low: float, scale: float) -> Integers:
    place = values - low
    place *= scale
    return place.astype(np.int64)


def _leading_bits(values: Floats, places: int) -> Integers:
    bits = (values + 0.0).view(np.int64)  # adding 0 makes -0 a plain 0, with which it is tied
    bits ^= (bits >> 63) & np.int64(2**63 - 1)  # the order of integers is now that of the numbers
    bits >>= places
    return bits


def _settled(values: Floats, order: Integers, level: Floats, key: Integers) -> tuple[Integers, Floats]:
    """Put rows in order that share a key, which are sorted, with one that they should come before."""
    falls = np.unique(key[np.flatnonzero(level[1:] < level[:-1])])
    first, end = (np.searchsorted(key, falls, side=side) for side in ("left", "right"))
    sizes = end - first
    if sizes.sum() > len(values) // MOST_ALIKE:  # numbers that differ in their last digits only
        order = np.argsort(values, kind="stable").astype(np.int64, copy=False)
        return order, values.take(order)
    rows = np.repeat(end - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
    order[rows] = order[rows][np.lexsort((level[rows], key[rows]))]
    level[rows] = values[order[rows]]
    return order, level


def one_kind_of_labels(values: list[Any], name: str) -> Labels:
    """Return labels as an array; a number and a text that look alike must not become one."""
    try:
        labels = np.array(values)
        is_mixed = len(set(values)) > len(np.unique(labels))
    except (TypeError, ValueError):  # they cannot be compared, or are no single values
        raise OrthocalError(
            f"`{name}` must hold numbers, text or booleans; it holds {shown(values[0])}. Convert it to text."
        ) from None
    if is_mixed:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise OrthocalError(
            f"`{name}` must hold labels of one kind; it mixes {kinds}, and some look alike. Convert it to text."
        )
    return labels
