"""Hostile values by name, each made anew from a seed, so that a case is a few plain words."""

import datetime as dt
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

N = 40
"""Rows of every case: small, so that a case takes milliseconds."""


def _at(values, rng, bad):
    values = np.array(values, dtype=float)
    values[rng.integers(len(values))] = bad
    return values


def _objects(values, rng, bad):
    values = np.array([*np.asarray(values).tolist(), None], dtype=object)[:-1]
    values[rng.integers(len(values))] = bad
    return values


COLUMNS = {
    "as it is": lambda v, rng: v,
    "None": lambda v, rng: None,
    "a number": lambda v, rng: 3.0,
    "text": lambda v, rng: "y",
    "empty": lambda v, rng: [],
    "short": lambda v, rng: v[:-1],
    "long": lambda v, rng: np.append(v, v[:1]),
    "one": lambda v, rng: v[:1],
    "NaN": lambda v, rng: _at(v, rng, np.nan),
    "infinite": lambda v, rng: _at(v, rng, -np.inf),
    "1e49": lambda v, rng: _at(v, rng, 1e49),
    "all 1e49": lambda v, rng: np.asarray(v, dtype=float) * 1e49,
    "1e155": lambda v, rng: np.asarray(v, dtype=float) * 1e155,
    "1e307": lambda v, rng: _at(v, rng, 1e307),
    "1e-30": lambda v, rng: np.asarray(v, dtype=float) * 1e-30,
    "1e-320": lambda v, rng: np.asarray(v, dtype=float) * 1e-320,
    "zeros": lambda v, rng: np.zeros(len(v)),
    "ones": lambda v, rng: np.ones(len(v)),
    "negative": lambda v, rng: -np.abs(np.asarray(v, dtype=float)) - 1,
    "minus zero": lambda v, rng: np.full(len(v), -0.0),
    "far from 0": lambda v, rng: np.asarray(v, dtype=float) + 1e12,
    "whole": lambda v, rng: rng.integers(-3, 4, len(v)),
    "bits": lambda v, rng: rng.integers(0, 2, len(v)),
    "truth values": lambda v, rng: rng.integers(0, 2, len(v)).astype(bool),
    "bytes of 8": lambda v, rng: rng.integers(0, 200, len(v)).astype(np.uint8),
    "largest whole": lambda v, rng: np.full(len(v), 2**63 - 1),
    "half": lambda v, rng: np.asarray(v).astype(np.float16),
    "long double": lambda v, rng: np.asarray(v).astype(np.longdouble),
    "words": lambda v, rng: np.array(["a", "b", "ü"])[rng.integers(0, 3, len(v))],
    "numbers as text": lambda v, rng: [str(one) for one in np.asarray(v).tolist()],
    "mixed": lambda v, rng: _objects(v, rng, "x"),
    "an object": lambda v, rng: _objects(v, rng, object()),
    "objects": lambda v, rng: [object()] * len(v),
    "lists": lambda v, rng: [[1.0], [1.0, 2.0]] * (len(v) // 2),
    "huge whole": lambda v, rng: _objects(v, rng, 10**400),
    "decimals": lambda v, rng: [decimal.Decimal(str(float(one))) for one in np.asarray(v).tolist()],
    "a decimal NaN": lambda v, rng: _objects(v, rng, decimal.Decimal("NaN")),
    "a fraction": lambda v, rng: _objects(v, rng, fractions.Fraction(1, 3)),
    "dates": lambda v, rng: pd.date_range("2020", periods=len(v)).to_numpy(),
    "date objects": lambda v, rng: [dt.date(2020, 1, 1)] * len(v),
    "complex": lambda v, rng: np.asarray(v).astype(complex),
    "wide": lambda v, rng: np.column_stack([v, v]),
    "upright": lambda v, rng: np.asarray(v)[:, None],
    "deep": lambda v, rng: np.asarray(v)[:, None, None],
    "masked": lambda v, rng: np.ma.masked_array(v, rng.random(len(v)) < 0.1),
    "every second": lambda v, rng: np.repeat(np.asarray(v), 2)[::2],
    "read-only": lambda v, rng: _read_only(v),
    "list": lambda v, rng: np.asarray(v).tolist(),
    "tuple": lambda v, rng: tuple(np.asarray(v).tolist()),
    "generator": lambda v, rng: iter(np.asarray(v).tolist()),
    "dict": lambda v, rng: {"a": 1},
    "set": lambda v, rng: {1.0, 2.0},
    "pandas": lambda v, rng: pd.Series(v),
    "pandas in another order": lambda v, rng: pd.Series(v, index=rng.permutation(len(v))),
    "pandas category": lambda v, rng: pd.Series(rng.integers(0, 2, len(v))).astype("category"),
    "pandas NA": lambda v, rng: pd.Series(v, dtype="Float64").mask(rng.random(len(v)) < 0.1),
    "pandas text": lambda v, rng: pd.Series(["a", None] * (len(v) // 2), dtype="string"),
    "pandas frame": lambda v, rng: pd.DataFrame({"v": v, "w": v}),
    "polars": lambda v, rng: pl.Series("v", v),
    "polars wide": lambda v, rng: pl.Series("v", rng.integers(0, 2, len(v)).tolist(), dtype=pl.Int128),
    "polars null": lambda v, rng: pl.Series("v", [None] * len(v)),
    "polars lists": lambda v, rng: pl.Series("v", [[1.0]] * len(v)),
    "arrow": lambda v, rng: pa.chunked_array([pa.array(np.asarray(v))]),
    "arrow null": lambda v, rng: pa.chunked_array([pa.nulls(len(v))]),
    "arrow decimals": lambda v, rng: pa.chunked_array([pa.array([decimal.Decimal("1.5")] * len(v))]),
    "zero-dimensional": lambda v, rng: np.array(3.0),
    "structured": lambda v, rng: np.zeros(len(v), dtype=[("event", "?"), ("time", "f8")]),
}
"""Of one value per row: made of the column as it is, and chance."""


def _read_only(values):
    values = np.array(values)
    values.flags.writeable = False
    return values


MATRICES = {
    "as it is": lambda X, rng: X,
    "None": lambda X, rng: None,
    "text": lambda X, rng: "X",
    "flat": lambda X, rng: X[:, 0],
    "flat list": lambda X, rng: X[:, 0].tolist(),
    "Series": lambda X, rng: pd.Series(X[:, 0]),
    "words": lambda X, rng: ["a"] * len(X),
    "lists": lambda X, rng: X.tolist(),
    "ragged": lambda X, rng: [[1.0], [1.0, 2.0]] * (len(X) // 2),
    "short": lambda X, rng: X[:-1],
    "no rows": lambda X, rng: X[:0],
    "no columns": lambda X, rng: X[:, :0],
    "deep": lambda X, rng: X[:, :, None],
    "NaN": lambda X, rng: np.where(rng.random(X.shape) < 0.3, np.nan, X),
    "all NaN": lambda X, rng: np.full(X.shape, np.nan),
    "infinite": lambda X, rng: np.where(rng.random(X.shape) < 0.3, np.inf, X),
    "1e49": lambda X, rng: X * 1e49,
    "1e300": lambda X, rng: X * 1e300,
    "1e-300": lambda X, rng: X * 1e-300,
    "constant": lambda X, rng: np.ones(X.shape),
    "whole": lambda X, rng: rng.integers(0, 3, X.shape),
    "complex": lambda X, rng: X.astype(complex),
    "huge whole": lambda X, rng: [[10**400]] * len(X),
    "objects": lambda X, rng: np.array([[object()]] * len(X)),
    "text matrix": lambda X, rng: np.array([["a", "b"]] * len(X)),
    "frame": lambda X, rng: pd.DataFrame(X, columns=["u", "v"]),
    "frame of names that are alike": lambda X, rng: pd.DataFrame(X, columns=["u", "u"]),
    "frame of numbers": lambda X, rng: pd.DataFrame(X),
    "frame in another order": lambda X, rng: pd.DataFrame(X, index=rng.permutation(len(X))),
    "frame of text": lambda X, rng: pd.DataFrame({"u": ["a", None] * (len(X) // 2)}),
    "frame of many levels": lambda X, rng: pd.DataFrame({"u": [f"l{k}" for k in range(len(X))], "v": X[:, 0]}),
    "frame of dates": lambda X, rng: pd.DataFrame({"u": pd.date_range("2020", periods=len(X))}),
    "frame of categories": lambda X, rng: pd.DataFrame({"u": pd.Categorical(rng.integers(0, 3, len(X)))}),
    "polars": lambda X, rng: pl.DataFrame(X),
    "polars lazy": lambda X, rng: pl.DataFrame(X).lazy(),
    "polars wide": lambda X, rng: pl.DataFrame({"u": pl.Series(range(len(X)), dtype=pl.Int128)}),
    "arrow": lambda X, rng: pa.table({"u": X[:, 0], "v": X[:, 1]}),
    "sparse": lambda X, rng: sparse.csr_matrix(X),
    "masked": lambda X, rng: np.ma.masked_array(X, rng.random(X.shape) < 0.1),
    "Fortran": lambda X, rng: np.asfortranarray(X),
    "generator": lambda X, rng: iter(X.tolist()),
    "dict": lambda X, rng: {"u": X[:, 0]},
    "list of dicts": lambda X, rng: [{"u": 1.0}] * len(X),
    "set": lambda X, rng: {1, 2},
    "number": lambda X, rng: 3,
}
SETTINGS = {
    "None": lambda rng: None,
    "NaN": lambda rng: float("nan"),
    "infinite": lambda rng: float("inf"),
    "-1": lambda rng: -1,
    "0": lambda rng: 0,
    "1": lambda rng: 1,
    "2": lambda rng: 2,
    "3": lambda rng: 3,
    "2.5": lambda rng: 2.5,
    "0.2": lambda rng: 0.2,
    "-0.0": lambda rng: -0.0,
    "1e-300": lambda rng: 1e-300,
    "1e60": lambda rng: 1e60,
    "10**10": lambda rng: 10**10,
    "10**400": lambda rng: 10**400,
    "10**5000": lambda rng: 10**5000,
    "text": lambda rng: "a",
    "nothing": lambda rng: "",
    "number as text": lambda rng: "0.5",
    "surrogate": lambda rng: "\ud800",
    "long text": lambda rng: "x" * 5000,
    "bytes": lambda rng: b"a",
    "list": lambda rng: [],
    "list of one": lambda rng: [1],
    "tuple": lambda rng: (1, 2),
    "dict": lambda rng: {},
    "dict of one": lambda rng: {"a": 1},
    "dict of 0": lambda rng: {0: np.arange(float(N))},
    "array": lambda rng: np.array([1.0, 2.0]),
    "column": lambda rng: rng.standard_normal(N),
    "bits": lambda rng: rng.integers(0, 2, N),
    "zero-dimensional": lambda rng: np.array(0.5),
    "True": lambda rng: True,
    "float32": lambda rng: np.float32(0.5),
    "int8": lambda rng: np.int8(3),
    "complex": lambda rng: 1j,
    "decimal": lambda rng: decimal.Decimal("0.5"),
    "fraction": lambda rng: fractions.Fraction(1, 2),
    "object": lambda rng: object(),
    "class": lambda rng: int,
    "frame": lambda rng: pd.DataFrame({"a": [1.0]}),
    "Series": lambda rng: pd.Series([1.0, 2.0]),
    "date": lambda rng: dt.date(2020, 1, 1),
    "slice": lambda rng: slice(1),
    "generator": lambda rng: iter([1]),
    "NaT": lambda rng: pd.NaT,
    "NA": lambda rng: pd.NA,
}
NAMES = [
    "order",
    "null",
    "select",
    "a b",
    'a"b',
    "a`b",
    "a'b",
    "a\\b",
    "a\nb",
    "a\tb",
    "",
    " ",
    "7up",
    "é",
    "🦉",
    "-",
    "--out",
    "%s",
    "{}",
    "$x$",
    "<script>alert(1)</script>",
    "a,b",
    "a;b",
    "NaN",
    "x" * 300,
    "prediction",
    "v",
    "r0",
    "g0",
    "TAU",
    "tau_calibrated",
    "../x",
    "a\u202eb",
    "\ufeffa",
    "COM1",
    "a/b",
    "'; DROP TABLE t; --",
    "[x]",
    "*",
    "?",
]


def chosen(table, rng):
    """Return the name of one of a table's values."""
    return str(rng.choice(list(table)))
