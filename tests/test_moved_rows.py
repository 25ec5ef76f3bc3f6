"""Rows that are moved to ranges of the prediction: however they travel and wherever they are kept, nothing else changes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dask import dataframe as dd
from dask import delayed

from orthocal.assessment.records import Settings
from orthocal.effects import CATE
from orthocal.engines.dask import table as dask_table
from orthocal.engines.dask.kept_range import KeptRange
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.local import ranges as local_ranges
from orthocal.engines.local.stored import Kept, Stored
from orthocal.engines.local.table import LocalTable
from orthocal.engines.partitioned.bundles import bundles, joined_frame
from orthocal.engines.partitioned.cell_finder import MOST_JOINED, CellFinder, sums_in_cells
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.ranges import ranges
from orthocal.engines.partitioned.sketch import Sketch
from orthocal.engines.partitioned.verdict import judged
from orthocal.errors import OrthocalError
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles

ROLES = Roles(
    outcome="y",
    treatment="a",
    prediction="p",
    by=("sex",),
    nuisances={"propensity": 0.5, "outcome_control": "b", "outcome_treated": "b"},
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p, a, b = rng.standard_normal(6000).round(2), rng.integers(0, 2, 6000), rng.standard_normal(6000)
    return pd.DataFrame({"p": p, "a": a, "b": b, "y": b + a * p, "sex": rng.choice(["f", "m"], 6000)})


def source_of(table, monkeypatch):
    monkeypatch.setattr("orthocal.engines.partitioned.ranges.ROWS_A_RANGE", 1000)
    return prepared(table, ROLES, CATE(), 5, Recipe(random_state=0))


def found(table, monkeypatch):
    """Return what an exact fit and an exact verdict say of the rows."""
    source = source_of(table, monkeypatch)
    verdict, map_ = judged(source, Settings(random_state=0), exact=True), fitted("isotonic", source, exact=True).map_
    numbers = [verdict.error_squared, verdict.rate.autoc.value, verdict.decomposition.discrimination, *map_.values]
    return np.array([*numbers, *(group.excess for group in verdict.subgroups)]), verdict.overlap.rows


def same(one, other):
    np.testing.assert_allclose(one[0], other[0], rtol=1e-10, atol=1e-12)
    assert one[1] == other[1]


def test_ranges_on_disk_are_as_those_in_memory(rows, tmp_path, monkeypatch):
    for number in range(6):
        rows[number * 1000 : (number + 1) * 1000].to_parquet(tmp_path / f"{number}.parquet")
    table = LocalTable.of_files(str(tmp_path / "*.parquet"))
    in_memory = found(table, monkeypatch)
    assert {type(one) for one in ranges(source_of(table, monkeypatch)).stored} == {Kept}
    monkeypatch.setattr(local_ranges, "KEPT_SHARE", 0)
    assert {type(one) for one in ranges(source_of(table, monkeypatch)).stored} == {Stored}
    same(found(table, monkeypatch), in_memory)


def test_bundles_on_dask_are_as_its_own_shuffle(rows, monkeypatch):
    table = DaskTable(dd.from_pandas(rows, npartitions=6, sort=False))
    bundled = found(table, monkeypatch)
    monkeypatch.setattr(dask_table, "MOST_BUNDLES", 0)
    same(found(table, monkeypatch), bundled)


def test_treatments_of_two_kinds_are_named_as_such(rows, monkeypatch):
    texts = rows[3000:].assign(a=rows.a[3000:].astype(str))
    table = DaskTable(dd.from_delayed([delayed(rows[:3000]), delayed(texts)], meta=rows[:0], verify_meta=False))
    with pytest.raises(OrthocalError, match=r"'a' must hold the same kind of value in every partition"):
        judged(source_of(table, monkeypatch), Settings(random_state=0), exact=True)


def test_a_kept_range_is_sent_whole_and_leaves_no_file():
    values = np.arange(1000.0)
    kept = KeptRange({"values": values})
    path = Path(kept._stored.path)
    again = pickle.loads(pickle.dumps(kept))
    np.testing.assert_array_equal(again.read()["values"], values)
    assert kept.__sizeof__() == values.nbytes
    assert again._stored.path != path
    del kept
    assert not path.exists()


def test_bundles_hold_every_row_once_and_a_column_of_one_number_once():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"prediction": rng.standard_normal(500), "mass": np.ones(500), "by sex": rng.choice(["f", "m"], 500)}
    )
    parts = dict(bundles(table, CellFinder.of(np.array([-9.0, -1.0, 0.0, 1.0]))))
    assert sorted(parts) == [1, 2, 3, 4]
    assert {len(part["mass"]) for part in parts.values()} == {1}
    again = joined_frame([parts[number] for number in sorted(parts)])
    pd.testing.assert_frame_equal(
        again.sort_values("prediction", ignore_index=True), table.sort_values("prediction", ignore_index=True)
    )


def test_sums_in_cells_are_those_of_bincount():
    rng = np.random.default_rng(2)
    cell, values = rng.integers(0, 50, 1000, dtype=np.int32), rng.standard_normal(1000)
    np.testing.assert_array_equal(sums_in_cells(cell, values, 60), np.bincount(cell, values, 60))
    np.testing.assert_array_equal(sums_in_cells(cell, None, 60), np.bincount(cell, minlength=60))


SPREADS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "skewed": lambda rng, n: rng.lognormal(0, 1.5, n),
    "wild": lambda rng, n: rng.standard_cauchy(n),
    "two heaps": lambda rng, n: np.where(rng.random(n) < 0.5, 1e-9 * rng.standard_normal(n), 5 + rng.random(n)),
    "far from 0": lambda rng, n: 1e12 + rng.standard_normal(n),
    "a few units of rounding": lambda rng, n: 1e9 + 1e-7 * rng.integers(0, 3000, n),
    "levels": lambda rng, n: rng.integers(0, 40, n) / 7,
    "tiny": lambda rng, n: 1e-300 * rng.standard_normal(n),
    "huge": lambda rng, n: 1e300 * rng.standard_normal(n),
    "one": lambda rng, n: np.full(n, 2.0),
}


@pytest.mark.parametrize("cells", [2, 20, 3000, 2**16])
@pytest.mark.parametrize("spread", SPREADS)
def test_cells_are_those_of_a_binary_search(spread, cells):
    rng = np.random.default_rng(3)
    seen, prediction = (SPREADS[spread](rng, n) for n in (200_000, 150_000))
    edges = np.unique(np.sort(seen)[:: max(len(seen) // cells, 1)])
    ends = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    prediction = np.concatenate([prediction, ends, [edges[0] - abs(edges[0]), edges[-1] + abs(edges[-1])]])
    np.testing.assert_array_equal(
        CellFinder.of(edges).cells(prediction), np.searchsorted(edges, prediction, side="left")
    )


@pytest.mark.parametrize("cells", [2, 20, 3000, 2**16])
@pytest.mark.parametrize("spread", SPREADS)
def test_cells_near_edges_are_between_those_they_say_and_keep_exact_ones(spread, cells):
    rng = np.random.default_rng(4)
    seen, prediction = (SPREADS[spread](rng, n) for n in (200_000, 150_000))
    edges, exact = np.unique(np.sort(seen)[:: max(len(seen) // cells, 1)]), seen[:3]
    finder = CellFinder.near(edges, exact)
    assert np.isin(exact, finder.edges).all()
    assert (np.diff(finder.edges) > 0).all()
    ends = np.concatenate([finder.edges, *(np.nextafter(finder.edges, end) for end in (-np.inf, np.inf)), edges])
    everything = np.concatenate([prediction, ends])
    np.testing.assert_array_equal(finder.cells(everything), np.searchsorted(finder.edges, everything, side="left"))
    moved = np.searchsorted(finder.edges, edges)  # no edge goes far: few of them meet in one
    assert np.bincount(moved).max() <= MOST_JOINED + 1


def test_a_sketch_of_levels_keeps_them_as_edges_and_one_of_many_numbers_moves_its_own():
    rng = np.random.default_rng(5)
    levels, numbers = (
        Sketch.of(rng.integers(0, 50, 10_000) / 7, None, 2**12),
        Sketch.of(rng.random(10_000), None, 2**12),
    )
    np.testing.assert_array_equal(levels.finder(100).edges, levels.grid(100))
    finder = numbers.finder(100, np.array([0.5]))
    assert 0.5 in finder.edges
    assert np.isin(numbers.grid(100), finder.edges).sum() <= 2  # those at the ends of the buckets
    assert np.all(np.diff(np.searchsorted(numbers.level, finder.edges)) <= 2 * 2**12 / 100)


def test_a_row_each_stays_exact_and_a_prediction_of_many_rows_has_its_own_cell():
    rng = np.random.default_rng(6)
    few, many = rng.random(500), np.clip(rng.standard_normal(100_000), -1, 1)
    assert np.bincount(Sketch.of(few, None, 2**12).finder(500).cells(few)).max() == 1
    finder = Sketch.of(many, None, 2**12).finder(500)
    for clipped in (-1.0, 1.0):
        assert set(many[finder.cells(many) == finder.cells(np.array([clipped]))]) == {clipped}
