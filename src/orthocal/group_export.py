"""Ship a map of groups: as one SQL expression with the columns of groups, or as one Python function without dependencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from orthocal.errors import LARGEST, OrthocalError
from orthocal.formats import shown
from orthocal.group_columns import GroupPart
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.maps import Map
from orthocal.sql_text import Dialect, identifier, is_finite, label, literal, search

REFUSAL = (
    f"    if not abs(prediction) <= {LARGEST}:",
    f'        raise ValueError(f"`prediction` must be finite and at most {LARGEST:g} in size; it is {{prediction}}.")',
)
"""Lines of a Python function that refuse what is no prediction."""


def group_sql(fitted: GroupMap, column: str, dialect: Dialect, sql_of: Callable[[Map, str], str]) -> str:
    """Return one SQL expression; each map and each round of shifts is a subquery around the one before."""
    if not isinstance(column, str):
        raise OrthocalError(
            f"`column` must name the one column of predictions of a map of groups; it is {shown(column)}."
        )
    name, places = identifier(column, dialect), {group: f"g{k}" for k, group in enumerate(fitted.used)}
    held = "".join(f", {place}" for place in places.values())
    inner = "SELECT " + ", ".join(
        [f"{name} AS v", *(f"{_group_sql(fitted, group, dialect)} AS {g}" for group, g in places.items())]
    )
    steps = [
        *(sql_of(map_, "v") for map_ in fitted.base),
        *(f"v + {_shift_case(shifts, places, dialect)}" for shifts in fitted.rounds),
    ]
    for number, step in enumerate(steps):
        inner = f"SELECT {step} AS v{held} FROM ({inner}) AS r{number}"  # noqa: S608
    return dialect.cast.format(f"CASE WHEN {is_finite([name])} THEN\n(SELECT v FROM ({inner}) AS r)\nEND")  # noqa: S608


def _group_sql(fitted: GroupMap, group: str, dialect: Dialect) -> str:
    """Return a column of groups, or what makes it of others."""
    made = fitted.made
    return _parts_sql(made[group].parts, (), dialect) if group in made else identifier(group, dialect)


def _parts_sql(parts: Sequence[GroupPart], words: tuple[str, ...], dialect: Dialect) -> str:
    """Return a row's group in words, NULL where it is in none: the parts in turn, each within those before."""
    if not parts:
        return label(" and ".join(words), dialect)
    first, *rest = parts
    name = identifier(first.column, dialect)
    inner = [_parts_sql(rest, (*words, own), dialect) for own in first.words]
    if first.values:
        cases = [
            f"WHEN {name} = {label(value, dialect)} THEN {text}"
            for value, text in zip(first.values, inner, strict=True)
        ]
        return f"CASE {' '.join(cases)} END"
    ranges = search(f"{name} <=", [literal(cut) for cut in first.cuts], inner)
    return f"CASE WHEN {is_finite([name])} THEN {ranges} END"


def _shift_case(shifts: GroupShifts, places: dict[str, str], dialect: Dialect) -> str:
    """Return what is added: by the group, and within it by the bin of the current value."""
    *own, others = (_by_bin(shifts, row) for row in shifts.shifts.tolist())
    cases = [
        f"WHEN {places[shifts.column]} = {label(value, dialect)} THEN {text}"
        for value, text in zip(shifts.values, own, strict=True)
    ]
    return f"CASE {' '.join(cases)} ELSE {others} END" if cases else others


def _by_bin(shifts: GroupShifts, row: Sequence[float]) -> str:
    return search("v <=", [literal(edge) for edge in shifts.edges], [literal(value) for value in row])


def group_python(fitted: GroupMap, name: str, python_of: Callable[[Map], list[str]]) -> str:
    """Return a function that takes a prediction and a dict of the row's groups by column."""
    parts: list[str] = []
    for number, map_ in enumerate(fitted.base):
        parts += [f"    def part_{number}(prediction):", *(f"        {line}".rstrip() for line in python_of(map_)), ""]
        parts += [f"    prediction = part_{number}(prediction)"]
    rounds: list[Any] = [
        (one.column, one.values, tuple(one.edges.tolist()), tuple(map(tuple, one.shifts.tolist())))
        for one in fitted.rounds
    ]
    derived = tuple(
        (made, tuple((p.column, p.values, tuple(p.cuts.tolist()), p.words) for p in one.parts))
        for made, one in fitted.made.items()
    )
    lines = [
        f"def {name}(prediction, groups):",
        '    """Return the calibrated prediction of one row, given its columns of groups by name; None gives None."""',
        "    import math",
        "    from bisect import bisect_left",
        "",
        "    if prediction is None:",
        "        return None",
        *REFUSAL,
        *parts,
        *(_derived_lines(derived) if derived else ["    made = {}"]),
        f"    for column, values, edges, shifts in {tuple(rounds)!r}:",
        "        own = None if not values else made[column] if column in made else groups[column]",
        "        place = values.index(own) if own in values else len(values)",
        "        prediction = prediction + shifts[place][bisect_left(edges, prediction)]",
        "    return prediction",
    ]
    return "\n".join(lines) + "\n"


def _derived_lines(derived: tuple[Any, ...]) -> list[str]:
    """Return the lines that make columns of groups of others."""
    return [
        "    made = {}",
        f"    for name, parts in {derived!r}:",
        "        found = []",
        "        for column, values, cuts, words in parts:",
        "            own = groups[column]",
        "            if values and own in values:",
        "                found.append(words[values.index(own)])",
        "            elif not values and own is not None and math.isfinite(own):",
        "                found.append(words[bisect_left(cuts, own)])",
        '        made[name] = " and ".join(found) if len(found) == len(parts) else None',
    ]
