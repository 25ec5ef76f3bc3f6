"""On Dask: the numbers of memory, whatever the partitions; folds by key; bad partitions by name; lost workers."""

import os
import signal
import threading
import time
import warnings
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dask import config
from dask import dataframe as dd
from sklearn.linear_model import LinearRegression

import orthocal
from orthocal import CATE, Histogram, Isotonic, Linear, OrthocalError, QuadraticLoss, orthogonal_loss
from orthocal.datasets import simulate_cate, simulate_late
from orthocal.distributed import CausalCalibrator, assess
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.partitioned.cell_finder import CellFinder
from orthocal.engines.partitioned.grid_cells import GridCells
from orthocal.engines.partitioned.kept_rows import KeptRows, cells_inside
from orthocal.engines.partitioned.keys import folds_of, keys_of, sampled
from orthocal.engines.partitioned.passes import PartitionWarning
from orthocal.engines.partitioned.sketch import Sketch
from orthocal.engines.partitioned.source import Source
from orthocal.engines.partitioned.summaries import Bracketed, LineSums
from tests.simulation import simulate_tail
from tests.test_sweeps import numbers

COLUMNS = {"outcome": "y", "treatment": "a", "prediction": "tau"}
GIVEN = {name: name for name in ("propensity", "outcome_control", "outcome_treated")}
METHODS = {"linear": Linear, "histogram": Histogram, "isotonic": Isotonic}


@pytest.fixture(autouse=True)
def _threads():
    with config.set(scheduler="threads"):
        yield


