"""Averages, bins, lines and losses of quantiles and expectiles: their extra nuisance is taken at what is being found."""

import numpy as np
import pytest
from dask import config
from dask import dataframe as dd

from orthocal import assess, orthogonal_loss
from orthocal.assessment import sweeps
from orthocal.assessment.crossings import Bracket, crossings
from orthocal.distributed import assess as assess_on_dask
from orthocal.distributions import TableDistribution
from orthocal.effects.quantile import quantile_levels
from orthocal.engines.partitioned.keys import folds_of, keys_of
from orthocal.engines.partitioned.ranges import RangedRows
from tests.marginals import EXPECTILE, NUISANCES, QUANTILE, TRUTH, UNIT, Known, draw, loss_of, predicted, right
from tests.test_sweeps import numbers

every_effect = pytest.mark.parametrize("effect", [QUANTILE, EXPECTILE], ids=["quantile", "expectile"])


@every_effect
@pytest.mark.parametrize("which", NUISANCES)
def test_one_right_nuisance_is_enough(effect, which):
    prediction, loss = loss_of(draw(8000, np.random.default_rng(0)), effect, which)
    verdict = assess(prediction, loss, draws=1, random_state=0)
    low, high = verdict.average.interval
    assert verdict.average.effect == pytest.approx(TRUTH[effect], abs=0.12)  # four standard errors
    assert low - 0.06 < TRUTH[effect] < high + 0.06
    assert high - low < 0.3
    inner = slice(2, 8)  # where a bin is narrow, its own quantile is that of its middle
    np.testing.assert_allclose(verdict.bins["target"][inner], verdict.bins["prediction"][inner] / 3, atol=0.3)
    gaps = verdict.bins["target"][inner] - verdict.bins["prediction"][inner] / 3
    assert np.abs(gaps.mean()) < 0.1
    slope = verdict.linear_predictor.slope
    assert slope.value == pytest.approx(1 / 3, abs=0.05)
    assert slope.standard_error < 0.03
    best = assess(prediction / 3, loss, draws=1, random_state=0)
    assert best.linear_predictor.slope.value == pytest.approx(1, abs=0.15)
    assert best.decomposition.miscalibration < 0.05 * verdict.decomposition.miscalibration
    assert best.decomposition.uncertainty == pytest.approx(verdict.decomposition.uncertainty, rel=0.02)


def test_a_loss_that_stays_at_its_level_has_its_exact_minimisers(monkeypatch):
    frame = draw(2000, np.random.default_rng(0))
    prediction = predicted(frame, QUANTILE)
    given = {"propensity": frame.propensity, "below": np.full(2000, 0.8)}
    loss = orthogonal_loss(QUANTILE, frame[["x"]], frame.y, treatment=frame.a, prediction=prediction, nuisances=given)
    found = assess(prediction, loss, random_state=0)
    assert set(found.bins["target"]) <= set(frame.y[frame.a == 1])
    monkeypatch.setattr(sweeps, "longest_piece", lambda _: 300)
    pieces = assess(prediction, loss, random_state=0)
    np.testing.assert_allclose(pieces.bins["target"], found.bins["target"], atol=1e-9)


def test_a_known_distribution_is_asked_few_times():
    asked = []

    def below(X, v):
        asked.append(len(v))
        return right(X, v)

    frame = draw(3000, np.random.default_rng(0))
    prediction = predicted(frame, QUANTILE)
    given = {"propensity": frame.propensity, "below": below}
    loss = orthogonal_loss(QUANTILE, frame[["x"]], frame.y, treatment=frame.a, prediction=prediction, nuisances=given)
    assert sum(asked) == 50 * 3000  # once at the prediction, and once at each level of the table for the losses' values
    asked.clear()
    assess(prediction, loss, random_state=0)
    print(f"assess asks for {sum(asked) / 3000:.0f} values of the distribution a row")
    assert sum(asked) <= 80 * 3000


@every_effect
def test_dask_has_the_numbers_of_memory(monkeypatch, effect):
    monkeypatch.setattr("orthocal.engines.partitioned.ranges.ROWS_A_RANGE", 500)
    frame = draw(3000, np.random.default_rng(1))
    frame["tau"], frame["id"] = predicted(frame, effect) / 2, np.arange(3000)
    passes, ask = [], RangedRows.ask
    monkeypatch.setattr(RangedRows, "ask", lambda rows, questions: passes.append(1) or ask(rows, questions))
    settings = {"random_state": 0, "draws": 20}
    with config.set(scheduler="threads"):
        found = assess_on_dask(
            dd.from_pandas(frame, npartitions=4),
            outcome="y",
            treatment="a",
            prediction="tau",
            covariates=["x"],
            key="id",
            effect=effect,
            nuisances={"propensity": 0.5},
            learners={"below": Known()},
            sample=10**6,
            folds=2,
            **settings,
        )
    levels = quantile_levels(frame.y[frame.a == 1])
    table = np.column_stack([right(frame[["x"]], np.full(3000, level)) for level in levels[:-1]] + [np.ones(3000)])
    loss = orthogonal_loss(
        effect,
        frame[["x"]],
        frame.y,
        treatment=frame.a,
        prediction=frame.tau,
        folds=folds_of(keys_of(frame[["id"]]), 2, 0),
        nuisances={"propensity": 0.5, "below": TableDistribution(levels, table)},
    )
    here, there = numbers(assess(frame.tau, loss, **settings)), numbers(found)
    for path, value in here.items():
        if not path.startswith((".overlap", ".origin")):
            assert there[path] == pytest.approx(value, rel=1e-7, abs=1e-7), path
    assert found.average.effect == pytest.approx(TRUTH[effect], abs=0.15)
    assert found.linear_predictor.slope.value == pytest.approx(2 / 3, abs=0.1)
    print(f"{len(passes)} passes")
    assert len(passes) <= 40


def test_crossings_are_found_in_few_looks():
    where = np.array([0.3, -2.0, 4.9, 20.0])
    functions = (
        lambda v: 5 * (v - where[0]),
        lambda v: np.expm1(v + 2),
        lambda v: np.arctan(v - 4.9),
        lambda v: v - 20,
    )
    search = crossings(np.zeros(4), np.full(4, 0.3), Bracket.unknown(-10.0, 10.0, 4))
    point, looks = next(search), 0
    while True:
        looks += 1
        try:
            point = search.send(np.array([f(v) for f, v in zip(functions, point, strict=True)]))
        except StopIteration as done:
            found = done.value
            break
    assert looks <= 8
    np.testing.assert_allclose(found[:3], where[:3], atol=0.02)
    assert found[3] == 10  # no crossing within bounds: the bound
    assert UNIT[QUANTILE] == pytest.approx(0.8416, abs=1e-4)


@every_effect
def test_rows_shown_twice_as_clusters_are_no_more_evidence(effect):
    frame = draw(1500, np.random.default_rng(2))
    once = assess(*loss_of(frame, effect, "both right"), draws=1, random_state=0)
    twice = frame.loc[np.repeat(frame.index, 2)]
    prediction, loss = loss_of(twice, effect, "both right", groups=np.repeat(np.arange(1500), 2))
    found = assess(prediction, loss, draws=1, random_state=0)
    assert found.average.effect == pytest.approx(once.average.effect, abs=0.01)
    assert found.average.interval == pytest.approx(once.average.interval, abs=0.02)
    one, two = found.linear_predictor.slope, once.linear_predictor.slope
    assert one.value == pytest.approx(two.value, abs=0.02)
    assert one.standard_error == pytest.approx(two.standard_error, rel=0.1)
