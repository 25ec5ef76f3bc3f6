"""Every engine gives the maps and the exact verdict of memory, whatever the partitioning."""

from itertools import pairwise

import dask
import numpy as np
import pandas as pd
import pytest
from dask import dataframe as dd

from orthocal import Histogram, Isotonic, Linear, OrthocalError, Study, assess, orthogonal_loss
from orthocal.assessment.records import Settings
from orthocal.calibrators import CALIBRATORS
from orthocal.datasets import simulate_cate
from orthocal.effects import CATE
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.local.table import LocalTable
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.verdict import judged
from orthocal.engines.spark.table import SparkTable
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles
from tests.spark_session import frame_of
from tests.test_sweeps import numbers

GIVEN = ("propensity", "outcome_control", "outcome_treated")
METHODS = {"linear": Linear, "histogram": Histogram, "isotonic": Isotonic}


def on_dask(parts, folder):
    del folder
    return DaskTable(dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0]))


def in_files(parts, folder):
    for number, part in enumerate(parts):
        part.to_parquet(folder / f"part-{number}.parquet", index=False)
    return LocalTable.of_files(folder)


def in_duckdb(parts, folder):
    import duckdb

    pd.concat(parts, ignore_index=True).to_parquet(folder / "all.parquet", index=False)
    return LocalTable.of_relation(duckdb.read_parquet(str(folder / "all.parquet")))


def on_spark(parts, folder):
    del folder
    return SparkTable.of_frame(frame_of(parts))


ENGINES = {"dask": on_dask, "local": in_files, "duckdb": in_duckdb, "spark": on_spark}
"""By name: what makes a table of a list of frames, with a folder to write to."""
SLOW_TO_START = {"spark": pytest.mark.more}
every_engine = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=SLOW_TO_START.get(name, ())) for name in ENGINES]
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning"),
    pytest.mark.usefixtures("threads"),
]


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads"):
        yield


