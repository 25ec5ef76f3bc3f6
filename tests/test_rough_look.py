"""A look at some rows of a few partitions places brackets; what is found in them is exact."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from orthocal.assessment.records import Settings
from orthocal.effects import CATE
from orthocal.engines.local.table import LocalTable
from orthocal.engines.partitioned import source as sources
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.verdict import judged
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles

ROLES = Roles(
    outcome="y",
    treatment="a",
    prediction="p",
    nuisances={"propensity": 0.5, "outcome_control": "b", "outcome_treated": "b"},
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Nine files of 4,000 rows."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("rough")
    for number in range(9):
        p, a, b = rng.standard_normal(4000), rng.integers(0, 2, 4000), rng.standard_normal(4000)
        pd.DataFrame({"p": p, "a": a, "b": b, "y": b + a * p}).to_parquet(folder / f"{number}.parquet")
    return str(folder / "*.parquet")


def _source(files):
    return prepared(LocalTable.of_files(files), ROLES, CATE(), 5, Recipe(random_state=0))


def test_a_look_at_some_rows_changes_no_bin(files, monkeypatch):
    whole, settings = _source(files), Settings(random_state=0)
    histogram, verdict = fitted("histogram", whole, exact=False), judged(whole, settings, exact=False)
    monkeypatch.setattr(sources, "LOOKED_AT", 100)
    few = _source(files)
    assert few.rough_sketch.counts.rows == 800
    assert few.is_rough
    assert few.about_rows == 36_000
    again, judged_again = fitted("histogram", few, exact=False), judged(few, settings, exact=False)
    np.testing.assert_allclose(again.map_.edges, histogram.map_.edges, rtol=0, atol=0)
    np.testing.assert_allclose(again.map_.values, histogram.map_.values, rtol=1e-12)
    np.testing.assert_allclose(judged_again.bins["residual"], verdict.bins["residual"], rtol=1e-9)
