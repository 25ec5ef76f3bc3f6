"""A map that was shipped predicts what the map predicts: in two databases, and in plain Python."""

import math
import sqlite3
from dataclasses import dataclass

import duckdb
import numpy as np
import pytest

import orthocal
from orthocal import OrthocalError
from orthocal.export import EXPORTS
from orthocal.mapfile import to_json
from orthocal.maps import MAPS, AffineMap, IdentityMap, MixtureMap, SigmoidMap, SplineMap, StepMap

RNG = np.random.default_rng(5)
EDGES = np.sort(RNG.standard_normal(4999)) * 3
KNOTS = np.array([-2.0] * 4 + [-0.7, 0.1, 0.1, 1 / 3] + [2.5] * 4)
EXAMPLES = {
    "identity": IdentityMap(),
    "affine": AffineMap(-0.1, 1 / 3),
    "flat": AffineMap(2, 0),
    "step": StepMap(EDGES, RNG.standard_normal(5000)),
    "one step": StepMap([], [0.1]),
    "two steps": StepMap([-0.0], [-1e-300, 1e50]),
    "sigmoid": SigmoidMap(-1.5, 2.25, 0.1, 1.7),
    "steep sigmoid": SigmoidMap(0.0, 1e-3, -5.0, -1e6),
    "spline": SplineMap(KNOTS, [-1.0, -0.8, 0.1, 0.3, 0.3, 1.1, 4.0, 3.0]),
    "jump": SplineMap([0.0] * 4 + [1.0] * 4 + [2.0] * 4, [0.0, 1, 2, 3, 10, 11, 12, 13]),
    "mixture": MixtureMap(
        [0.2, 0.5, 0.3],
        (
            AffineMap(-0.1, 1 / 3),
            SplineMap(KNOTS, [-1.0, -0.8, 0.1, 0.3, 0.3, 1.1, 4.0, 3.0]),
            StepMap([0.0, 1.0], [0.1, 2, 3]),
        ),
    ),
    "mixture with a sigmoid": MixtureMap([0.25, 0.75], (SigmoidMap(-1.5, 2.25, 0.1, 1.7), StepMap([], [0.1]))),
    "far spline": SplineMap([1e6] * 4 + [1e6 + 1e-3] + [1e6 + 2] * 4, [0.0, 1, 2, 3, 5]),
}
SIZE = 10_000


def predictions(map_):
    """10,000 predictions: every knot, its two neighbours among doubles, values beyond the ends, and others."""
    knots = np.array(getattr(map_, "edges", getattr(map_, "knots", [0.0, 1.0])))[:3000]
    low, high = (knots.min(), knots.max()) if len(knots) else (-1.0, 1.0)
    special = [*knots, *np.nextafter(knots, -np.inf), *np.nextafter(knots, np.inf), 0.0, -0.0]
    special += [low - 1e9, high + 1e9, low - 1, high + 1, 1e-308, 700.0, -700.0]
    return np.array([*special, *RNG.uniform(low - 1, high + 1, SIZE - len(special))])


def in_sqlite(expression, values, column):
    with sqlite3.connect(":memory:") as connection:
        connection.create_function("EXP", 1, math.exp)  # left out of some builds
        connection.execute(f"CREATE TABLE t (i INTEGER, {column} DOUBLE PRECISION)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", enumerate(values))
        return [row[0] for row in connection.execute(f"SELECT {expression} FROM t ORDER BY i")]


def in_duckdb(expression, values, column):
    import pyarrow as pa

    with duckdb.connect() as connection:
        connection.register("arrow", pa.table({"i": range(len(values)), "x": pa.array(values, pa.float64())}))
        connection.execute(f"CREATE TABLE t AS SELECT i, x AS {column} FROM arrow")
        return [row[0] for row in connection.execute(f"SELECT {expression} FROM t ORDER BY i").fetchall()]


DATABASES = pytest.mark.parametrize("run", [in_sqlite, in_duckdb])
MAPS_HERE = pytest.mark.parametrize("map_", EXAMPLES.values(), ids=EXAMPLES)


def test_every_shape_has_an_example():
    assert {type(map_) for map_ in EXAMPLES.values()} == set(MAPS.values())