def table(n=20_000, *, ties=False, weight=None, seed=0):
    data = simulate_cate(n=n, random_state=seed)
    rng = np.random.default_rng(seed)
    tau = 1 + 2 * data.effect
    frame = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])])
    frame = frame.assign(y=data.y, a=data.treatment, tau=np.round(tau, 1) if ties else tau, **data.nuisances)
    frame["w"] = {None: np.ones(n), "whole": rng.integers(0, 4, n), "some": rng.uniform(0.5, 2, n), "alike": 0.7}[
        weight
    ]
    frame["id"], frame["cluster"], frame["part"] = np.arange(n), rng.integers(0, n // 10, n), rng.choice(["u", "v"], n)
    return frame


def loss_in_memory(frame, *, weight=False, groups=False, effect="cate"):
    return orthogonal_loss(
        effect,
        frame[["x0"]],
        frame.y,
        treatment=frame.a,
        nuisances={name: frame[name] for name in GIVEN},
        sample_weight=frame.w if weight else None,
        groups=frame.cluster if groups else None,
    )


def partitioned(frame, how):
    """In one part, in 16, or shuffled into uneven parts."""
    if how == "uneven":
        order = np.random.default_rng(1).permutation(len(frame))
        cuts = [0, 1, 7, len(frame) // 3, len(frame) // 2, len(frame)]
        parts = [frame.iloc[order[a:b]] for a, b in pairwise(cuts)]
        return dd.from_delayed([_delayed(part) for part in parts], meta=frame.iloc[:0])
    return dd.from_pandas(frame, npartitions=how, sort=False)


def _delayed(part):
    import dask

    return dask.delayed(part)


@pytest.mark.parametrize("how", [1, 16, "uneven"])
@pytest.mark.parametrize("weight", [None, "whole", "some", "alike"])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning")
def test_maps_are_those_of_memory(how, weight, ties, method):
    frame = table(4000, ties=ties, weight=weight)
    expected = METHODS[method]().fit(frame.tau.to_numpy(), loss_in_memory(frame, weight=weight is not None)).map_
    found = CausalCalibrator(method=method, exact=method == "isotonic", random_state=0)
    found.fit(partitioned(frame, how), **COLUMNS, nuisances=GIVEN, sample_weight=None if weight is None else "w")
    at = np.concatenate([frame.tau.to_numpy(), np.linspace(-9, 9, 1001)])
    np.testing.assert_allclose(found.map_.predict(at), expected.predict(at), atol=1e-10, rtol=0)
    assert found.rows_ == (frame.w > 0).sum()


@pytest.fixture(scope="module")
def million():
    frame = table(10**6)
    return frame, loss_in_memory(frame), dd.from_pandas(frame, npartitions=16, sort=False)


@pytest.mark.parametrize("method", METHODS)
def test_a_million_rows_in_sixteen_partitions(million, method):
    frame, loss, parts = million
    expected = METHODS[method]().fit(frame.tau.to_numpy(), loss).map_
    found = CausalCalibrator(method=method, exact=True).fit(parts, **COLUMNS, nuisances=GIVEN)
    np.testing.assert_allclose(
        found.map_.predict(frame.tau.to_numpy()), expected.predict(frame.tau.to_numpy()), atol=1e-10, rtol=0
    )


def test_the_verdict_on_a_million_rows(million):
    frame, loss, parts = million
    expected = numbers(orthocal.assess(frame.tau.to_numpy(), loss, random_state=0))
    found = numbers(assess(parts, **COLUMNS, nuisances=GIVEN, random_state=0, exact=True))
    assert expected.keys() == found.keys()
    for path, value in expected.items():
        assert found[path] == pytest.approx(value, rel=1e-8, abs=1e-8), path


@pytest.mark.parametrize("n", [3000, 200_000])
def test_the_grid_is_within_its_bound(n):
    frame = table(n)
    loss, tau = loss_in_memory(frame), frame.tau.to_numpy()
    exact = Isotonic(min_samples=1).fit(tau, loss).predict(tau)
    found = CausalCalibrator(method=Isotonic(min_samples=1)).fit(partitioned(frame, 16), **COLUMNS, nuisances=GIVEN)
    order = np.argsort(tau)
    gap = np.abs(np.cumsum((loss.denominator * (found.calibrate(tau) - exact))[order])).max() / loss.denominator.sum()
    assert gap <= found.bound_ * (1 + 1e-9) + 1e-12
    assert found.bound_ < 0.01


def test_the_bound_is_not_vacuous(monkeypatch):
    """With few cells the map is off, and the bound says so."""
    monkeypatch.setattr("orthocal.engines.partitioned.source.CELLS", 8)
    frame = table(5000)
    loss, tau = loss_in_memory(frame), frame.tau.to_numpy()
    exact = Isotonic(min_samples=1).fit(tau, loss).predict(tau)
    found = CausalCalibrator(method=Isotonic(min_samples=1)).fit(partitioned(frame, 4), **COLUMNS, nuisances=GIVEN)
    order = np.argsort(tau)
    gap = np.abs(np.cumsum((found.calibrate(tau) - exact)[order])).max() / 5000
    assert 1e-4 < gap <= found.bound_


@pytest.mark.parametrize("weight", [None, "some"])
@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("how", [5, "uneven"])
@pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning")
def test_verdicts_are_those_of_memory(monkeypatch, weight, clusters, how):
    monkeypatch.setattr("orthocal.engines.partitioned.ranges.ROWS_A_RANGE", 700)
    frame = table(3000, weight=weight)
    loss = loss_in_memory(frame, weight=weight is not None, groups=clusters)
    settings = {"cost": 0.1, "random_state": 0, "draws": 50}
    expected = orthocal.assess(frame.tau, loss, by={"part": frame.part}, **settings)
    found = assess(
        partitioned(frame, how),
        exact=True,
        **COLUMNS,
        nuisances=GIVEN,
        sample_weight="w" if weight else None,
        groups="cluster" if clusters else None,
        by=["part"],
        **settings,
    )
    there, here = numbers(found), numbers(expected)
    assert there.keys() == here.keys()
    drawn = ("decomposition", "range.p_value") if clusters else ()  # which clusters are in a half, and their signs
    for path, value in here.items():
        if not any(word in path for word in drawn):
            assert there[path] == pytest.approx(value, rel=1e-8, abs=1e-8), path
    assert found.overlap.rows == expected.overlap.rows
    assert found.origin.rows == 3000
    assert "weighed" not in found.summary()


@pytest.mark.filterwarnings(
    "ignore::orthocal.errors.SkewWarning", "ignore::orthocal.engines.partitioned.passes.PartitionWarning"
)
@pytest.mark.parametrize("how", [1, "uneven"])
@pytest.mark.parametrize(("weight", "clusters"), [(None, False), ("some", True)])
def test_ratio_effects_have_the_numbers_of_memory(how, weight, clusters):
    frame = table(1500, weight=weight)
    rare = (frame.a == 0) | (frame.index % 12 == 0)  # so few are treated that some bins show nothing
    frame = frame[rare].reset_index(drop=True)
    given = {name: name for name in ("propensity", "outcome_control")}
    columns = {"sample_weight": "w" if weight else None, "groups": "cluster" if clusters else None}
    loss = orthogonal_loss(
        "catt",
        frame[["x0"]],
        frame.y,
        treatment=frame.a,
        nuisances={name: frame[name] for name in given},
        **{name: None if column is None else frame[column] for name, column in columns.items()},
    )
    settings = {"random_state": 0, "draws": 50}
    expected = orthocal.assess(frame.tau, loss, by={"part": frame.part}, **settings)
    found = assess(
        partitioned(frame, how),
        **COLUMNS,
        effect="catt",
        nuisances=given,
        by=["part"],
        **columns,
        **settings,
        exact=True,
    )
    assert np.isnan(expected.bins["residual"]).any()
    there, here = numbers(found), numbers(expected)
    assert there.keys() == here.keys()
    drawn = ("decomposition", "range.p_value") if clusters else ()
    for path, value in here.items():
        if not any(word in path for word in drawn):
            assert there[path] == pytest.approx(value, rel=1e-8, abs=1e-8), path
    for name, method in (("linear", Linear), ("histogram", Histogram)):
        calibrator = CausalCalibrator(effect="catt", method=name)
        calibrator.fit(partitioned(frame, how), **COLUMNS, nuisances=given, **columns)
        close = method().fit(frame.tau, loss).map_.predict(frame.tau)
        np.testing.assert_allclose(calibrator.map_.predict(frame.tau), close, atol=1e-8)


def test_the_calibrated_prediction_is_judged_too():
    frame = table(4000)
    fitted = CausalCalibrator(method="linear").fit(partitioned(frame, 4), **COLUMNS, nuisances=GIVEN)
    fresh = table(4000, seed=1)
    found = fitted.assess(partitioned(fresh, 3), random_state=0)
    before = fitted.assess(partitioned(fresh, 3), calibrated=False, random_state=0)
    expected = orthocal.assess(fitted.map_.predict(fresh.tau), loss_in_memory(fresh), random_state=0)
    assert found.error == pytest.approx(expected.error)
    assert before.error == pytest.approx(orthocal.assess(fresh.tau, loss_in_memory(fresh)).error)
    assert found.error < before.error / 3


def test_folds_and_samples_do_not_depend_on_partitions():
    frame = table(3000)
    key = keys_of(frame[["id"]])
    shuffled = frame.sample(frac=1, random_state=0)
    by_id = dict(zip(shuffled.id, folds_of(keys_of(shuffled[["id"]]), 5, 7), strict=True))
    np.testing.assert_array_equal(folds_of(key, 5, 7), [by_id[i] for i in frame.id])
    assert np.bincount(folds_of(key, 5, 7)).min() > 500
    assert (folds_of(key, 5, 7) != folds_of(key, 5, 8)).mean() > 0.7
    assert sampled(key, 0.2, 3).mean() == pytest.approx(0.2, abs=0.03)
    assert sampled(key, 1.0, 3).all()
    crossed = np.bincount(folds_of(key, 5, 3)[sampled(key, 0.5, 3)], minlength=5)
    assert crossed.min() > 200  # the sample is another draw than the folds


@pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning")
def test_nuisances_learnt_on_a_sample_do_not_depend_on_partitions():
    frame = table(3000)
    covariates = [name for name in frame if name.startswith("x")]
    maps = []
    for how in (3, "uneven"):
        calibrator = CausalCalibrator(method="linear", sample=2000, folds=2, random_state=0)
        calibrator.fit(partitioned(frame, how), **COLUMNS, covariates=covariates, key="id")
        maps.append(calibrator.map_)
    assert maps[0].intercept == pytest.approx(maps[1].intercept, abs=1e-10)
    assert maps[0].slope == pytest.approx(maps[1].slope, abs=1e-10)
    assert (maps[0].intercept, maps[0].slope) == pytest.approx((-0.5, 0.5), abs=0.25)


def test_text_covariates_have_the_levels_of_all_partitions():
    frame = table(2000).sort_values("part")
    calibrator = CausalCalibrator(method="linear", sample=2000, folds=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartitionWarning)
        calibrator.fit(partitioned(frame, 4), **COLUMNS, covariates=["x0", "part"])
    assert calibrator.job_.encoding.levels == {"part": ("u", "v")}


def test_a_late_needs_to_know_the_average_of_all_rows():
    data = simulate_late(n=3000, random_state=0)
    frame = pd.DataFrame({"y": data.y, "a": data.treatment, "z": data.instrument, "tau": 1 + 2 * data.effect})
    frame = frame.assign(**data.nuisances, outcome_z0=0.0, outcome_z1=0.1)
    frame.loc[:500, "treatment_z1"] = (
        frame.loc[:500, "treatment_z0"] + 0.01
    )  # a weak first stage, where the average is used
    given = {name: name for name in [*data.nuisances, "outcome_z0", "outcome_z1"]}
    effect = orthocal.LATE()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = orthogonal_loss(
            effect,
            data.X,
            frame.y,
            treatment=frame.a,
            instrument=frame.z,
            nuisances={name: frame[name] for name in given},
        )
    found = CausalCalibrator(effect=effect, method="linear")
    found.fit(partitioned(frame, 7), **COLUMNS, instrument="z", nuisances=given)
    expected = Linear().fit(frame.tau, loss).map_
    assert (found.map_.intercept, found.map_.slope) == pytest.approx((expected.intercept, expected.slope), abs=1e-10)


def test_a_tail_mean_is_learnt_on_a_sample_whatever_the_partitions():
    data, _ = simulate_tail(3000, "normal", 0)
    frame = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(4)])
    frame = frame.assign(y=data.y, a=data.treatment, tau=data.effect, propensity=data.nuisances["propensity"])
    learners = {"outcome": LinearRegression()}
    maps = []
    for parts in (1, 4):
        found = CausalCalibrator(
            effect=orthocal.CVaRUnderTreatment(tail=0.1),
            method="linear",
            sample=3000,
            folds=2,
            learners=learners,
            random_state=0,
        )
        found.fit(
            partitioned(frame, parts),
            **COLUMNS,
            covariates=[f"x{j}" for j in range(4)],
            nuisances={"propensity": "propensity"},
        )
        maps.append((found.map_.intercept, found.map_.slope))
    assert maps[0] == pytest.approx(maps[1], abs=1e-10)
    assert maps[0] == pytest.approx((0, 1), abs=0.3)


