"""Folds: which part of the data each row belongs to. Seeded, stratified, clusters kept whole; row order does not matter.

Rows are put in the order of a seeded hash of their key and dealt out in that order. The key is the user's, else what the
covariates, treatment and instrument hold: never outcome, prediction or weight, so that rescaling draws no other folds, and
nuisances learnt once serve every prediction. Clusters are keyed by their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Integers, Labels, ordered
from orthocal.errors import OrthocalError, is_whole
from orthocal.formats import shown
from orthocal.hashing import Hashes, drawn, hash_order, hashed_labels, hashed_rows, hashed_together, scrambled
from orthocal.observations import as_labels

OTHER = -1
"""Stratum of rows whose level need not occur in every fold."""
CROSS, HOLDOUT, SPLIT, THIRDS, VALIDATION, LEARNERS, REPEATS, MODEL, AUDIT = range(1, 10)
"""Salts: what is drawn for one purpose has nothing to do with what the same seed draws for another."""
TIES = 100
"""Added to a salt, where keys are alike."""
FEW_NUMBERS = 1000
"""Whole numbers of a smaller range than this are counted, not sorted, to find those that occur."""


if TYPE_CHECKING:
    from orthocal.observations import Observations


def draw_folds(
    folds: int | Any, strata: Labels, rows: Observations, seed: int, order: Integers | None = None
) -> Integers:
    """Return each row's fold, 0, 1, ...: as given, or drawn with equal shares of every stratum.

    Parameters
    ----------
    folds : int or array of shape (rows,)
        How many folds, or the fold of each row.
    strata : array of shape (rows,)
        Every stratum is spread evenly over the folds, so data sorted by treatment does no harm.
    rows : Observations
    seed : int
    order : array of shape (rows,), optional
        The rows as `row_order` puts them, where that is known.
    """
    if not is_number_of(folds):
        return _checked(folds, len(strata), rows.groups)
    if rows.groups is not None:
        order = cluster_order(rows, seed, CROSS)
    return _dealt(folds, strata, rows.groups, row_order(rows, seed, CROSS) if order is None else order)


def assign_folds(
    folds: int | Any, strata: Labels, groups: Integers | None = None, random_state: Any = None
) -> Integers:
    """Return folds as `draw_folds` does, of rows that already stand in an order of their own, such as that of their values."""
    if not is_number_of(folds):
        return _checked(folds, len(strata), groups)
    count = len(strata) if groups is None else len(np.unique(groups))
    return _dealt(folds, strata, groups, generator(random_state).permutation(count))


def split_rows(share: float, strata: Labels, rows: Observations, seed: int, salt: int) -> Integers:
    """Return 0 for a `share` of the rows (of every stratum, clusters whole) and 1 for the rest."""
    order = row_order(rows, seed, salt) if rows.groups is None else cluster_order(rows, seed, salt)
    codes, units, _ = _stratified_units(strata, rows.groups)
    position = np.empty(len(codes))
    position[_by_stratum(codes, order)] = np.arange(len(codes))
    # Row j of a stratum goes to the first part whenever the running count share * j passes a whole number.
    part = np.where(np.floor((position + 1) * share) > np.floor(position * share), 0, 1).astype(np.int64)
    return part if units is None else part[units]


def row_order(rows: Observations, seed: int, salt: int = CROSS) -> Integers:
    """Return the rows in an order drawn by their keys; ties by a hash of outcome and weight, never by where they stand."""
    key = _contents(rows) if rows.key is None else hashed_labels(rows.key)
    chance = drawn(key, seed, salt)
    order, tied = hash_order(chance)
    if len(tied):
        own = order[tied]
        alike = chance[own]
        group = np.append(0, np.cumsum(alike[1:] != alike[:-1]))
        order[tied] = own[drawn_within(group, _what_else(rows, own), seed, salt, _of(rows.prediction, own))]
    return order


def _what_else(rows: Observations, own: Integers) -> Hashes:
    """Return hashes of what rows hold whose keys are alike: outcome and weight, and all that a key of the user's left out."""
    hashes = hashed_ranks([rows.outcome[own], rows.weight[own]])
    return hashes if rows.key is None else hashed_together(hashes, _contents(rows[own]))


def _of(values: Any, rows: Integers) -> Any:
    return None if values is None else values[rows]


def drawn_within(group: Integers, contents: Hashes, seed: int, salt: int, last: Any = None) -> Integers:
    """Return rows, which stand by group, in an order drawn within each group by what they hold, never by where they stand.

    Rows of one group that hold the same are numbered, in the order of `last` where it is given, and the number is hashed with
    them. They would otherwise stand side by side and be dealt out one to each fold, so that what is left out would mirror what
    is fitted.
    """
    chosen = drawn(hashed_together(contents, group.astype(np.uint64)), seed, salt + TIES)
    by_chance, same = hash_order(chosen, last)
    if len(same):
        own, place = by_chance[same], np.arange(len(same))
        first = np.append(True, chosen[own][1:] != chosen[own][:-1])
        number = np.zeros(len(chosen), dtype=np.uint64)
        number[own] = place - np.maximum.accumulate(np.where(first, place, 0))
        chosen = scrambled(hashed_together(chosen, number), 0)
    bits = np.uint64(int(group[-1]).bit_length())
    if not bits:
        return hash_order(chosen)[0]
    return hash_order((group.astype(np.uint64) << (np.uint64(64) - bits)) | (chosen >> bits))[0]


