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
from orthocal.engines.partitioned.cell_finder import CellFinder, sums_in_cells
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.ranges import ranges
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
    cell, values = rng.integers(0, 50, 1000), rng.standard_normal(1000)
    np.testing.assert_array_equal(sums_in_cells(cell, values, 60), np.bincount(cell, values, 60))
    np.testing.assert_array_equal(sums_in_cells(cell, None, 60), np.bincount(cell, minlength=60))