def quantiles(n=4000):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(n)
    propensity = 1 / (1 + np.exp(-x / 2))
    a = (rng.random(n) < propensity).astype(int)
    y = x + rng.standard_normal(n)
    return pd.DataFrame({"x": x, "y": y, "a": a, "tau": x / 2, "propensity": propensity, "below": 0.5})


@pytest.mark.parametrize(
    ("effect", "kind"),
    [(orthocal.QuantileUnderTreatment(0.5), "HingeLoss"), (orthocal.ExpectileUnderTreatment(0.7), "ExpectileLoss")],
)
def test_losses_with_outcomes_on_a_grid(effect, kind):
    frame = quantiles()
    given = {"propensity": "propensity", "below": "below"}
    loss = orthogonal_loss(
        effect,
        frame[["x"]],
        frame.y,
        treatment=frame.a,
        prediction=frame.tau,
        folds=np.zeros(len(frame)),  # inverse propensities are scaled over all rows
        nuisances=dict(frame[["propensity", "below"]]),
    )
    for method, tolerance in (("isotonic", 0.1), ("linear", 0.02), ("histogram", 0.05)):
        found = CausalCalibrator(effect=effect, method=method).fit(partitioned(frame, 5), **COLUMNS, nuisances=given)
        expected = METHODS[method]().fit(frame.tau, loss).predict(frame.tau)
        assert np.abs(found.calibrate(frame.tau) - expected).mean() < tolerance
    verdict = assess(partitioned(frame, 5), **COLUMNS, effect=effect, nuisances=given, random_state=0)
    assert verdict.error == pytest.approx(orthocal.assess(frame.tau, loss, random_state=0).error, abs=1e-8)
    with pytest.raises(OrthocalError, match=f"`exact` must be False for a {kind}"):
        CausalCalibrator(effect=effect, exact=True).fit(partitioned(frame, 5), **COLUMNS, nuisances=given)


