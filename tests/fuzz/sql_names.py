"""SQL of every dialect: hostile names and texts are read as they were meant, and DuckDB and SQLite compute the map."""

import sqlite3
import warnings

import duckdb
import numpy as np
import sqlglot
from sqlglot import exp

import orthocal
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.maps import AffineMap, SigmoidMap, StepMap
from orthocal.sql_text import DIALECTS, RESERVED
from tests.fuzz.hostile import NAMES
from tests.fuzz.judgement import judged

NAME = "sql names"
MAPS = [AffineMap(1.0, -2.0), StepMap([0.0, 1.0], [1.0, 2.0, 3.0]), SigmoidMap(-1.0, 2.0, 0.1, 1.7)]
LETTERS = [*"aZ_09 \"'`\\\n\t;-{}%$é🦉\u202e[]()/*#@:?,.\r\x1b", "--", "/*", "''", '""', "\0", "\ud800"]
POINTS = [-3.0, 0.0, 0.5, 1.0, 1e6]


def mutations(rng):
    """Return a dialect, a map, and pieces of a name and of a group's."""
    found = [("dialect", str(rng.choice(list(DIALECTS)))), ("map", int(rng.integers(len(MAPS))))]
    if rng.random() < 0.3:
        found.append(
            ("word", str(rng.choice([*NAMES, *sorted(RESERVED), *(word.lower() for word in sorted(RESERVED))])))
        )
    letters = range(rng.integers(0, 6))
    return found + [(str(rng.choice(["letter", "group"])), int(rng.integers(len(LETTERS))), 0) for _ in letters]


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    words = {"dialect": "duckdb", "map": 0, "word": "", **dict(one for one in mutations if len(one) == 2)}
    name = words["word"] + "".join(LETTERS[one[1]] for one in mutations if one[0] == "letter")
    group = "".join(LETTERS[one[1]] for one in mutations if one[0] == "group")
    return judged(lambda: written(MAPS[words["map"]], name or "tau", group, words["dialect"]))


def written(fitted, name, group, dialect):
    """Write SQL, and see that it is read as it was meant."""
    text = orthocal.to_sql(fitted, name, dialect=dialect)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = sqlglot.parse_one(f"SELECT {text} AS calibrated", read=dialect)
    assert {column.name for column in tree.find_all(exp.Column)} == {name}, text
    if dialect in RUN:
        expected = fitted.predict(POINTS)
        quoted = '"' + name.replace('"', '""') + '"'
        np.testing.assert_allclose(RUN[dialect](text, quoted), expected, rtol=1e-12)
    if group:
        shifts = GroupShifts(name, (group,), [], [[1.0], [2.0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = sqlglot.parse_one(
                f"SELECT {orthocal.to_sql(GroupMap((shifts,)), 'tau_1', dialect=dialect)}", read=dialect
            )
        assert {one.this for one in parsed.find_all(exp.Literal) if one.is_string} == {group}


def _in_duckdb(text, quoted):
    values = ", ".join(f"({k}, CAST({value} AS DOUBLE))" for k, value in enumerate(POINTS))
    query = f"SELECT {text} FROM (VALUES {values}) AS t(position_, {quoted}) ORDER BY position_"
    return [row[0] for row in duckdb.execute(query).fetchall()]


def _in_sqlite(text, quoted):
    import math

    connection = sqlite3.connect(":memory:")
    connection.create_function("EXP", 1, math.exp)
    connection.execute(f"CREATE TABLE t (position_ INTEGER, {quoted} DOUBLE PRECISION)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", enumerate(POINTS))
    found = [row[0] for row in connection.execute(f"SELECT {text} FROM t ORDER BY position_")]
    connection.close()
    return found


RUN = {"duckdb": _in_duckdb, "sqlite": _in_sqlite}
