"""Ship a map: as one SQL expression, or as one Python function without dependencies.

A map of a new shape registers its own form with ``sql_of.register`` and ``python_of.register``.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.interpolate import PPoly

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.group_export import REFUSAL, group_python, group_sql
from orthocal.group_maps import GroupMap
from orthocal.joint_export import joint_python, joint_sql
from orthocal.joint_maps import JointMap
from orthocal.mapfile import to_json
from orthocal.maps import AffineMap, IdentityMap, MixtureMap, OpenStepMap, SigmoidMap, SplineMap, StepMap
from orthocal.sql_text import Dialect, dialect_of, identifier, is_finite, literal, search

LARGEST_SCORE = 700.0
"""A sigmoid is flat to the last bit beyond this score, and exp of it is still a double."""


def to_sql(
    map: Any,  # noqa: A002
    column: str | Sequence[str] = "prediction",
    quote: str | None = None,
    dialect: str | None = None,
) -> str:
    """Return a map as one SQL expression; DuckDB and SQLite run it in the tests, the SQL of the others is parsed.

    It is made of CASE, arithmetic and (sigmoids only) EXP. Numbers are double literals that lose nothing. Where the prediction
    is NULL, NaN, infinite or beyond 1e50 in size the expression is NULL. A column that is not in the table is an error of the
    database, but not in SQLite, which takes a misspelt name between double quotes for a text.

    Parameters
    ----------
    map : Map, or a fitted calibrator or CausalCalibrator
    column : str, default "prediction"
        Name of the column of predictions; of a joint map of several arms, the names of all columns in the order of the arms, and
        the text is a list of columns, each with its name. A map of groups names its columns of groups itself.
    quote : str, optional
        The mark around every name: ``"`` in standard SQL, a backtick in BigQuery, MySQL and Spark. Without it a name of letters,
        digits and underscores that is not a reserved word stands as it is, and any other between the marks of the dialect.
    dialect : {"duckdb", "postgres", "bigquery", "snowflake", "spark", "mysql", "sqlite"}, optional
        How names, texts and doubles are written; standard SQL by default.

    Returns
    -------
    str

    Examples
    --------
    >>> from orthocal.maps import StepMap
    >>> print(to_sql(StepMap([0.0, 1.0], [-0.5, 0.25, 2.0]), "tau"))
    CASE WHEN tau BETWEEN (-1.00000000000000008e+50) AND 1.00000000000000008e+50 THEN
    CASE WHEN tau <= 1e+00 THEN CASE WHEN tau <= 0e+00 THEN (-5e-01) ELSE 2.5e-01 END ELSE 2e+00 END
    END
    """
    return whole_sql(getattr(map, "map_", map), column, dialect_of(dialect, quote))


@singledispatch
def whole_sql(map: Any, column: Any, dialect: Dialect) -> str:  # noqa: A002
    """Return the SQL of a map of one column."""
    name = identifier(column, dialect)
    return dialect.cast.format(f"CASE WHEN {is_finite([name])} THEN\n{sql_of(map, name)}\nEND")


@whole_sql.register
def _(map: JointMap, column: Sequence[str], dialect: Dialect) -> str:  # noqa: A002
    return joint_sql(map, column, dialect)


@whole_sql.register
def _(map: GroupMap, column: str, dialect: Dialect) -> str:  # noqa: A002
    return group_sql(map, column, dialect, sql_of)


def to_python(map: Any, name: str = "calibrate") -> str:  # noqa: A002
    """Return a map as the source text of a Python function that needs no package.

    The function takes one number and returns one; it returns None for None and raises ValueError for NaN and infinity.

    Parameters
    ----------
    map : Map, or a fitted calibrator or CausalCalibrator
    name : str, default "calibrate"
        Of the function.

    Returns
    -------
    str

    Examples
    --------
    >>> from orthocal.maps import AffineMap
    >>> names = {}
    >>> exec(to_python(AffineMap(1.0, 2.0)), names)
    >>> names["calibrate"](3.0)
    7.0
    """
    if not (isinstance(name, str) and name.isidentifier()) or keyword.iskeyword(name) or hasattr(builtins, name):
        raise OrthocalError(
            f"`name` must be a valid name for a Python function, not that of a built-in; it is {shown(name)}."
        )
    return whole_python(getattr(map, "map_", map), name)


@singledispatch
def whole_python(map: Any, name: str) -> str:  # noqa: A002
    """Return the function of a map of one prediction."""
    lines = [
        f"def {name}(prediction):",
        '    """Return the calibrated prediction of one prediction; None gives None."""',
        "    import math",
        "",
        "    if prediction is None:",
        "        return None",
        *REFUSAL,
        *(f"    {line}".rstrip() for line in python_of(map)),
    ]
    return "\n".join(lines) + "\n"


@whole_python.register
def _(map: JointMap, name: str) -> str:  # noqa: A002
    return joint_python(map, name)


@whole_python.register
def _(map: GroupMap, name: str) -> str:  # noqa: A002
    return group_python(map, name, python_of)


EXPORTS: dict[str, Callable[..., str]] = {"sql": to_sql, "json": to_json, "python": to_python}
"""Every form a map can be shipped in."""


@singledispatch
def sql_of(map: Any, name: str) -> str:  # noqa: A002
    """Return the SQL of a map for a finite number in the column `name`, which is quoted already."""
    del name
    raise OrthocalError(f"`map` must have a form in SQL; a {type(map).__name__} has none. Register one with `sql_of`.")


@singledispatch
def python_of(map: Any) -> list[str]:  # noqa: A002
    """Return the lines of Python that return the calibrated value of a finite number `prediction`."""
    raise OrthocalError(
        f"`map` must have a form in Python; a {type(map).__name__} has none. Register one with `python_of`."
    )


@sql_of.register
def _(map: IdentityMap, name: str) -> str:  # noqa: A002, ARG001
    return name


@python_of.register
def _(map: IdentityMap) -> list[str]:  # noqa: A002, ARG001
    return ["return float(prediction)"]


@sql_of.register
def _(map: AffineMap, name: str) -> str:  # noqa: A002
    return f"{literal(map.intercept)} + {literal(map.slope)} * {name}"


@python_of.register
def _(map: AffineMap) -> list[str]:  # noqa: A002
    return [f"return {float(map.intercept)!r} + {float(map.slope)!r} * prediction"]


@sql_of.register
def _(map: StepMap, name: str) -> str:  # noqa: A002
    return search(f"{name} <=", [literal(edge) for edge in map.edges], [literal(value) for value in map.values])


@sql_of.register
def _(map: OpenStepMap, name: str) -> str:  # noqa: A002
    values = ["NULL" if np.isnan(value) else literal(value) for value in map.values]
    return search(f"{name} <=", [literal(edge) for edge in map.edges], values)


@python_of.register
def _(map: StepMap) -> list[str]:  # noqa: A002
    return [
        "from bisect import bisect_left",
        "",
        f"edges = {tuple(map.edges.tolist())}",
        f"values = {tuple(map.values.tolist())}",
        "return values[bisect_left(edges, prediction)]",
    ]


@sql_of.register
def _(map: SigmoidMap, name: str) -> str:  # noqa: A002
    score = f"({literal(map.intercept)} + {literal(map.slope)} * {name})"
    low, high = literal(-LARGEST_SCORE), literal(LARGEST_SCORE)
    minus = f"CASE WHEN {score} < {low} THEN {high} WHEN {score} > {high} THEN {low} ELSE -{score} END"
    return f"{literal(map.lower)} + {literal(map.upper - map.lower)} / ({literal(1.0)} + EXP({minus}))"


@python_of.register
def _(map: SigmoidMap) -> list[str]:  # noqa: A002
    score = f"{float(map.intercept)!r} + {float(map.slope)!r} * prediction"
    return [
        f"score = min(max({score}, {-LARGEST_SCORE}), {LARGEST_SCORE})",
        f"return {float(map.lower)!r} + {float(map.upper - map.lower)!r} / (1.0 + math.exp(-score))",
    ]


@sql_of.register
def _(map: SplineMap, name: str) -> str:  # noqa: A002
    starts, pieces = _pieces(map)
    low, high = map.knots[[0, -1]].tolist()
    first, last = map.predict([low, high]).tolist()
    cubics = [_cubic(start, piece, name) for start, piece in zip(starts, pieces, strict=True)]
    inside = search(f"{name} <", [literal(start) for start in starts[1:]], cubics)
    return (
        f"CASE WHEN {name} <= {literal(low)} THEN {literal(first)}\n"
        f"WHEN {name} >= {literal(high)} THEN {literal(last)} ELSE\n{inside}\nEND"
    )


@python_of.register
def _(map: SplineMap) -> list[str]:  # noqa: A002
    starts, pieces = _pieces(map)
    low, high = map.knots[[0, -1]].tolist()
    return [
        "from bisect import bisect_right",
        "",
        f"starts = {tuple(starts.tolist())}",
        f"pieces = {tuple(tuple(piece) for piece in pieces.tolist())}",
        f"inside = min(max(prediction, {low!r}), {high!r})",
        "piece = bisect_right(starts, inside) - 1",
        "a, b, c, d = pieces[piece]",
        "past = inside - starts[piece]",
        "return a + past * (b + past * (c + past * d))",
    ]


@sql_of.register
def _(map: MixtureMap, name: str) -> str:  # noqa: A002
    parts = zip(map.weights.tolist(), map.maps, strict=True)
    return "\n+ ".join(f"{literal(weight)} * ({sql_of(part, name)})" for weight, part in parts)


@python_of.register
def _(map: MixtureMap) -> list[str]:  # noqa: A002
    lines: list[str] = []
    for number, part in enumerate(map.maps):
        lines += [f"def part_{number}(prediction):", *(f"    {line}" for line in python_of(part)), ""]
    parts = (f"{weight!r} * part_{number}(prediction)" for number, weight in enumerate(map.weights.tolist()))
    return [*lines, f"return {' + '.join(parts)}"]


def _pieces(map: SplineMap) -> tuple[Floats, Floats]:  # noqa: A002
    """Where each cubic starts, and its coefficients in powers of the distance from there, constant first."""
    cubics = PPoly.from_spline((map.knots, map.coefficients, 3))
    wide = np.diff(cubics.x) > 0
    return cubics.x[:-1][wide], cubics.c[::-1, wide].T


def _cubic(start: float, coefficients: Floats, name: str) -> str:
    a, b, c, d = (literal(value) for value in coefficients)
    past = f"({name} - {literal(start)})"
    return f"{a} + {past} * ({b} + {past} * ({c} + {past} * {d}))"