def test_a_bad_partition_is_named():
    frame = table(4000)
    frame.loc[frame.index[3750], "y"] = np.nan  # in the partition 37 of 40
    parts = dd.from_pandas(frame, npartitions=40, sort=False)
    for exact in (False, True):
        with pytest.raises(OrthocalError, match=r"^Partition 37: `y` must be finite in every row; row 50 is nan"):
            CausalCalibrator(exact=exact).fit(parts, **COLUMNS, nuisances=GIVEN)
    with pytest.raises(OrthocalError, match=r"^Partition 37: `y` must be finite"):
        assess(parts, **COLUMNS, nuisances=GIVEN)


@dataclass(frozen=True, eq=False)
class HuberLoss:
    """A loss of a user's own: squared near the outcome, linear further away."""

    outcome: Any
    weight: Any
    groups: Any = None
    overlap: Any = None
    unit: str = "score"
    bounds: tuple = (-9.0, 9.0)

    def __len__(self):
        return len(self.outcome)

    def __getitem__(self, rows):
        return HuberLoss(self.outcome[rows], self.weight[rows])

    @property
    def mass(self):
        return self.weight

    def value(self, v):
        gap = np.abs(v - self.outcome)
        return self.weight * np.where(gap < 1, gap**2 / 2, gap - 0.5)

    def derivative(self, v):
        return self.weight * np.clip(v - self.outcome, -1, 1)

    def at(self, prediction):
        del prediction
        return self


