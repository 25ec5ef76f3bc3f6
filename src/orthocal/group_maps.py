"""Maps of a prediction and subgroups: what is added depends on the group a row belongs to and on its prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orthocal.arrays import Floats, as_floats, step_of
from orthocal.errors import OrthocalError, are_numbers
from orthocal.formats import shown
from orthocal.group_columns import LABELS, DerivedGroups, codes_of
from orthocal.joint_maps import MATRIX
from orthocal.maps import HOLDS_MAPS, Map
from orthocal.observations import as_numbers

HOLDS_GROUP_SHIFTS = {"holds": "group shifts"}
HOLDS_DERIVED = {"holds": "derived groups"}
"""Mark the fields of a group map that hold its shifts, and columns of groups made of others."""


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
            object.__setattr__(self, name, as_floats(getattr(self, name), name))
        if self.edges.ndim != 1 or self.shifts.shape != (len(self.values) + 1, len(self.edges) + 1):
            raise OrthocalError(
                f"Shifts of groups must have one row for each group, one for the others, and one column for each bin; there are "
                f"{len(self.values)} groups, {len(self.edges) + 1} bins and shifts of shape {self.shifts.shape}."
            )
        if not are_numbers(self.edges, self.shifts):
            raise OrthocalError("Shifts of groups must be finite; at least one number is not.")
        if list(self.values) != sorted(set(self.values)):
            raise OrthocalError(
                f"The groups of a column must increase, none of them twice; they are {shown([*self.values])}."
            )
        if not (np.diff(self.edges) > 0).all() or not isinstance(self.column, str):
            raise OrthocalError("Shifts of groups must have a column's name and edges that increase; they do not.")

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
    derived : tuple of DerivedGroups
        Columns of groups that rounds name and that are made of other columns, such as ranges of age.

    Examples
    --------
    >>> shifts = GroupShifts("sex", ("f", "m"), [0.0], [[0.5, 1.0], [-1.0, -1.0], [0.0, 0.0]])
    >>> GroupMap((shifts,)).predict([-1.0, 1.0, 1.0, 1.0], {"sex": ["f", "f", "m", None]})
    array([-0.5,  2. ,  0. ,  1. ])
    """

    rounds: tuple[GroupShifts, ...] = field(default=(), metadata=HOLDS_GROUP_SHIFTS)
    base: tuple[Map, ...] = field(default=(), metadata=HOLDS_MAPS)
    derived: tuple[DerivedGroups, ...] = field(default=(), metadata=HOLDS_DERIVED)

    def __post_init__(self) -> None:
        for name in ("rounds", "base", "derived"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def made(self) -> dict[str, DerivedGroups]:
        """The columns of groups that it makes of others, by name."""
        return {one.name: one for one in self.derived if one.name in self.used}

    @property
    def used(self) -> tuple[str, ...]:
        """The columns of groups that it shifts."""
        return tuple(dict.fromkeys(one.column for one in self.rounds if one.values))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it needs besides the prediction."""
        made, found = self.made, []
        for column in self.used:
            found += [part.column for part in made[column].parts] if column in made else [column]
        return tuple(dict.fromkeys(found))

    @property
    def kinds(self) -> dict[str, type]:
        """The kind of each column that it needs: text, or numbers, to which booleans belong."""
        made = self.made
        found = {one.column: one.values[:1] for one in self.rounds if one.values and one.column not in made}
        found |= {part.column: part.values[:1] for one in made.values() for part in one.parts}
        return {column: str if any(isinstance(one, str) for one in first) else float for column, first in found.items()}

    def base_value(self, prediction: Any) -> Floats:
        """Return the prediction after the maps that come before shifts of groups."""
        values = as_numbers(prediction, "prediction").copy()
        for map_ in self.base:
            values = map_.predict(values)
        return values

    def predict(self, prediction: Any, groups: Mapping[str, Any] | None = None) -> Floats:
        """Calibrated prediction for each prediction, given by name the columns that it needs."""
        values, given = self.base_value(prediction), {} if groups is None else groups
        made = {name: one.labels(given, len(values)) for name, one in self.made.items()}
        for shifts in self.rounds:
            values = shifts.predict(values, made if shifts.column in made else given)
        return values


def predict_within(fitted: Any, prediction: Floats, groups: Mapping[str, Any]) -> Floats:
    """Return what any map of one prediction makes of it, given the columns that a map of groups needs."""
    if isinstance(fitted, GroupMap):
        return fitted.predict(prediction, groups)
    return np.asarray(fitted.predict(prediction))


GROUP_MAPS: dict[str, type[Any]] = {"groups": GroupMap}
GROUP_SHIFTS: dict[str, type[Any]] = {"group shifts": GroupShifts}
"""Shapes of maps of groups, and of what they hold, by the name they have in a file."""
