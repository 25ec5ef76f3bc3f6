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
from orthocal.engines.partitioned.grid_verdict import Grid, VerdictSums
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.sketch import Sketch
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
    monkeypatch.setattr(sources, "LOOKED_AT", 300)
    few = _source(files)
    assert few.rough_sketch.counts.rows == 2280
    assert few.is_rough
    assert few.about_rows == 36_000
    again, judged_again = fitted("histogram", few, exact=False), judged(few, settings, exact=False)
    np.testing.assert_allclose(again.map_.edges, histogram.map_.edges, rtol=0, atol=0)
    np.testing.assert_allclose(again.map_.values, histogram.map_.values, rtol=1e-12)
    np.testing.assert_allclose(judged_again.bins["residual"], verdict.bins["residual"], rtol=1e-9)


def _judged_both_ways(folder, predictions, **settings):
    """The verdict from cells and the exact one, on files with these predictions."""
    rng = np.random.default_rng(1)
    for number, p in enumerate(predictions):
        a, b = np.arange(len(p)) % 2, rng.standard_normal(len(p))
        pd.DataFrame({"p": p, "a": (a + number) % 2, "b": b, "y": b + a * p}).to_parquet(
            folder / f"{number:02}.parquet"
        )
    source = _source(str(folder / "*.parquet"))
    chosen = Settings(random_state=0, **settings)
    return judged(source, chosen, exact=False), judged(source, chosen, exact=True)


def _assert_same(grid, exact, rel=1e-9):
    for name in ("n", "upper", "residual", "standard_error"):
        np.testing.assert_allclose(grid.bins[name], exact.bins[name], rtol=rel, atol=1e-12)
    assert grid.error_squared == pytest.approx(exact.error_squared, rel=rel)


def _ignore_one_row_files():
    return pytest.mark.filterwarnings("ignore:.*has one treatment value only")


@_ignore_one_row_files()
def test_a_grid_of_a_few_rows_is_drawn_again(tmp_path):
    """The eight files that are looked at have a row each, those between them 3,000."""
    rng = np.random.default_rng(0)
    grid, exact = _judged_both_ways(tmp_path, [rng.standard_normal(1 if k % 2 == 0 else 3000) for k in range(15)])
    _assert_same(grid, exact)
    assert grid.rate.autoc.value == pytest.approx(exact.rate.autoc.value, abs=0.05 * exact.rate.autoc.standard_error)


def test_few_predictions_of_a_bracket_are_not_taken_for_all_of_them(tmp_path, monkeypatch):
    """A sketch that keeps one of 78 predictions has few in each bracket, and the edge of a bin may be any other."""
    monkeypatch.setattr(sources, "ROUGH_KEPT", 256)
    _assert_same(*_judged_both_ways(tmp_path, [np.random.default_rng(0).standard_normal(20_000)]))


@pytest.mark.parametrize("cost", [-1e40, -0.5, 0.1, 1e40])
def test_a_cost_beyond_all_predictions_is_no_prediction(tmp_path, cost):
    rng = np.random.default_rng(0)
    grid, exact = _judged_both_ways(tmp_path, [0.3 + 1e-12 * rng.standard_normal(400)], cost=cost)
    assert grid.ranking is exact.ranking is None
    _assert_same(grid, exact)


@_ignore_one_row_files()
@pytest.mark.parametrize(("rows", "bins"), [(21, 5), (21, 25), (40, 41)])
def test_fewer_rows_than_bins(tmp_path, rows, bins):
    """Every row has a cell: ranks and their errors are those of rows, too."""
    parts = np.array_split(np.random.default_rng(0).standard_normal(rows), 10)
    grid, exact = _judged_both_ways(tmp_path, parts, bins=bins)
    _assert_same(grid, exact)
    assert grid.rate.autoc.standard_error == pytest.approx(exact.rate.autoc.standard_error, rel=1e-9)


def test_rows_of_one_prediction_at_the_edge_of_a_bin_are_not_kept(tmp_path, monkeypatch):
    """Half of the rows have the prediction 0, at the second edge of four bins."""
    rng, kept, settled = np.random.default_rng(0), [], VerdictSums.settled
    monkeypatch.setattr(
        VerdictSums, "settled", lambda sums, *more: (kept.append(sums.inside.count), settled(sums, *more))[1]
    )
    parts = [np.where(rng.random(4000) < 0.5, 0.0, rng.standard_normal(4000)) for _ in range(4)]
    grid, exact = _judged_both_ways(tmp_path, parts, bins=4)
    _assert_same(grid, exact)
    assert max(kept) < 1000