class Location(orthocal.CATE):
    """The Huber location of the outcome; no treatment is involved."""

    def loss(self, observations, fitted):
        del fitted
        return HuberLoss(observations.outcome, observations.weight)


def test_a_loss_without_a_slope_is_refused_in_a_sentence():
    with pytest.raises(OrthocalError, match=r"A HuberLoss must be quadratic, or have .* it has no slope"):
        CausalCalibrator(Location(), "linear").fit(partitioned(table(500), 2), **COLUMNS, nuisances=GIVEN)


@pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning")
def test_an_odd_partition_is_named_and_does_no_harm():
    frame = table(4000).sort_values("a", kind="stable")
    expected = Linear().fit(frame.tau, loss_in_memory(frame)).map_
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = CausalCalibrator(method="linear").fit(partitioned(frame, 8), **COLUMNS, nuisances=GIVEN)
    said = {str(one.message) for one in heard if one.category is PartitionWarning}
    assert "Partition 0 has one treatment value only, 0. Check that none of its rows are missing." in said
    assert any("Partition 7 has one treatment value only, 1" in words for words in said)
    assert found.map_.slope == pytest.approx(expected.slope, abs=1e-10)
    empty = dd.from_delayed([_delayed(frame.iloc[:0]), _delayed(frame)], meta=frame.iloc[:0])
    with pytest.warns(PartitionWarning, match="Partition 0 is empty; it adds nothing"):
        found = CausalCalibrator(method="histogram").fit(empty, **COLUMNS, nuisances=GIVEN)
    np.testing.assert_allclose(found.map_.values, Histogram().fit(frame.tau, loss_in_memory(frame)).map_.values)


@pytest.mark.parametrize(
    ("change", "settings", "told", "words"),
    [
        (lambda frame: frame.assign(a=1), {}, {}, "The treatment must have at least two values; every row is 1"),
        (lambda frame: frame, {}, {"prediction": "tauu"}, r"Column 'tauu' must be in the data.*Did you mean 'tau'"),
        (lambda frame: frame, {"method": LinearRegression()}, {}, "`method` in partitions must be one of"),
        (lambda frame: frame, {"scheme": "split"}, {}, "`scheme` must be 'cross' on Dask; it is 'split'"),
        (lambda frame: frame, {"folds": 1}, {}, "`folds` must be a whole number of at least 2"),
        (lambda frame: frame, {"clip": 2.0}, {}, "`clip` must lie"),
        (lambda frame: frame, {}, {"nuisances": {"nothing": "x0"}}, "`nuisances` does not know 'nothing'"),
        (lambda frame: frame.assign(propensity=1.5), {}, {}, "Partition 0: `propensity` as given must lie"),
        (lambda frame: frame.iloc[:0], {}, {}, "every partition is empty"),
    ],
)
@pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning")
def test_bad_input_gets_one_sentence(change, settings, told, words):
    parts = dd.from_pandas(change(table(300)), npartitions=2, sort=False)
    with pytest.raises(OrthocalError, match=words) as refused:
        CausalCalibrator(**settings).fit(parts, **{**COLUMNS, "nuisances": GIVEN, **told})
    assert "\n" not in str(refused.value)


def test_what_is_not_a_dask_frame_is_refused():
    with pytest.raises(OrthocalError, match=r"`frame` must be a dask.dataframe; it is a DataFrame"):
        CausalCalibrator().fit(table(100), **COLUMNS, nuisances=GIVEN)
    with pytest.raises(OrthocalError, match="must be fitted first"):
        CausalCalibrator().calibrate([1.0])
    given = {name: name for name in ("propensity", "outcome_control")}
    with pytest.raises(OrthocalError, match="Masses must be positive for exact isotonic"):
        CausalCalibrator(orthocal.CATT(), exact=True).fit(partitioned(table(600), 2), **COLUMNS, nuisances=given)


