"""Ship a joint map of several arms: as columns of SQL, or as one Python function without dependencies."""

from __future__ import annotations

from collections.abc import Sequence

from orthocal.errors import LARGEST, OrthocalError
from orthocal.joint_maps import DecisionShifts, JointMap
from orthocal.sql_text import Dialect, identifier, is_finite, literal, search


def joint_sql(fitted: JointMap, columns: Sequence[str], dialect: Dialect) -> str:
    """Return one SQL expression for each arm, named as the column with ``_calibrated``; shifts of decisions are subqueries."""
    if isinstance(columns, str) or len(columns) != fitted.arms:
        shown = f"{columns!r}" if isinstance(columns, str) else f"{len(columns)} names"
        raise OrthocalError(
            f"`column` must name the {fitted.arms} columns of a joint map, in the order of its arms; it is {shown}."
        )
    names = [identifier(column, dialect) for column in columns]
    lines = [
        " + ".join([literal(start), *(f"{literal(slope)} * {name}" for slope, name in zip(row, names, strict=True))])
        for start, row in zip(fitted.intercept.tolist(), fitted.slopes.tolist(), strict=True)
    ]
    values = lines if not fitted.decisions else _shifted(fitted, lines)
    new = [identifier(f"{column}_calibrated", dialect) for column in columns]
    return ",\n".join(
        f"{dialect.cast.format(f'CASE WHEN {is_finite(names)} THEN{chr(10)}{value}{chr(10)}END')} AS {name}"
        for value, name in zip(values, new, strict=True)
    )


def _shifted(fitted: JointMap, lines: Sequence[str]) -> list[str]:
    """Return each arm's value after all shifts, by one subquery inside another."""
    inner = "SELECT " + ", ".join(f"{line} AS v{k}" for k, line in enumerate(lines))
    for place, shifts in enumerate(fitted.decisions):
        added = ", ".join(f"v{k} + {_shift_of(shifts, k)} AS v{k}" for k in range(fitted.arms))
        inner = f"SELECT {added} FROM ({inner}) AS r{place}"  # noqa: S608
    return [f"(SELECT v{k} FROM ({inner}) AS r)" for k in range(fitted.arms)]  # noqa: S608


def _shift_of(shifts: DecisionShifts, arm: int) -> str:
    """Return what is added to one arm: by the first arm with the largest net gain, and by how large that is."""
    nets = [f"(v{k} - {literal(cost)})" for k, cost in enumerate(shifts.costs.tolist())]
    bins = shifts.edges.shape[1] + 1
    cases = [f"WHEN {' AND '.join(f'{net} <= 0' for net in nets)} THEN {literal(shifts.shifts[0, arm])}"]
    for winner, net in enumerate(nets):
        wins = " AND ".join(f"{net} >= {other}" for other in nets if other != net) or "1 = 1"
        own = shifts.shifts[1 + winner * bins : 1 + (winner + 1) * bins, arm]
        edges = [literal(edge) for edge in shifts.edges[winner]]
        cases.append(f"WHEN {wins} THEN {search(f'{net} <=', edges, [literal(value) for value in own])}")
    return f"CASE {' '.join(cases)} END"


def joint_python(fitted: JointMap, name: str) -> str:
    """Return a function that takes the predictions of all arms, in their order, and returns a list."""
    rounds = [
        (tuple(one.costs.tolist()), tuple(map(tuple, one.edges.tolist())), tuple(map(tuple, one.shifts.tolist())))
        for one in fitted.decisions
    ]
    lines = [
        f"def {name}(predictions):",
        f'    """Return the calibrated predictions of {fitted.arms} arms, given in their order; None among them gives None."""',
        "    import math",
        "    from bisect import bisect_left",
        "",
        f"    if len(predictions) != {fitted.arms}:",
        f'        raise ValueError(f"`predictions` must have {fitted.arms} numbers; they have {{len(predictions)}}.")',
        "    if any(value is None for value in predictions):",
        "        return None",
        f"    if not all(abs(value) <= {LARGEST} for value in predictions):",
        f'        raise ValueError(f"`predictions` must be finite and at most {LARGEST:g} in size; they are {{predictions}}.")',
        f"    intercept = {tuple(fitted.intercept.tolist())}",
        f"    slopes = {tuple(map(tuple, fitted.slopes.tolist()))}",
        "    values = [",
        "        start + sum(slope * value for slope, value in zip(row, predictions))",
        "        for start, row in zip(intercept, slopes)",
        "    ]",
        f"    for costs, edges, shifts in {tuple(rounds)}:",
        "        nets = [value - cost for value, cost in zip(values, costs)]",
        "        best = max(nets)",
        "        winner = nets.index(best)",
        "        bins = len(edges[winner]) + 1",
        "        cell = 1 + winner * bins + bisect_left(edges[winner], best) if best > 0 else 0",
        "        values = [value + shift for value, shift in zip(values, shifts[cell])]",
        "    return values",
    ]
    return "\n".join(lines) + "\n"
