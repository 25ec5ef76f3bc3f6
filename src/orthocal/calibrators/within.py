"""Named subgroups of rows: values of columns, ranges of numbers, and intersections, which a map can find again by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers, Labels, step_of
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.calibrators.multicalibrator import Multicalibrator
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.group_columns import DerivedGroups, GroupPart, is_known, value_in_words
from orthocal.group_maps import GroupMap, predict_within
from orthocal.losses import Loss
from orthocal.maps import IdentityMap, Map
from orthocal.observations import as_groups

MOST_VALUES = 10
"""Numbers with more values than these are cut into ranges."""
RANGES = 4
"""How many, of equal weight."""
FEWEST_DIGITS, MOST_DIGITS = 3, 15
"""Significant digits of a cut: as few as leave the ranges nearly as they are."""
GroupNames = Sequence[str | Sequence[str]]


@dataclass(frozen=True, eq=False)
class GroupsWithin:
    """Columns of groups of all rows, and how they are made of the columns of a table.

    Parameters
    ----------
    given : mapping of str to array
        The columns of the table that groups are made of.
    labels : mapping of str to array
        The columns of groups.
    derived : tuple of DerivedGroups
        Those that are not columns of the table; their labels are whole phrases.
    """

    given: Mapping[str, Labels]
    labels: Mapping[str, Labels]
    derived: tuple[DerivedGroups, ...]

    @property
    def phrased(self) -> frozenset[str]:
        """Columns whose labels are whole phrases."""
        return frozenset(one.name for one in self.derived)

    def given_of(self, rows: Integers) -> dict[str, Labels]:
        """Return the columns of the table, of some rows."""
        return {name: values[rows] for name, values in self.given.items()}

    def labels_of(self, rows: Integers) -> dict[str, Labels]:
        """Return the columns of groups, of some rows."""
        return {name: values[rows] for name, values in self.labels.items()}

    def map_after(self, base: Map, prediction: Floats, loss: Loss, rows: Integers, half: Integers | None = None) -> Map:
        """Return a map with shifts of groups after another, fitted on some rows; the other alone where no group stands out.

        With `half`, which of two halves each row is in, the other map is left out where shifts do better without it on rows that
        they were not fitted on: it may have been bent by errors of groups that shifts put right.
        """
        if half is not None and self._loss_on_others(
            IdentityMap(), prediction, loss, rows, half
        ) < self._loss_on_others(base, prediction, loss, rows, half):
            base = IdentityMap()
        shifts = Multicalibrator().fit(base.predict(prediction[rows]), loss[rows], self.labels_of(rows)).map_.rounds
        before = () if isinstance(base, IdentityMap) else (base,)
        return GroupMap(shifts, before, self.derived) if shifts else base

    def _loss_on_others(self, base: Map, prediction: Floats, loss: Loss, rows: Integers, half: Integers) -> float:
        """Return the loss of shifts after a map, those of each half of the rows on the other."""
        total = 0.0
        for side in (0, 1):
            own, others = rows[half[rows] == side], rows[half[rows] != side]
            fitted = self.map_after(base, prediction, loss, others)
            total += float(loss[own].value(predict_within(fitted, prediction[own], self.given_of(own))).sum())
        return total


def groups_within(within: GroupNames, column: Callable[[str], Any], weight: Floats) -> GroupsWithin:
    """Return the groups that columns name: their values, ranges of numbers with many values, intersections of several.

    Parameters
    ----------
    within : sequence of str or of sequences of str
        A sequence of columns inside it means their intersections.
    column : callable
        Returns a column by its name.
    weight : array of shape (rows,)
        Of the rows, for ranges of equal weight.
    """
    entries = [(one,) if isinstance(one, str) else tuple(one) for one in within]
    names = dict.fromkeys(name for entry in entries for name in entry)
    given = {name: as_groups(column(name), name, len(weight)) for name in names}
    parts = {name: part_of(name, labels, weight) for name, labels in given.items()}
    derived = tuple(
        DerivedGroups(" and ".join(entry), tuple(parts[name] for name in entry))
        for entry in dict.fromkeys(entries)
        if len(entry) > 1 or not parts[entry[0]].values
    )
    labels = {entry[0]: given[entry[0]] for entry in entries if len(entry) == 1}
    return GroupsWithin(given, labels | {one.name: one.labels(given, len(weight)) for one in derived}, derived)


def require_within(within: Any) -> list[str | Sequence[str]]:
    """Return what `within` names as a list; a list of columns inside it means their intersections."""
    entries = [within] if isinstance(within, str) else within
    if not isinstance(entries, list | tuple) or not entries:
        raise OrthocalError(f"`within` must name columns of subgroups; it is {shown(within)}. Pass a list of columns.")
    for entry in entries:
        inside = [entry] if isinstance(entry, str) else entry
        if not isinstance(inside, list | tuple) or not inside or not all(isinstance(name, str) for name in inside):
            raise OrthocalError(
                f"`within` must hold columns, or lists of columns for their intersections; it holds {shown(entry)}."
            )
    return list(entries)


def part_of(name: str, labels: Labels, weight: Floats) -> GroupPart:
    """Return the groups of one column: its values, or ranges where it is a number with many."""
    known = is_known(labels)
    found = np.unique(labels[known])
    if labels.dtype.kind not in "fiu" or len(found) <= MOST_VALUES:
        words = tuple(f"{name} = {value_in_words(one)}" for one in found.tolist())
        return GroupPart(name, tuple(found.tolist()), np.empty(0), words)
    numbers = labels[known].astype(np.float64)
    cuts = short_cuts(uniform_mass_edges(numbers, weight[known], RANGES), numbers)
    return GroupPart(name, (), cuts, range_words(name, cuts, is_whole=bool((numbers == np.floor(numbers)).all())))


def short_cuts(edges: Floats, numbers: Floats) -> Floats:
    """Return edges with as few digits as leave each range at least half of its rows."""
    before = np.bincount(step_of(numbers, edges), minlength=len(edges) + 1)
    for digits in range(FEWEST_DIGITS, MOST_DIGITS):
        rounded = np.array([float(f"{edge:.{digits}g}") for edge in edges])
        after = np.bincount(step_of(numbers, rounded), minlength=len(edges) + 1)
        if (np.diff(rounded) > 0).all() and (after >= before / 2).all():
            return rounded
    return edges


def range_words(name: str, cuts: Floats, *, is_whole: bool) -> tuple[str, ...]:
    """Return ranges in words; of whole numbers, both ends belong to a range."""
    ends = [f"{cut:,.12g}" for cut in cuts]
    starts = [f"{np.floor(cut) + 1:,.12g}" if is_whole else end for cut, end in zip(cuts, ends, strict=True)]
    middle = [
        f"{name} {low}" if low == high else f"{name} {low} to {high}"
        for low, high in zip(starts[:-1], ends[1:], strict=True)
    ]
    return (f"{name} up to {ends[0]}", *middle, f"{name} over {ends[-1]}")