class Doubled:
    """An effect model, which must not see outcomes."""

    def predict(self, X):
        assert not {"y", "a", "propensity"} & set(X)
        return 2 * X["x0"].to_numpy()


def test_an_effect_model_is_asked_partition_by_partition(tmp_path):
    frame = table(2000)
    parts = partitioned(frame, 3)
    told = {"outcome": "y", "treatment": "a", "nuisances": GIVEN}
    calibrator = CausalCalibrator(CATE(), "linear", estimator=Doubled()).fit(parts, **told)
    expected = Linear().fit(2 * frame.x0, loss_in_memory(frame)).map_
    assert calibrator.map_.slope == pytest.approx(expected.slope)
    np.testing.assert_allclose(calibrator.predict(parts).compute(), expected.predict(2 * frame.x0))
    np.testing.assert_allclose(calibrator.calibrate(parts.tau).compute(), expected.predict(frame.tau))
    assert calibrator.assess(parts, draws=10).rows == 2000
    calibrator.save(tmp_path / "map.json")
    assert orthocal.load(tmp_path / "map.json") == calibrator.map_
    assert calibrator.get_params()["effect"] == CATE()


def test_summaries_merge_to_the_summary_of_all():
    rng = np.random.default_rng(0)
    p, d = rng.standard_normal(500) * 1e-3 + 1e3, rng.uniform(0.5, 2, 500)
    loss = QuadraticLoss(d * p + rng.standard_normal(500), d)
    cut = [slice(0, 100), slice(100, 101), slice(101, 500)]
    lines = [LineSums.of(p[rows], loss[rows], 1e3) for rows in cut]
    found, expected = lines[0].merge(lines[1].merge(lines[2])).coefficients(1e3), Linear().fit(p, loss).map_
    assert found == pytest.approx((expected.intercept, expected.slope), rel=1e-8)
    edges = np.quantile(p, [0.2, 0.5, 0.9])
    cells = [GridCells.of(p[rows], loss[rows], CellFinder.of(edges), bounded=True) for rows in cut]
    together, whole = (
        cells[0].merge(cells[1]).merge(cells[2]),
        GridCells.of(p, loss, CellFinder.of(edges), bounded=True),
    )
    np.testing.assert_allclose(together.numerator, whole.numerator)
    assert together.bound() == pytest.approx(whole.bound())


@pytest.mark.parametrize("weighted", [False, True])
def test_bins_are_exact_however_coarse_the_sketch(weighted):
    rng = np.random.default_rng(0)
    p = np.round(rng.standard_normal(5000), 2)
    w = rng.uniform(0.1, 3, 5000) if weighted else np.ones(5000)
    loss = QuadraticLoss(w * (p + rng.standard_normal(5000)), w)
    cut = [slice(k, k + 500) for k in range(0, 5000, 500)]
    sketches = [Sketch.of(p[rows], w[rows] if weighted else None, 40) for rows in cut]
    sketch = reduce(Sketch.merge, sketches)
    brackets = sketch.intervals(np.arange(1, 20) / 20, 2 / 40 + 2 * 10 * sketch.counts.most / sketch.counts.total)
    found = reduce(Bracketed.merge, [Bracketed.of(p[rows], loss[rows], brackets) for rows in cut])
    edges, numerator, denominator = found.bins(20, brackets)
    expected = Histogram().fit(p, loss).map_
    np.testing.assert_array_equal(edges, expected.edges)
    np.testing.assert_allclose(numerator / denominator, expected.values)
    kept = np.concatenate([part.level for part in found.inside.parts])
    assert len(kept) <= 2 * len(np.unique(kept))  # of 2,789 rows inside


def test_few_of_the_rows_inside_brackets_decide_the_edges_of_bins(monkeypatch):
    rng = np.random.default_rng(1)
    p, y = rng.standard_normal((2, 20_000))
    loss, brackets = QuadraticLoss(p + y, np.ones(20_000)), np.quantile(p, [[0.2, 0.3], [0.28, 0.7], [0.72, 0.8]])
    found = Bracketed.of(p[:5000], loss[:5000], brackets).merge(Bracketed.of(p[5000:], loss[5000:], brackets))
    picked, seen = KeptRows.picked, []
    monkeypatch.setattr(KeptRows, "picked", lambda self, choose: seen.append(picked(self, choose)) or seen[0])
    edges, numerator, denominator = found.bins(4, brackets)
    expected = Histogram(4).fit(p, loss).map_
    np.testing.assert_array_equal(edges, expected.edges)
    np.testing.assert_allclose(numerator / denominator, expected.values)
    assert len(seen[0].level) < 0.15 * found.inside.count
    off = np.quantile(p, [[0.2, 0.3], [0.28, 0.499], [0.72, 0.8]])
    assert Bracketed.of(p, loss, off).bins(4, off) is None