def rows(n=4000, *, ties=False, weight=None, seed=0):
    data = simulate_cate(n=n, random_state=seed)
    rng = np.random.default_rng(seed)
    tau = 1 + 2 * data.effect
    frame = pd.DataFrame(
        {"x": data.X[:, 0], "y": data.y, "a": data.treatment, "tau": np.round(tau, 1) if ties else tau}
    )
    frame["w"] = {None: np.ones(n), "whole": rng.integers(0, 4, n), "some": rng.uniform(0.5, 2, n)}[weight]
    frame["cluster"], frame["part"] = rng.integers(0, n // 10, n), rng.choice(["u", "v"], n)
    return frame.assign(**data.nuisances)


def divided(frame, how):
    """In one part, in sixteen, or shuffled into uneven parts."""
    order = np.random.default_rng(1).permutation(len(frame)) if how == "uneven" else np.arange(len(frame))
    n = len(frame)
    cuts = [0, 1, 7, n // 3, n // 2, n] if how == "uneven" else np.linspace(0, n, how + 1).astype(int)
    return [frame.iloc[order[a:b]] for a, b in pairwise(cuts)]


def source_of(table, *, weight=None, groups=None, by=()):
    roles = Roles(
        outcome="y",
        treatment="a",
        prediction="tau",
        sample_weight=weight,
        groups=groups,
        by=by,
        nuisances={name: name for name in GIVEN},
    )
    return prepared(table, roles, CATE(), 5, Recipe())


def loss_in_memory(frame, *, weight=None, groups=None):
    given = {name: frame[name] for name in GIVEN}
    more = {
        "sample_weight": None if weight is None else frame[weight],
        "groups": None if groups is None else frame[groups],
    }
    return orthogonal_loss("cate", frame[["x"]], frame.y, treatment=frame.a, nuisances=given, **more)


@every_engine
@pytest.mark.parametrize("how", [1, 16, "uneven"])
@pytest.mark.parametrize(("ties", "weight"), [(False, None), (True, "whole"), (False, "some")])
def test_maps_are_those_of_memory(tmp_path, engine, how, ties, weight):
    frame = rows(ties=ties, weight=weight)
    name = None if weight is None else "w"
    source = source_of(ENGINES[engine](divided(frame, how), tmp_path), weight=name)
    at = np.linspace(frame.tau.min() - 1, frame.tau.max() + 1, 997)
    for method in METHODS.values():
        found = fitted(method(), source, exact=True).map_.predict(at)
        right = method().fit(frame.tau.to_numpy(), loss_in_memory(frame, weight=name)).map_.predict(at)
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-10)


@every_engine
@pytest.mark.parametrize("how", [1, "uneven"])
@pytest.mark.parametrize(("weight", "groups"), [(None, None), ("w", None), (None, "cluster")])
def test_exact_verdicts_are_those_of_memory(tmp_path, monkeypatch, engine, how, weight, groups):
    monkeypatch.setattr("orthocal.engines.partitioned.ranges.ROWS_A_RANGE", 700)
    frame = rows(weight=None if weight is None else "some")
    source = source_of(ENGINES[engine](divided(frame, how), tmp_path), weight=weight, groups=groups, by=("part",))
    found = judged(source, Settings(cost=0.5, draws=20, random_state=0), exact=True)
    loss = loss_in_memory(frame, weight=weight, groups=groups)
    right = assess(frame.tau, loss, cost=0.5, by={"part": frame.part}, draws=20, random_state=0)
    there, here = numbers(found), numbers(right)
    assert there.keys() == here.keys()
    drawn = ("decomposition", "range.p_value") if groups else ()  # which clusters are in a half, and their signs
    for path, value in here.items():
        if not any(word in path for word in drawn):
            assert there[path] == pytest.approx(value, rel=1e-8, abs=1e-8), path


@every_engine
@pytest.mark.parametrize("weight", [None, "w"])
def test_the_default_verdict_is_that_of_memory_where_cells_are_rows(tmp_path, engine, weight):
    frame = rows(weight=None if weight is None else "some")
    source = source_of(ENGINES[engine](divided(frame, 5), tmp_path), weight=weight, by=("part",))
    found = judged(source, Settings(cost=0.5, draws=20, random_state=0), exact=False)
    loss = loss_in_memory(frame, weight=weight)
    right = assess(frame.tau, loss, cost=0.5, by={"part": frame.part}, draws=20, random_state=0)
    there, here = numbers(found), numbers(right)
    assert there.keys() == here.keys()
    for path, value in here.items():
        if "decomposition" not in path:  # halves of the rows are drawn in another way
            assert there[path] == pytest.approx(value, rel=1e-8, abs=1e-8), path


@pytest.mark.parametrize("weight", [None, "w"])
def test_the_default_verdict_on_few_cells(tmp_path, monkeypatch, weight):
    """Bins, average, error and value are exact however coarse the grid; the range test is within its bound."""
    monkeypatch.setattr("orthocal.engines.partitioned.grid_verdict.CELLS", 1024)
    frame = rows(30_000, weight=None if weight is None else "some").assign(tau=lambda table: table.tau / 2)
    source = source_of(in_files(divided(frame, 5), tmp_path), weight=weight)
    found = judged(source, Settings(cost=0.2, draws=20, random_state=0), exact=False)
    right = assess(frame.tau, loss_in_memory(frame, weight=weight), cost=0.2, draws=20, random_state=0)
    there, here = numbers(found), numbers(right)
    exact = (".bins", ".error", ".standard_error", ".interval", ".average", ".tests.bins", ".minimum", ".l1", ".risk")
    for path, value in here.items():
        if path.startswith(exact) or path in (".value.value", ".value.standard_error", ".value.share_treated"):
            # A row's share of its bin's mass is not known where masses differ, nor how predictions vary within a cell.
            near = 1e-8 if weight is None and not path.startswith((".average", ".value")) else 1e-4
            assert there[path] == pytest.approx(value, rel=near, abs=1e-8), path
    test, bound = found.tests["range"], float(found.tests["range"].note.split()[-1])
    assert abs(right.tests["range"].statistic - test.statistic) <= bound
    assert found.rate.autoc.value == pytest.approx(right.rate.autoc.value, abs=0.05 * right.rate.autoc.standard_error)
    for name in ("intercept", "slope"):
        one, other = getattr(found.linear_predictor, name), getattr(right.linear_predictor, name)
        assert one.value == pytest.approx(other.value, abs=0.05 * other.standard_error)
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-3)


