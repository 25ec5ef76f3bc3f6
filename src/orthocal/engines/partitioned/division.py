"""Rows set apart: by a hash of what identifies them, wherever they are, or by a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Integers
from orthocal.engines.partitioned.keys import folds_of, keys_of, sampled
from orthocal.engines.partitioned.passes import reduced
from orthocal.engines.protocol import PartitionedTable, held_out

OWN = 2**32
"""Added to the seed, so that rows set apart have nothing to do with folds and samples of the same seed."""
BUCKETS = 256
"""Into which keys are hashed in order to see how many rows share one."""


class Division(NamedTuple):
    """How many rows a division leaves on either side."""

    rows: int
    held: int
    buckets: Integers

    def merge(self, other: Division) -> Division:
        """Of both."""
        return Division(self.rows + other.rows, self.held + other.held, self.buckets + other.buckets)

    @property
    def alike(self) -> float:
        r"""Roughly how many rows share a key: 1 where no two do.

        Sets of m rows with one key make the chi-square statistic of their buckets m times as large.
        """
        expected = self.rows / BUCKETS
        return float(((self.buckets - expected) ** 2).sum() / expected / (BUCKETS - 1))


def division(table: PartitionedTable, by: Sequence[str], share: float, seed: int) -> Division:
    """Count the rows that `divided` will set apart, in one pass over the columns that identify rows."""
    return reduced(table.select(by), _counts, Division.merge, tuple(by), share, seed)


def divided(table: PartitionedTable, by: Sequence[str], share: float, seed: int) -> tuple[Any, Any]:
    """Return the table without about this share of its rows, and the table of them.

    Parameters
    ----------
    table : PartitionedTable
    by : sequence of str
        Columns that identify rows; rows alike in them stay together.
    share : float
    seed : int
    """
    kept, held = (table.where(by, _side, tuple(by), share, seed, of_held) for of_held in (False, True))
    return kept, held


def divided_by_column(table: PartitionedTable, name: str) -> tuple[Any, Any]:
    """Return the table of the rows for which a column is 0, and of those for which it is 1."""
    kept, held = (table.where([name], _is_value, name, value) for value in (0, 1))
    return kept, held


def _is_value(part: Any, name: str, value: int) -> Booleans:
    return np.asarray(part[name] == value, dtype=bool)


def _held(part: Any, by: tuple[str, ...], share: float, seed: int) -> Booleans:
    return sampled(keys_of(part[list(by)]), share, seed + OWN)


def _side(part: Any, by: tuple[str, ...], share: float, seed: int, of_held: bool) -> Booleans:
    return np.asarray(_held(part, by, share, seed) == of_held)


def _counts(part: Any, by: tuple[str, ...], share: float, seed: int) -> Division:
    buckets = np.bincount(folds_of(keys_of(part[list(by)]), BUCKETS, seed + OWN), minlength=BUCKETS)
    return Division(len(part), int(_held(part, by, share, seed).sum()), buckets)


def pairs_of(part: Any, names: tuple[str, str]) -> Any:
    """Different pairs of cluster and value, as keys."""
    return np.unique(np.column_stack([keys_of(part[[name]]) for name in names]), axis=0)


def joined_pairs(one: Any, other: Any) -> Any:
    """Different pairs of both."""
    return np.unique(np.concatenate([one, other]), axis=0)


def counts_of_column(part: Any, names: tuple[str]) -> Division:
    """Question: how many rows a column holds out."""
    held = held_out(part[names[0]], names[0], len(part))
    return Division(len(part), int(held.sum()), np.ones(BUCKETS, dtype=np.int64))
