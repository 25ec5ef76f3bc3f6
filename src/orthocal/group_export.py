"""Ship a map of groups: as one SQL expression with the columns of groups, or as one Python function without dependencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from orthocal.errors import OrthocalError
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.maps import Map
from orthocal.sql_text import identifier, is_finite, label, literal, search


def group_sql(fitted: GroupMap, column: str, quote: str | None, sql_of: Callable[[Map, str], str]) -> str:
    """Return one SQL expression; each map and each round of shifts is a subquery around the one before."""
    if not isinstance(column, str):
        raise OrthocalError(f"`column` must name the one column of predictions of a map of groups; it is {column!r}.")
    name, places = identifier(column, quote), {group: f"g{k}" for k, group in enumerate(fitted.columns)}
    held = "".join(f", {place}" for place in places.values())
    inner = "SELECT " + ", ".join(
        [f"{name} AS v", *(f"{identifier(group, quote)} AS {g}" for group, g in places.items())]
    )
    steps = [
        *(sql_of(map_, "v") for map_ in fitted.base),
        *(f"v + {_shift_case(shifts, places)}" for shifts in fitted.rounds),
    ]
    for number, step in enumerate(steps):
        inner = f"SELECT {step} AS v{held} FROM ({inner}) AS r{number}"  # noqa: S608
    return f"CASE WHEN {is_finite([name])} THEN\n(SELECT v FROM ({inner}) AS r)\nEND"  # noqa: S608


def _shift_case(shifts: GroupShifts, places: dict[str, str]) -> str:
    """Return what is added: by the group, and within it by the bin of the current value."""
    *own, others = (_by_bin(shifts, row) for row in shifts.shifts.tolist())
    cases = [
        f"WHEN {places[shifts.column]} = {label(value)} THEN {text}"
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
    lines = [
        f"def {name}(prediction, groups):",
        '    """Return the calibrated prediction of one row, given its groups by column; None gives None."""',
        "    import math",
        "    from bisect import bisect_left",
        "",
        "    if prediction is None:",
        "        return None",
        "    if not math.isfinite(prediction):",
        '        raise ValueError(f"`prediction` must be finite; it is {prediction}.")',
        *parts,
        f"    for column, values, edges, shifts in {tuple(rounds)!r}:",
        "        own = groups[column] if values else None",
        "        place = values.index(own) if own in values else len(values)",
        "        prediction = prediction + shifts[place][bisect_left(edges, prediction)]",
        "    return prediction",
    ]
    return "\n".join(lines) + "\n"