FAR = {
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: np.exp(1.5 * rng.standard_normal(n)),
    "two crowds": lambda rng, n: rng.standard_normal(n) + 100 * rng.integers(0, 2, n),
}


def _judged_far(folder, predictions):
    """The verdict from cells and the exact one, with effects of at most 5."""
    rng = np.random.default_rng(2)
    for number, p in enumerate(predictions):
        a, b, noise = rng.integers(0, 2, len(p)), rng.standard_normal(len(p)), rng.standard_normal(len(p))
        y = b + noise + a * np.clip(p, -5, 5)
        pd.DataFrame({"p": p, "a": a, "b": b, "y": y}).to_parquet(folder / f"{number:02}.parquet")
    source, settings = _source(str(folder / "*.parquet")), Settings(random_state=0)
    return judged(source, settings, exact=False), judged(source, settings, exact=True)


def _assert_the_same_ranking(grid, exact):
    for one, other in ((grid.rate.autoc, exact.rate.autoc), (grid.rate.qini, exact.rate.qini)):
        assert one.standard_error == pytest.approx(other.standard_error, rel=0.01)
        assert one.value == pytest.approx(other.value, abs=0.01 * other.standard_error)


@pytest.mark.parametrize("name", FAR)
def test_predictions_far_away_leave_the_ranking_and_the_range_as_they_are(tmp_path, name):
    """Rows of the widest cells are kept: in one cell the spread of predictions would pass for noise of the effects."""
    rng = np.random.default_rng(0)
    grid, exact = _judged_far(tmp_path, [FAR[name](rng, 25_000) for _ in range(9)])
    _assert_same(grid, exact)
    _assert_the_same_ranking(grid, exact)
    missed, all_rows = float(grid.tests["range"].note.rsplit(" ", 1)[1]), exact.tests["range"].statistic
    # The noise that a walk is divided by is that of cells, too: a quarter of a percent at most.
    assert grid.tests["range"].statistic == pytest.approx(all_rows, abs=missed + 0.0025 * all_rows)


@_ignore_one_row_files()
def test_far_rows_beyond_counting_are_not_kept(tmp_path, monkeypatch):
    """Files sorted by prediction: between those that are looked at cells are wide, and hold most of the rows."""
    kept, merge = [], VerdictSums.merge
    monkeypatch.setattr("orthocal.engines.partitioned.grid_verdict.MOST_WIDE", 5000)
    monkeypatch.setattr(VerdictSums, "merge", lambda one, other: (kept.append(merge(one, other)), kept[-1])[1])
    predictions = np.sort(np.random.default_rng(0).standard_normal(60_000))
    grid, exact = _judged_far(tmp_path, np.array_split(predictions, 30))
    _assert_same(grid, exact)
    assert any(sums.wide is None for sums in kept)
    assert max(sums.wide.count for sums in kept if sums.wide is not None) <= 5000


def test_residuals_that_cancel_in_every_cell_have_no_range(tmp_path, monkeypatch):
    """Twins at every prediction, one too high by 1 and one too low: the walk ends every cell at 0."""
    monkeypatch.setattr("orthocal.engines.partitioned.grid_verdict.CELLS", 64)
    monkeypatch.setattr("orthocal.engines.partitioned.grid_verdict.WIDEST", 2)
    p = np.repeat(np.arange(1000.0), 4)
    for number in range(2):
        a, sign = np.tile([0, 0, 1, 1], 1000), np.tile([1.0, -1.0], 2000)
        frame = pd.DataFrame({"p": p, "a": a, "b": 0 * p, "y": a * p + sign})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    source, settings = _source(str(tmp_path / "*.parquet")), Settings(random_state=0)
    grid, exact = judged(source, settings, exact=False), judged(source, settings, exact=True)
    assert exact.tests["range"].statistic == 0
    assert grid.tests["range"].statistic == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("many", [10, 500])
def test_brackets_are_matched_with_shared_predictions_in_little_memory(many):
    import tracemalloc

    rng = np.random.default_rng(0)
    sketch = Sketch.of(np.round(rng.standard_normal(2**18), 5), None, 2**18)
    tracemalloc.start()
    grid = Grid.of(sketch, Settings(random_state=0, bins=many), 1e-3, 2**16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(grid.shared) > 100
    assert peak < 40e6
