"""Hashes of what rows hold: the same number for the same contents, in whatever row, partition or kind of column they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from orthocal.arrays import runs

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers, Labels

Hashes: TypeAlias = npt.NDArray[np.uint64]

STEP, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
HALF = np.uint64(32)


def scrambled(key: Hashes, seed: int) -> Hashes:
    """Return well-mixed 64-bit numbers: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        z = key + STEP * np.uint64(seed + 1)
        z = (z ^ (z >> np.uint64(30))) * FIRST
        z = (z ^ (z >> np.uint64(27))) * SECOND
        return np.asarray(z ^ (z >> np.uint64(31)))


def drawn(key: Hashes, seed: int, salt: int) -> Hashes:
    """Return one random number per key: another for another seed, and for another salt, which says what it is drawn for."""
    return scrambled(key ^ np.random.SeedSequence([seed, salt]).generate_state(1, np.uint64)[0], 0)


def hashed_together(state: Hashes, more: Any) -> Hashes:
    """Return hashes of what was hashed before with something more; `state` is overwritten."""
    state ^= more
    state *= FIRST
    state ^= state >> HALF
    return state


def hash_order(hashes: Hashes, last: Any = None) -> tuple[Integers, Integers]:
    """Return what sorts the hashes, those alike by `last`, and the places in that order of those alike or nearly so.

    The leading bits of each hash and its place in one integer sort in a quarter of the time of `argsort`.
    """
    bits = np.uint64(max(len(hashes) - 1, 1).bit_length())
    packed = ((hashes >> bits) << bits) | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    packed >>= bits
    near = packed[1:] == packed[:-1]
    tied = np.flatnonzero(np.append(near, False) | np.concatenate([[False], near]))
    if len(tied):
        own = order[tied]
        order[tied] = own[np.lexsort((hashes[own],) if last is None else (last[own], hashes[own]))]
    return order, tied


def hashed_rows(matrix: Floats) -> Hashes:
    """Return one hash per row of numbers, each as a float of 32 bits, so that it does not matter in how many it was stored.

    Zero has no sign, and one missing value is like another.
    """
    state = np.full(len(matrix), STEP, dtype=np.uint64)
    for rows in runs(len(matrix)):
        with np.errstate(over="ignore", under="ignore"):
            block = matrix[rows].T.astype(np.float32, order="C")
        block += np.float32(0)
        block[np.isnan(block)] = np.nan
        for column in block.view(np.uint32):
            hashed_together(state[rows], column)
    return state


def hashed_labels(labels: Labels) -> Hashes:
    """Return one hash per label: 5, 5.0 and True as 1 are the same numbers, a category the same as its text."""
    if labels.dtype.kind in "mM":
        labels = labels.astype(np.int64)
    if labels.dtype.kind in "biuf":
        return _hashed_numbers(labels)
    return _hashed_text(labels if labels.dtype.kind == "U" else np.array([str(label) for label in labels]))


def _hashed_numbers(numbers: Labels) -> Hashes:
    """Whole numbers exactly, for they may be long; others as floats of 32 bits."""
    if numbers.dtype.kind != "f":
        return scrambled(numbers.astype(np.int64).view(np.uint64), 0)
    with np.errstate(over="ignore", under="ignore"):
        bits = numbers.astype(np.float32).view(np.uint32).astype(np.uint64) << HALF
    numbers = numbers.astype(np.float64, copy=False)
    is_whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < 2.0**63)
    whole = np.where(is_whole, numbers, 0).astype(np.int64).view(np.uint64)
    return scrambled(np.where(is_whole, whole, bits), 0)


def _hashed_text(text: Labels) -> Hashes:
    state = np.full(len(text), STEP, dtype=np.uint64)
    for letter in np.ascontiguousarray(text).view(np.uint32).reshape(len(text), -1).T:
        # Short texts are filled up with zeros to the longest of the column, which must not matter.
        state = np.where(letter > 0, hashed_together(state.copy(), letter), state)
    return scrambled(state, 0)