def spoilt(frame, what):
    bad = frame.drop(columns=what) if what in frame else frame.copy()
    if what == "infinite":
        bad["x"] = np.where(np.arange(len(bad)) == 3, np.inf, bad.x)
    elif what == "text":
        bad["y"] = bad.y.astype(str) + "a"
    return bad


@pytest.mark.parametrize("engine", ["dask", "local"])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("tau", "column 'tau' must be in every file"),
        ("x", "column 'x' must be in every file"),
        ("infinite", "Covariate 'x' must not be infinite; row 3 is"),
        ("text", "`y` must hold numbers; row 0"),
    ],
)
def test_a_bad_file_is_named(tmp_path, engine, what, words):
    """Also where few of the columns are used, in another order: then Dask by itself reads several files together."""
    for number, part in enumerate(divided(rows(1800), 9)):
        whole = spoilt(part, what) if number == 7 else part
        whole.iloc[:, ::-1].to_parquet(tmp_path / f"{number}.parquet", index=False)
    data = dd.read_parquet(str(tmp_path)) if engine == "dask" else tmp_path
    name = "Partition 7" if engine == "dask" else f"File {tmp_path / '7.parquet'}"
    with pytest.raises(OrthocalError, match=f"^{name}: {words}"):
        Study(data, outcome="y", treatment="a", covariates=["x"]).assess("tau")


@pytest.mark.parametrize("engine", ["dask", "local"])
def test_propensities_of_three_arms_are_learnt(tmp_path, engine):
    frame = rows(1500).assign(a=np.random.default_rng(2).choice(["none", "call", "mail"], 1500))
    for number, part in enumerate(divided(frame, 3)):
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    data = dd.read_parquet(str(tmp_path)) if engine == "dask" else tmp_path
    about = {"outcome": "y", "treatment": "a", "arm": "call", "control": "none", "covariates": ["x"]}
    study = Study(data, **about, learners="linear", random_state=0)
    found, right = study.assess("tau"), Study(frame, **about, learners="linear", random_state=0).assess("tau")
    assert found.average.effect == pytest.approx(right.average.effect, abs=right.average.standard_error / 2)
    assert found.overlap.effective_rows["treated"] == pytest.approx(right.overlap.effective_rows["treated"], rel=0.05)


def test_partitions_of_a_size_in_bytes_are_the_users():
    """Few columns have fewer bytes: Dask would make fewer partitions of them."""
    frame = rows(3000).assign(note="some words that take room " * 8)
    parts = dd.from_pandas(frame, npartitions=4).repartition(partition_size="100kB")
    table = DaskTable(parts)
    for some in (table, table.select(["tau"]), table.select(["tau", "a"])):
        assert len(some.names) == parts.npartitions > 8
        np.testing.assert_array_equal(dask.compute(some.parts[7])[0].tau, parts.partitions[7].compute().tau)
    found = judged(source_of(table), Settings(draws=20, random_state=0), exact=True)
    right = assess(frame.tau, loss_in_memory(frame), draws=20, random_state=0)
    assert found.error == pytest.approx(right.error, abs=1e-8)


@every_engine
@pytest.mark.parametrize("weight", [None, "w"])
def test_every_method_is_near_that_of_memory(tmp_path, engine, weight):
    """Lines and histograms are the same; shapes are fitted on cells of nearly one row each, and chosen on a sample."""
    frame = rows(weight=None if weight is None else "some").assign(tau=lambda table: np.sinh(table.tau))
    source = source_of(ENGINES[engine](divided(frame, 9), tmp_path), weight=weight)
    tau, loss = frame.tau.to_numpy(), loss_in_memory(frame, weight=weight)
    for name, method in CALIBRATORS.items():
        found, right = fitted(name, source, exact=False), method().fit(tau, loss)
        gap = np.sqrt(np.mean((found.predict(tau) - right.predict(tau)) ** 2))
        assert gap <= (1e-10 if name in ("identity", "constant", "shift", "linear", "histogram") else 0.03), name
        if name == "auto":
            assert found.weights_ == pytest.approx(right.weights_, abs=0.02)
            assert found.reason_.startswith("Weights: ")
