"""Maps of a prediction and subgroups: what is added depends on the group a row belongs to and on its prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, Labels, step_of
from orthocal.errors import OrthocalError
from orthocal.joint_maps import MATRIX
from orthocal.maps import HOLDS_MAPS, Map
from orthocal.observations import MISSING, as_groups, as_numbers

HOLDS_GROUP_SHIFTS = {"holds": "group shifts"}
LABELS = {"kind": "labels"}
"""Mark the field of a group map that holds its shifts, and fields of text, truth values or numbers that are only compared."""


@dataclass(frozen=True, eq=False)
class GroupShifts:
    """What is added to the predictions of the groups of one column, by the bin of the prediction.

    Parameters
    ----------
    column : str
        Whose values are the groups.
    values : tuple of str, bool or numbers
        The groups, in increasing order. None of them: all rows are one group.
    edges : array of shape (bins - 1,)
        Where predictions are divided, increasing; a bin is closed on the right.
    shifts : array of shape (groups + 1, bins)
        By group and bin; the last row is of all other rows: missing groups, and those that were not seen.
    """

    column: str = field(metadata=LABELS)
    values: tuple[Any, ...] = field(metadata=LABELS)
    edges: Floats
    shifts: Floats = field(metadata=MATRIX)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        for name in ("edges", "shifts"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.edges.ndim != 1 or self.shifts.shape != (len(self.values) + 1, len(self.edges) + 1):
            raise OrthocalError(
                f"Shifts of groups must have one row for each group, one for the others, and one column for each bin; there are "
                f"{len(self.values)} groups, {len(self.edges) + 1} bins and shifts of shape {self.shifts.shape}."
            )
        if not (np.isfinite(self.edges).all() and np.isfinite(self.shifts).all()):
            raise OrthocalError("Shifts of groups must be finite; at least one number is not.")
        if list(self.values) != sorted(set(self.values)):
            raise OrthocalError(f"The groups of a column must increase, none of them twice; they are {[*self.values]}.")
        if not (np.diff(self.edges) > 0).all() or not isinstance(self.column, str):
            raise OrthocalError("Shifts of groups must have a column's name and edges that increase; they have not.")

    def predict(self, prediction: Floats, groups: Mapping[str, Any]) -> Floats:
        """Return the predictions with what is added."""
        code = codes_of(self.column, self.values, groups, len(prediction))
        return np.asarray(prediction + self.shifts[code, step_of(prediction, self.edges)])


@dataclass(frozen=True, eq=False)
class GroupMap:
    r"""A map of a prediction and of the groups of a row: maps of the prediction in turn, then shifts of groups in turn.

    Every round of shifts sees the prediction as the rounds before have left it (mathematics 4.8).

    Parameters
    ----------
    rounds : tuple of GroupShifts
    base : tuple of maps
        Applied before; none of them: the prediction itself.

    Examples
    --------
    >>> shifts = GroupShifts("sex", ("f", "m"), [0.0], [[0.5, 1.0], [-1.0, -1.0], [0.0, 0.0]])
    >>> GroupMap((shifts,)).predict([-1.0, 1.0, 1.0, 1.0], {"sex": ["f", "f", "m", None]})
    array([-0.5,  2. ,  0. ,  1. ])
    """

    rounds: tuple[GroupShifts, ...] = field(default=(), metadata=HOLDS_GROUP_SHIFTS)
    base: tuple[Map, ...] = field(default=(), metadata=HOLDS_MAPS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", tuple(self.rounds))
        object.__setattr__(self, "base", tuple(self.base))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of groups that it needs."""
        return tuple(dict.fromkeys(one.column for one in self.rounds if one.values))

    def predict(self, prediction: Any, groups: Mapping[str, Any] | None = None) -> Floats:
        """Calibrated prediction for each prediction, given the columns of groups by name."""
        values = as_numbers(prediction, "prediction").copy()
        for map_ in self.base:
            values = map_.predict(values)
        for shifts in self.rounds:
            values = shifts.predict(values, {} if groups is None else groups)
        return values


def codes_of(column: str, values: tuple[Any, ...], groups: Mapping[str, Any], n: int) -> Integers:
    """Return the number of each row's group; that of rows in none of them is the number of groups."""
    if not values:
        return np.zeros(n, dtype=np.int64)
    if column not in groups:
        raise OrthocalError(
            f"`groups` must have the column {column!r} that the map was fitted with; it has {[*groups]}."
        )
    labels, known = as_groups(groups[column], f"groups[{column!r}]", n), np.array(values)
    if (labels.dtype.kind in "US") != (known.dtype.kind in "US"):
        raise OrthocalError(
            f"`groups[{column!r}]` must have values like those the map was fitted with, such as {values[0]!r}; "
            f"it has {labels[:1].tolist()}."
        )
    place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    seen = known[place] == labels
    return place if seen.all() else np.where(seen, place, len(known))


def is_known(labels: Labels) -> Booleans:
    """Return which rows have a group at all."""
    if labels.dtype.kind == "f":
        return ~np.isnan(labels)
    return np.asarray(labels != MISSING) if labels.dtype.kind == "U" else np.ones(len(labels), dtype=bool)


GROUP_MAPS: dict[str, type[Any]] = {"groups": GroupMap}
GROUP_SHIFTS: dict[str, type[Any]] = {"group shifts": GroupShifts}
"""Shapes of maps of groups, and of what they hold, by the name they have in a file."""