def hashed_ranks(columns: Sequence[Any]) -> Hashes:
    """Return one hash per row of the dense ranks in each column: they stay what they are when a column is multiplied."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for values in columns:
        if values.min() < values.max():
            order, level = ordered(values)
            rank = np.empty(len(values), dtype=np.uint64)
            rank[order] = np.append(0, np.cumsum(level[1:] != level[:-1]))
            hashes = hashed_together(hashes, rank)
    return hashes


def cluster_order(rows: Observations, seed: int, salt: int) -> Integers:
    """Return the clusters, by their number among those that occur, in an order drawn by their names."""
    assert rows.groups is not None  # noqa: S101
    first = np.unique(rows.groups, return_index=True)[1]
    names = rows.groups if rows.group_names is None else rows.group_names
    return np.argsort(drawn(hashed_labels(names[first]), seed, salt), kind="stable")


def require_seed(random_state: Any) -> None:
    """A seed is a whole number, a generator, or None for chance."""
    kinds = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
    if random_state is None or isinstance(random_state, kinds):
        return
    if not is_whole(random_state):
        raise OrthocalError(
            f"`random_state` must be a whole number, a numpy Generator, or None; it is {shown(random_state)}."
        )
    if random_state < 0:
        raise OrthocalError(f"`random_state` must not be negative; it is {shown(random_state)}.")
    if random_state >= 2**64:
        raise OrthocalError(f"`random_state` must be below 2**64; it is {shown(random_state)}.")


def seed_of(random_state: Any) -> int:
    """Return a whole number that stands for a seed, a generator, scikit-learn's older kind, or for chance where it is None."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(generator(random_state).integers(2**31))


def generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from a seed, a generator, or scikit-learn's older kind."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def is_number_of(folds: int | Any) -> bool:
    """Return whether folds are to be drawn, not given; then there are at least two."""
    if not is_whole(folds):
        return False
    if folds < 2:
        raise OrthocalError(
            f"`folds` must be at least 2; it is {folds}. A nuisance is never used on rows it was fitted on."
        )
    return True


def _contents(rows: Observations) -> Hashes:
    """Return what identifies rows where no key is given."""
    key = hashed_rows(rows.covariates)
    for labels in (rows.treatment, rows.instrument):
        if labels is not None:
            key = hashed_together(key, hashed_labels(labels))
    return key


def _dealt(folds: int, strata: Labels, groups: Integers | None, order: Integers) -> Integers:
    """Deal the units (rows or clusters), sorted by stratum and else in this order, out to the folds like cards."""
    codes, units, occurrences = _stratified_units(strata, groups)
    rarest = int(occurrences[occurrences > 0].min())
    if rarest < folds:
        kind = "rows" if groups is None else "clusters"
        raise OrthocalError(
            f"Each treatment value must occur in at least as many {kind} as there are folds; the rarest has {rarest} for "
            f"{shown(folds)} folds. Use fewer folds or more data."
        )
    fold = np.empty(len(codes), dtype=np.int64)
    fold[_by_stratum(codes, order)] = np.arange(len(codes)) % folds
    return fold if units is None else fold[units]


def _checked(folds: Any, rows: int, groups: Integers | None) -> Integers:
    """Folds as given: one label per row, none missing, no cluster divided."""
    if np.isscalar(folds) or folds is None:
        raise OrthocalError(f"`folds` must be a whole number or one label per row; it is {shown(folds)}.")
    fold = np.unique(as_labels(folds, "folds", rows), return_inverse=True)[1].astype(np.int64)
    if groups is not None and len(np.unique(groups * (int(fold.max()) + 1) + fold)) > len(np.unique(groups)):
        raise OrthocalError("`folds` as given must keep clusters whole; at least one cluster is divided.")
    return fold


def _stratified_units(strata: Labels, groups: Integers | None) -> tuple[Integers, Integers | None, Integers]:
    """Stratum of each unit (row or cluster), each row's unit, and in how many units each stratum that must occur does."""
    levels, codes = _levels(strata)
    if groups is None:
        occurrences = np.bincount(codes, minlength=len(levels))
        return codes, None, occurrences * (levels != OTHER)
    names, units = np.unique(groups, return_inverse=True)
    table = np.bincount(units * len(levels) + codes, minlength=len(names) * len(levels)).reshape(len(names), -1)
    # A cluster counts for the level it is richest in, compared with the share of that level in all rows.
    richest = np.argmax(table / table.sum(axis=0), axis=1)
    return richest.astype(np.int64), units.astype(np.int64), (table > 0).sum(axis=0) * (levels != OTHER)


def _levels(strata: Labels) -> tuple[Labels, Integers]:
    """Return the levels that occur and each row's, by counting where they are whole numbers of a small range."""
    if strata.dtype.kind in "bi":
        whole = strata.astype(np.int64, copy=False)
        low = int(whole.min())
        if int(whole.max()) - low < FEW_NUMBERS:
            there = np.bincount(whole - low) > 0
            return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[whole - low]
    levels, codes = np.unique(strata, return_inverse=True)
    return levels, codes.astype(np.int64)


def _by_stratum(codes: Integers, order: Integers) -> Integers:
    """Return the units by stratum, else in this order."""
    if codes.max() == 0:
        return order
    shelf = codes.astype(np.int16) if codes.max() < 2**15 else codes  # few strata are put in order in one pass
    return order[np.argsort(shelf[order], kind="stable")]