def test_cells_inside_brackets_are_those_that_end_there():
    ends, brackets = np.arange(6.0), np.array([[-np.inf, 0.0], [1.0, 3.0], [2.0, 4.0], [5.0, np.inf]])
    upper = np.append(ends, np.inf)[:, None]
    expected = ((upper > brackets[:, 0]) & (upper <= brackets[:, 1])).any(axis=1)
    np.testing.assert_array_equal(cells_inside(ends, brackets), expected)
    assert not cells_inside(ends, np.empty((0, 2))).any()


def test_a_grid_drawn_from_unlike_partitions_is_drawn_again(monkeypatch):
    monkeypatch.setattr("orthocal.engines.partitioned.source.SPREAD", 2)
    monkeypatch.setattr("orthocal.engines.partitioned.grid_cells.UNEVEN", 4)
    for module in ("source", "grid_cells"):
        monkeypatch.setattr(f"orthocal.engines.partitioned.{module}.CELLS", 64)
    drawn = []
    whole = Source.sketch.func
    monkeypatch.setattr(Source, "sketch", property(lambda self: drawn.append(1) or whole(self)))
    frame = table(4000)
    shuffled = CausalCalibrator().fit(partitioned(frame, 10), **COLUMNS, nuisances=GIVEN)
    assert not drawn
    ordered = CausalCalibrator().fit(partitioned(frame.sort_values("tau"), 10), **COLUMNS, nuisances=GIVEN)
    assert drawn
    assert ordered.bound_ < 2 * shuffled.bound_


@pytest.fixture
def cluster():
    from distributed import Client, LocalCluster

    with (
        warnings.catch_warnings(),
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


def _slow(part, seconds):
    time.sleep(seconds)
    return part


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["isotonic", "exact"])
def test_a_worker_that_dies_costs_its_partitions_not_the_run(cluster, method):
    frame = table(20_000)
    parts = partitioned(frame, 12).map_partitions(_slow, 0.15, meta=frame.iloc[:0])
    settings = {"method": "isotonic" if method == "exact" else method, "exact": method == "exact"}
    with config.set(scheduler="threads"):
        expected = CausalCalibrator(**settings).fit(partitioned(frame, 12), **COLUMNS, nuisances=GIVEN)
    killed = []

    def kill():
        time.sleep(1.0)
        pid = cluster.cluster.workers[0].pid
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    with config.set(scheduler="distributed"):
        killer = threading.Thread(target=kill)
        killer.start()
        found = CausalCalibrator(**settings).fit(parts, **COLUMNS, nuisances=GIVEN)
        ended_after_the_kill = bool(killed)
        killer.join()
    assert ended_after_the_kill
    at = frame.tau.to_numpy()
    np.testing.assert_allclose(found.map_.predict(at), expected.map_.predict(at), atol=1e-10, rtol=0)


@pytest.mark.filterwarnings("ignore")
def test_learners_that_train_on_dask(cluster):
    pytest.importorskip("lightgbm")
    frame = table(6000)
    covariates = [name for name in frame if name.startswith("x")]
    with config.set(scheduler="distributed"):
        calibrator = CausalCalibrator(method="linear", folds=2, random_state=0)
        calibrator.fit(partitioned(frame, 4), **COLUMNS, covariates=covariates, key="id")
        assert (calibrator.map_.intercept, calibrator.map_.slope) == pytest.approx((-0.5, 0.5), abs=0.25)
        verdict = calibrator.assess(partitioned(table(6000, seed=1), 4), random_state=0)
    assert verdict.error < 0.35
    assert "LGBM" in verdict.origin.learners["propensity"]


def test_wrapped_learners_ask_for_a_sample():
    frame = quantiles(500)
    with pytest.raises(OrthocalError, match="Nuisance `below` must be learnt on a sample"):
        CausalCalibrator(effect="quantile").fit(
            partitioned(frame, 2), **COLUMNS, covariates=["x"], nuisances={"propensity": 0.5}
        )


