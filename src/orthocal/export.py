"""Ship a map: as one SQL expression, or as one Python function without dependencies.

A map of a new shape registers its own form with ``sql_of.register`` and ``python_of.register``.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.interpolate import PPoly

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.mapfile import to_json
from orthocal.maps import AffineMap, IdentityMap, MixtureMap, SigmoidMap, SplineMap, StepMap

LARGEST_SCORE = 700.0
"""A sigmoid is flat to the last bit beyond this score, and exp of it is still a double."""


def to_sql(map: Any, column: str = "prediction", quote: str | None = None) -> str:  # noqa: A002
    """Return a map as one SQL expression; DuckDB and SQLite are tested.

    It is made of CASE, arithmetic and (sigmoids only) EXP. Numbers are double literals that lose nothing. Where the prediction
    is NULL, NaN or infinite the expression is NULL.

    Parameters
    ----------
    map : Map, or a fitted calibrator or CausalCalibrator
    column : str, default "prediction"
        Name of the column of predictions.
    quote : str, optional
        The mark around that name: ``"`` in standard SQL, a backtick in BigQuery, MySQL and Spark. Without it a name of letters,
        digits and underscores stands as it is, and any other is put between double quotes.

    Returns
    -------
    str

    Examples
    --------
    >>> from orthocal.maps import StepMap
    >>> print(to_sql(StepMap([0.0, 1.0], [-0.5, 0.25, 2.0]), "tau"))
    CASE WHEN tau BETWEEN (-1.79769313486231571e+308) AND 1.79769313486231571e+308 THEN
    CASE WHEN tau <= 1e+00 THEN CASE WHEN tau <= 0e+00 THEN (-5e-01) ELSE 2.5e-01 END ELSE 2e+00 END
    END
    """
    name = _identifier(column, quote)
    largest = sys.float_info.max
    return (
        f"CASE WHEN {name} BETWEEN {_literal(-largest)} AND {_literal(largest)} THEN\n"
        f"{sql_of(getattr(map, 'map_', map), name)}\nEND"
    )


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
    if not name.isidentifier() or keyword.iskeyword(name):
        raise OrthocalError(f"`name` must be a name a Python function can have; it is {name!r}.")
    lines = [
        f"def {name}(prediction):",
        '    """Return the calibrated prediction of one prediction; None gives None."""',
        "    import math",
        "",
        "    if prediction is None:",
        "        return None",
        "    if not math.isfinite(prediction):",
        '        raise ValueError(f"`prediction` must be finite; it is {prediction}.")',
        *(f"    {line}".rstrip() for line in python_of(getattr(map, "map_", map))),
    ]
    return "\n".join(lines) + "\n"


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
    return f"{_literal(map.intercept)} + {_literal(map.slope)} * {name}"


@python_of.register
def _(map: AffineMap) -> list[str]:  # noqa: A002
    return [f"return {float(map.intercept)!r} + {float(map.slope)!r} * prediction"]


@sql_of.register
def _(map: StepMap, name: str) -> str:  # noqa: A002
    return _search(f"{name} <=", [_literal(edge) for edge in map.edges], [_literal(value) for value in map.values])


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
    score = f"({_literal(map.intercept)} + {_literal(map.slope)} * {name})"
    low, high = _literal(-LARGEST_SCORE), _literal(LARGEST_SCORE)
    minus = f"CASE WHEN {score} < {low} THEN {high} WHEN {score} > {high} THEN {low} ELSE -{score} END"
    return f"{_literal(map.lower)} + {_literal(map.upper - map.lower)} / ({_literal(1.0)} + EXP({minus}))"


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
    inside = _search(f"{name} <", [_literal(start) for start in starts[1:]], cubics)
    return (
        f"CASE WHEN {name} <= {_literal(low)} THEN {_literal(first)}\n"
        f"WHEN {name} >= {_literal(high)} THEN {_literal(last)} ELSE\n{inside}\nEND"
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
    return "\n+ ".join(f"{_literal(weight)} * ({sql_of(part, name)})" for weight, part in parts)


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
    a, b, c, d = (_literal(value) for value in coefficients)
    past = f"({name} - {_literal(start)})"
    return f"{a} + {past} * ({b} + {past} * ({c} + {past} * {d}))"


def _search(comparison: str, edges: Sequence[str], values: Sequence[str]) -> str:
    """Return a binary search among blocks: a plain list of thousands of cases is slow, or too long for a parser."""
    if not edges:
        return values[0]
    middle = len(edges) // 2
    left = _search(comparison, edges[:middle], values[: middle + 1])
    right = _search(comparison, edges[middle + 1 :], values[middle + 1 :])
    return f"CASE WHEN {comparison} {edges[middle]} THEN {left} ELSE {right} END"


def _literal(number: float) -> str:
    """Return a double literal: with an exponent, or it would be a decimal, and with 18 digits.

    17 digits tell doubles apart, but readers that round twice (SQLite before 3.43) need one close to the double itself.
    """
    digits, exponent = f"{number:.17e}".split("e")
    text = f"{digits.rstrip('0').rstrip('.')}e{exponent}"
    return f"({text})" if text.startswith("-") else text


def _identifier(column: str, quote: str | None) -> str:
    """Return the column's name as it stands in SQL; a mark inside it is doubled."""
    if not column or "\0" in column:
        raise OrthocalError(f"`column` must be the name of a column; it is {column!r}.")
    if quote not in {None, '"', "`"}:
        raise OrthocalError(f'`quote` must be " or `; it is {quote!r}.')
    if quote is None and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column):
        return column
    mark = quote or '"'
    return mark + column.replace(mark, 2 * mark) + mark
