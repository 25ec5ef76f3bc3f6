"""SQL of every dialect is read by a parser of that dialect as what was meant: names, texts and numbers."""

import sqlite3

import duckdb
import pytest
import sqlglot
from sqlglot import exp

import orthocal
from orthocal import OrthocalError
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.joint_maps import JointMap
from orthocal.maps import AffineMap, MixtureMap, SigmoidMap, StepMap
from orthocal.sql_text import DIALECTS, RESERVED

NAMES = [
    "tau",
    "order",
    "null",
    "group",
    "Tau",
    "a b",
    'a"b',
    "a`b",
    "a\\b",
    "a'b",
    "7up",
    "é",
    "a\nb",
    "x--y",
    "{}",
    "%s",
]
MAPS = [AffineMap(1.0, -2.0), StepMap([0.0], [1.0, 2.0]), SigmoidMap(0.0, 1.0, 0.0, 1.0)]


def columns_of(text, dialect):
    """Return the names of columns in an expression, as a parser of the dialect reads them."""
    tree = sqlglot.parse_one(f"SELECT {text} AS calibrated", read=dialect)
    return {column.name for column in tree.find_all(exp.Column)}, tree


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_names_are_read_as_they_were_meant(dialect, name):
    for fitted in MAPS:
        found, _ = columns_of(orthocal.to_sql(fitted, name, dialect=dialect), dialect)
        assert found == {name}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_texts_are_read_as_they_were_meant(dialect):
    values = tuple(sorted(["it's", "back\\slash", 'double"quote', "two\nlines", "é", "'; --"]))
    shifts = GroupShifts("group", values, [], [[float(k)] for k in range(len(values) + 1)])
    text = orthocal.to_sql(GroupMap((shifts,)), "tau", dialect=dialect)
    found, tree = columns_of(text, dialect)
    assert {literal.this for literal in tree.find_all(exp.Literal) if literal.is_string} == set(values)
    assert {"group", "tau"} <= found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_joint_map_parses(dialect):
    text = orthocal.to_sql(JointMap([0.0, 1.0], [[1.0, 0.0], [0.5, 0.5]]), ["order", "tau b"], dialect=dialect)
    tree = sqlglot.parse_one(f"SELECT {text}", read=dialect)
    assert [one.alias for one in tree.expressions] == ["order_calibrated", "tau b_calibrated"]


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_quoted_and_run(word):
    text = orthocal.to_sql(AffineMap(1.0, -2.0), word.lower())
    assert f'"{word.lower()}"' in text
    table = f'SELECT {text} FROM (SELECT CAST(3 AS DOUBLE) AS "{word.lower()}")'
    assert duckdb.sql(table).fetchall() == [(-5.0,)]


@pytest.mark.parametrize("name", NAMES)
def test_databases_find_the_column(name):
    for dialect, connect in (("duckdb", duckdb.connect), ("sqlite", sqlite3.connect)):
        quoted = '"' + name.replace('"', '""') + '"'
        query = (
            f"SELECT {orthocal.to_sql(AffineMap(1.0, -2.0), name, dialect=dialect)} FROM (SELECT 3.0 AS {quoted}) AS t"
        )
        connection = connect(":memory:")
        assert connection.execute(query).fetchall() == [(-5.0,)]
        connection.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dialect": "oracle"}, "`dialect` must be one of 'duckdb', 'postgres'"),
        ({"dialect": 3}, "`dialect` must be one of"),
        ({"column": None}, "`column` must be the name of a column; it is None"),
        ({"column": "a\0b"}, "`column` must be the name of a column"),
        ({"column": "a\ud800b"}, "`column` must be the name of a column"),
        ({"quote": "'"}, "`quote` must be"),
    ],
)
def test_what_cannot_be_written_is_refused(given, message):
    with pytest.raises(OrthocalError, match=message):
        orthocal.to_sql(AffineMap(1.0, 2.0), **given)


def test_doubles_of_postgres_are_doubles():
    text = orthocal.to_sql(StepMap([0.0], [1.0, 2.0]), "tau", dialect="postgres")
    assert text.startswith("CAST(CASE")
    assert text.endswith("AS DOUBLE PRECISION)")


def test_huge_numbers_are_no_map():
    with pytest.raises(OrthocalError, match="must be finite"):
        StepMap([0.0], [-1e308, 1e308])
    with pytest.raises(OrthocalError, match="`lower` must be a finite number"):
        SigmoidMap(-1e308, 1e308, 0.0, 1.0)
    assert orthocal.to_sql(MixtureMap([0.5, 0.5], [StepMap([0.0], [-1e50, 1e50]), AffineMap(1e50, -1e50)]))


@pytest.mark.parametrize("name", ["float", "print", "None", "a b", "", 3])
def test_a_function_has_a_name_of_its_own(name):
    with pytest.raises(OrthocalError, match="`name` must be a valid name for a Python function"):
        orthocal.to_python(AffineMap(1.0, 2.0), name)