@DATABASES
@MAPS_HERE
def test_sql_predicts_what_the_map_predicts(map_, run):
    values = predictions(map_)
    assert len(values) == SIZE
    got = run(orthocal.to_sql(map_, "my prediction"), values.tolist(), '"my prediction"')
    np.testing.assert_allclose(np.array(got), map_.predict(values), rtol=1e-9, atol=1e-9)


@MAPS_HERE
def test_python_predicts_what_the_map_predicts(map_):
    values, names = predictions(map_), {}
    exec(orthocal.to_python(map_, "ours"), names)
    got = [names["ours"](value) for value in values.tolist()]
    np.testing.assert_allclose(np.array(got), map_.predict(values), rtol=1e-9, atol=1e-9)
    assert type(names["ours"](1)) is float
    assert names["ours"](None) is None
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="`prediction` must be finite"):
            names["ours"](value)


@DATABASES
@MAPS_HERE
def test_in_sql_what_is_no_finite_number_stays_unknown(map_, run):
    expression = orthocal.to_sql(map_, "p")
    assert run(expression, [None, math.nan, math.inf, -math.inf], "p") == [None] * 4


def test_a_plain_name_stands_as_it_is_unless_a_mark_is_asked_for():
    """Marks differ between databases, and a wrong one can turn the column into a text without a word."""
    for quote, name in {None: "tau", '"': '"tau"', "`": "`tau`"}.items():
        assert name in orthocal.to_sql(AffineMap(1.0, -2.0), "tau", quote).split()
    assert "`a``b`" in orthocal.to_sql(AffineMap(1.0, -2.0), "a`b", "`")
    with pytest.raises(OrthocalError, match="`quote` must be"):
        orthocal.to_sql(AffineMap(1.0, -2.0), "tau", "'")


@DATABASES
def test_any_column_name_is_quoted(run):
    odd = 'a "b"; DROP TABLE t; --'
    quoted = '"' + odd.replace('"', '""') + '"'
    assert run(orthocal.to_sql(AffineMap(1.0, -2.0), odd), [3.0], quoted) == [-5.0]


@DATABASES
def test_steps_are_taken_at_the_very_double(run):
    """Predictions the map was fitted on lie on its edges, so an edge that moves by one bit misplaces them."""
    edges = np.unique(np.concatenate([EDGES, RNG.random(2000), np.round(RNG.random(2000), 3)]))
    map_ = StepMap(edges, np.arange(len(edges) + 1.0))
    got = run(orthocal.to_sql(map_, "p"), edges.tolist(), "p")
    np.testing.assert_array_equal(got, np.arange(len(edges)))


def test_literals_are_doubles_not_decimals():
    kinds = duckdb.sql(f"SELECT typeof({orthocal.to_sql(StepMap([0.1], [1, 2.5]))}) FROM (SELECT 1 AS prediction)")
    assert kinds.fetchall() == [("DOUBLE",)]


def test_the_search_is_as_deep_as_the_logarithm_of_the_steps():
    text, depth, deepest = orthocal.to_sql(EXAMPLES["step"]), 0, 0
    for word in text.split():
        depth += (word == "CASE") - (word == "END")
        deepest = max(deepest, depth)
    assert depth == 0
    assert deepest == 1 + math.ceil(math.log2(5000))


def test_a_fitted_calibrator_is_shipped_by_its_map(scored):
    calibrator = orthocal.Isotonic().fit(*scored)
    for export in EXPORTS.values():
        assert export(calibrator) == export(calibrator.map_)
    assert EXPORTS["json"] is to_json


@dataclass(frozen=True)
class Wave:
    """A shape that nobody registered."""


def test_what_cannot_be_shipped_gets_one_sentence():
    with pytest.raises(OrthocalError, match="`map` must have a form in SQL; a Wave has none"):
        orthocal.to_sql(Wave())
    with pytest.raises(OrthocalError, match="`map` must have a form in Python; a Wave has none"):
        orthocal.to_python(Wave())
    for column in ("", "a\0b"):
        with pytest.raises(OrthocalError, match="`column` must be the name of a column"):
            orthocal.to_sql(IdentityMap(), column)
    for name in ("not a name", "class", "f(); x"):
        with pytest.raises(OrthocalError, match="`name` must be a valid name for a Python function"):
            orthocal.to_python(IdentityMap(), name)


def test_a_repeated_knot_makes_no_piece_of_its_own():
    assert "starts = (-2.0, -0.7, 0.1, 0.3333333333333333)\n" in orthocal.to_python(EXAMPLES["spline"])