def test_a_source_knows_a_few_rows_even_where_the_first_partition_is_empty():
    frame = table(200)
    empty = dd.from_delayed([_delayed(frame.iloc[:0]), _delayed(frame)], meta=frame.iloc[:0])
    with pytest.warns(PartitionWarning, match="empty"):
        fitted = CausalCalibrator(method="linear").fit(empty, **COLUMNS, nuisances=GIVEN)
    with pytest.warns(PartitionWarning, match="empty"):
        assert Source(DaskTable(empty), fitted.job_).has_overlap


@pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning")
def test_partitions_without_rows_that_count_are_passed_over():
    frame = table(3000, weight="some")
    frame.loc[frame.index[:500], "w"] = 0.0
    told = {**COLUMNS, "nuisances": GIVEN, "sample_weight": "w"}
    counting = frame[frame.w > 0]
    weightless = dd.from_delayed([_delayed(frame.iloc[:500]), _delayed(counting)], meta=frame.iloc[:0])
    nothing = _delayed(frame.iloc[:0])
    empty = dd.from_delayed([*[nothing] * 9, _delayed(counting), *[nothing] * 30], meta=frame.iloc[:0])
    expected = orthocal.assess(counting.tau, loss_in_memory(counting, weight=True), random_state=0)
    for parts in (weightless, empty):
        assert assess(parts, **told, random_state=0).error == pytest.approx(expected.error)
        for exact in (False, True):
            assert CausalCalibrator(exact=exact).fit(parts, **told).rows_ == 2500


def test_a_level_that_only_later_partitions_have():
    frame = table(4000)
    frame["a"] = np.where((np.arange(4000) >= 2000) & (frame.a == 1), 2, frame.a)
    frame.loc[frame.index[2500:3000], "a"] = frame.a.iloc[:500].to_numpy()
    words = r"Partition 2: `propensity_control` must be given .* row \d+ has 2"
    with pytest.raises(OrthocalError, match=words):
        CausalCalibrator().fit(partitioned(frame, 4), **COLUMNS, nuisances=GIVEN)
    found = CausalCalibrator(method="linear", sample=4000, folds=2, random_state=0)
    found.fit(partitioned(frame, 4), **COLUMNS, covariates=["x0", "x1"], key="id")
    assert {trained.nuisance.name for trained in found.job_.trained} >= {"propensity", "propensity_control"}


@pytest.mark.parametrize(("settings", "words"), [({"level": 95}, "`level` must lie"), ({"bins": 0}, "`bins` must be")])
def test_verdicts_check_what_they_are_told(settings, words):
    fitted = CausalCalibrator(method="linear").fit(partitioned(table(500), 2), **COLUMNS, nuisances=GIVEN)
    with pytest.raises(OrthocalError, match=words):
        fitted.assess(partitioned(table(500), 2), **settings)
    with pytest.raises(OrthocalError, match=r"`frame` must be a dask.dataframe"):
        fitted.assess(table(500))


def test_missing_subgroups_are_a_subgroup():
    frame = table(500)
    frame.loc[frame.index[300:340], "part"] = None
    found = assess(partitioned(frame, 2), **COLUMNS, nuisances=GIVEN, by=["part"])
    assert (found.subgroups[-1].value, found.subgroups[-1].rows) == ("missing", 40)


def test_tied_rows_stand_in_an_order_of_their_own(monkeypatch):
    """Verdicts on tied predictions, decomposition and all, do not depend on how rows arrived."""
    monkeypatch.setattr("orthocal.engines.partitioned.ranges.ROWS_A_RANGE", 900)
    frame = table(4000, ties=True)
    found = [
        numbers(
            assess(
                dd.from_pandas(rows, npartitions=4, sort=False), **COLUMNS, nuisances=GIVEN, random_state=0, exact=True
            )
        )
        for rows in (frame, frame.sample(frac=1, random_state=1))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-8, abs=1e-10)


def test_tied_rows_that_repeat_are_divided_as_in_memory():
    """Few predictions and outcomes: halves of the decomposition that mirror each other would hide that recalibration overfits."""
    frame = table(2500, ties=True)
    frame["y"] = frame.y.round()
    settings = {"random_state": 0, "draws": 1}
    expected = orthocal.assess(frame.tau, loss_in_memory(frame), **settings).decomposition
    for by in ((), ["part"]):
        found = assess(partitioned(frame, 3), **COLUMNS, nuisances=GIVEN, by=by, **settings, exact=True).decomposition
        assert found.miscalibration == pytest.approx(expected.miscalibration, rel=1e-8)
