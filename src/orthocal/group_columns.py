"""Columns of groups made of other columns: ranges of a number, and the intersections of several columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import narwhals as nw
import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, Labels, as_floats, step_of
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.observations import MISSING, as_groups, as_numbers

HOLDS_PARTS = {"holds": "group parts"}
LABELS = {"kind": "labels"}
"""Mark the field that holds the parts of derived groups, and fields of text, truth values or numbers that are only compared."""


@dataclass(frozen=True, eq=False)
class GroupPart:
    """The groups of one column: its values, or ranges of it.

    Parameters
    ----------
    column : str
    values : tuple of str, bool or numbers
        The groups, in increasing order; none where they are ranges.
    cuts : array
        Where the column is divided, increasing, each range closed on the right; none where groups are values.
    words : tuple of str
        What each group is called.
    """

    column: str = field(metadata=LABELS)
    values: tuple[Any, ...] = field(metadata=LABELS)
    cuts: Floats
    words: tuple[str, ...] = field(metadata=LABELS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "cuts", as_floats(self.cuts, "cuts"))
        groups = len(self.values) if self.values else len(self.cuts) + 1
        if len(self.words) != groups or (self.values and len(self.cuts)):
            raise OrthocalError(
                f"Groups of a column must be values or ranges, with words for each; there are {len(self.values)} values, "
                f"{len(self.cuts)} cuts and {len(self.words)} words."
            )
        if not isinstance(self.column, str) or not all(isinstance(one, str) for one in self.words):
            raise OrthocalError("Groups of a column must have the column's name and words for each; they do not.")
        if list(self.values) != sorted(set(self.values)) or len(set(self.words)) < groups:
            raise OrthocalError(
                f"The groups of a column must increase, none of them twice; they are {shown([*self.values] or [*self.words])}."
            )
        if not ((np.diff(self.cuts) > 0).all() and np.isfinite(self.cuts).all()):
            raise OrthocalError(
                f"The cuts of a column must be finite and increase; those of {shown(self.column)} do not."
            )

    def places(self, groups: Mapping[str, Any], n: int) -> Integers:
        """Return the number of each row's group; that of rows in none of them is the number of groups."""
        if self.values:
            return codes_of(self.column, self.values, groups, n)
        require_group_column(self.column, groups)
        labels = as_groups(groups[self.column], f"groups[{shown(self.column)}]", n)
        if labels.dtype.kind not in "fiub":
            raise OrthocalError(
                f"`groups[{shown(self.column)}]` must hold numbers, whose ranges are groups; it holds text."
            )
        known = np.isfinite(labels)
        numbers = as_numbers(np.where(known, labels, 0), self.column, n)
        return np.where(known, step_of(numbers, self.cuts), len(self.words))


@dataclass(frozen=True, eq=False)
class DerivedGroups:
    """A column of groups that is made of others: a row's group is that of each part, in words.

    Parameters
    ----------
    name : str
    parts : tuple of GroupPart
        One: ranges of a number. Several: their intersections.

    Examples
    --------
    >>> sex = GroupPart("sex", ("f", "m"), [], ("sex = f", "sex = m"))
    >>> age = GroupPart("age", (), [60.0], ("age up to 60", "age over 60"))
    >>> both = DerivedGroups("sex and age", (sex, age))
    >>> both.labels({"sex": ["f", "m"], "age": [70, 60]}, 2).tolist()
    ['sex = f and age over 60', 'sex = m and age up to 60']
    """

    name: str = field(metadata=LABELS)
    parts: tuple[GroupPart, ...] = field(metadata=HOLDS_PARTS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not isinstance(self.name, str) or not self.name or not self.parts:
            raise OrthocalError(f"A column of groups must have a name and at least one part; it is {shown(self.name)}.")

    @property
    def words(self) -> list[str]:
        """All groups in words, those of the last part in turn within those before."""
        return [" and ".join(each) for each in product(*(part.words for part in self.parts))]

    def labels(self, groups: Mapping[str, Any], n: int) -> Labels:
        """Return the group of each row in words; rows without one of the parts are in none."""
        code, known = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
        for part in self.parts:
            place = part.places(groups, n)
            known &= place < len(part.words)
            code = code * len(part.words) + place
        return np.array([*self.words, MISSING])[np.where(known, code, -1)]


def codes_of(column: str, values: tuple[Any, ...], groups: Mapping[str, Any], n: int) -> Integers:
    """Return the number of each row's group; that of rows in none of them is the number of groups."""
    if not values:
        return np.zeros(n, dtype=np.int64)
    require_group_column(column, groups)
    labels, known = as_groups(groups[column], f"groups[{shown(column)}]", n), np.array(values)
    if (labels.dtype.kind in "US") != (known.dtype.kind in "US"):
        raise OrthocalError(
            f"`groups[{shown(column)}]` must have values like those the map was fitted with, such as {shown(values[0])}; "
            f"it has {shown(labels[:1].tolist())}."
        )
    place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    seen = known[place] == labels
    return place if seen.all() else np.where(seen, place, len(known))


def value_in_words(value: Any) -> str:
    """Return a value of a column as it is called: a whole number without a point."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def columns_of_groups(groups: Any, n: int) -> dict[str, Labels]:
    """Return columns of groups by name, one value per row."""
    frame = nw.from_native(groups, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        groups = {name: frame[name].to_native() for name in frame.columns}
    if not isinstance(groups, Mapping) or not all(isinstance(name, str) for name in groups):
        raise OrthocalError(
            f"`groups` must map names to labels of groups; it is {shown(groups)}. Pass a dict or a table."
        )
    return {name: as_groups(given, f"groups[{shown(name)}]", n) for name, given in groups.items()}


def require_group_column(column: str, groups: Mapping[str, Any]) -> None:
    """A column of groups is there."""
    if column not in groups:
        raise OrthocalError(
            f"`groups` must have the column {shown(column)} that the map was fitted with; it has {shown([*groups])}."
        )


def is_known(labels: Labels) -> Booleans:
    """Return which rows have a group at all."""
    if labels.dtype.kind == "f":
        return ~np.isnan(labels)
    return np.asarray(labels != MISSING) if labels.dtype.kind == "U" else np.ones(len(labels), dtype=bool)


DERIVED_GROUPS: dict[str, type[Any]] = {"derived groups": DerivedGroups}
GROUP_PARTS: dict[str, type[Any]] = {"group part": GroupPart}
"""Shapes of derived groups and their parts, by the name they have in a file."""
