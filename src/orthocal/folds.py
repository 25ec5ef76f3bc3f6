"""Folds: which part of the data each row belongs to, seeded, stratified, clusters kept whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.errors import OrthocalError, require_length

OTHER = -1
"""Stratum of rows whose level need not occur in every fold."""

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers, Labels


def assign_folds(
    folds: int | Any, strata: Labels, groups: Integers | None = None, random_state: Any = None
) -> Integers:
    """Return each row's fold, 0, 1, ...: as given, or drawn with equal shares of every stratum.

    Parameters
    ----------
    folds : int or array of shape (rows,)
        How many folds, or the fold of each row.
    strata : array of shape (rows,)
        Every level is spread evenly over the folds, so data sorted by treatment does no harm.
    groups : array of shape (rows,), optional
        Cluster codes; a cluster is never divided.
    """
    if not isinstance(folds, int | np.integer):
        return _checked(folds, strata, groups)
    if folds < 2:
        raise OrthocalError(
            f"`folds` must be at least 2; it is {folds}. A nuisance is never used on rows it was fitted on."
        )
    codes, units, occurrences = _stratified_units(strata, groups)
    rarest = int(occurrences[np.unique(strata) != OTHER].min())
    if rarest < folds:
        kind = "rows" if groups is None else "clusters"
        raise OrthocalError(
            f"Each treatment level must occur in at least as many {kind} as there are folds; the rarest has {rarest} for "
            f"{folds} folds. Use fewer folds or more data."
        )
    fold = np.empty(len(codes), dtype=np.int64)
    # Dealing the shuffled, stratum-sorted units out like cards spreads each stratum evenly.
    fold[_shuffled_by_stratum(codes, random_state)] = np.arange(len(codes)) % folds
    return fold if units is None else fold[units]


def _checked(folds: Any, strata: Labels, groups: Integers | None) -> Integers:
    """Folds as given: one label per row, no cluster divided."""
    labels = np.asarray(folds)
    if labels.ndim != 1:
        raise OrthocalError(f"`folds` must be a whole number or one label per row; it is {folds!r}.")
    require_length(labels, len(strata), "folds")
    fold = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    if groups is not None and len(np.unique(groups * (int(fold.max()) + 1) + fold)) > len(np.unique(groups)):
        raise OrthocalError("`folds` as given must keep clusters whole; at least one cluster is divided.")
    return fold


def split_rows(share: float, strata: Labels, groups: Integers | None = None, random_state: Any = None) -> Integers:
    """Return 0 for a `share` of the rows (of every stratum, clusters whole) and 1 for the rest."""
    codes, units, _ = _stratified_units(strata, groups)
    order = _shuffled_by_stratum(codes, random_state)
    position = np.empty(len(codes))
    position[order] = np.arange(len(codes))
    # Row j of a stratum goes to the first part whenever the running count share * j passes a whole number.
    part = np.where(np.floor((position + 1) * share) > np.floor(position * share), 0, 1).astype(np.int64)
    return part if units is None else part[units]


def generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from a seed, a generator, or scikit-learn's older kind."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _stratified_units(strata: Labels, groups: Integers | None) -> tuple[Integers, Integers | None, Integers]:
    """Stratum of each unit (row or cluster), each row's unit, and in how many units each stratum occurs."""
    codes = np.unique(strata, return_inverse=True)[1].astype(np.int64)
    if groups is None:
        return codes, None, np.bincount(codes)
    table = np.zeros((int(groups.max()) + 1, int(codes.max()) + 1))
    np.add.at(table, (groups, codes), 1)
    # A cluster counts for the level it is richest in, compared with the share of that level in all rows.
    richest = np.argmax(table / table.sum(axis=0), axis=1)
    return richest.astype(np.int64), groups, (table > 0).sum(axis=0)


def _shuffled_by_stratum(codes: Integers, random_state: Any) -> Integers:
    rng = generator(random_state)
    if codes.max() == 0:
        return rng.permutation(len(codes)).astype(np.int64, copy=False)
    noise: Floats = rng.random(len(codes))
    return np.lexsort((noise, codes)).astype(np.int64)
