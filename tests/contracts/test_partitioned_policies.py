"""Rules are worth the same on every engine; within a budget, to the bound that is stated."""

import numpy as np
import pytest
from dask import dataframe as dd

from orthocal import OrthocalError, Study
from orthocal.engines.partitioned import policies_summed
from tests.contracts.test_engines import ENGINES, divided, every_engine
from tests.contracts.test_engines import threads as threads  # noqa: PLC0414  # a fixture
from tests.contracts.test_partitioned_checks import ROLES
from tests.contracts.test_partitioned_choices import assert_alike, plain, rivals

pytestmark = [
    pytest.mark.filterwarnings("ignore::orthocal.engines.partitioned.passes.PartitionWarning"),
    pytest.mark.filterwarnings("ignore::orthocal.SkewWarning"),
    pytest.mark.usefixtures("threads"),
]


def people(weight=None):
    """Some of whom cost nothing."""
    frame, rng = rivals(weight), np.random.default_rng(2)
    return frame.assign(price=rng.uniform(0, 1, len(frame)) * (rng.random(len(frame)) < 0.9))


def both(engine, tmp_path, frame, roles, **settings):
    settings = {"holdout": "later", "method": "linear", **settings}
    table = ENGINES[engine](divided(frame, "uneven"), tmp_path)
    return (Study(data, **roles).policy(["tau", "half"], **settings) for data in (table, frame))


@every_engine
@pytest.mark.parametrize(("weight", "groups"), [(None, None), ("w", None), (None, "cluster")])
def test_policies_are_those_of_memory(tmp_path, engine, weight, groups):
    frame = people("whole" if weight else None)
    roles = {**ROLES, "covariates": [], "weight": weight, "groups": groups}
    for number, cost in enumerate(({1: 0.2}, "price")):
        (folder := tmp_path / str(number)).mkdir()
        there, here = both(engine, folder, frame, roles, cost=cost)
        assert_alike(plain(there.to_dict()), plain(here.to_dict()))
        assert there.predictions == here.predictions == ("tau", "tau, calibrated", "half", "half, calibrated")


def values_of(decision):
    """Everything but errors and intervals."""
    found = plain({name: one for name, one in decision.to_dict().items() if name in ("values", "baseline")})
    words = ("standard_error", "interval", "return_on_spend", "cost_per_gain")
    return {path: one for path, one in found.items() if not any(word in path for word in words)}


@every_engine
@pytest.mark.parametrize(("weight", "groups"), [(None, None), ("w", None), (None, "cluster")])
def test_within_a_budget_values_are_those_of_memory_where_cells_are_rows(tmp_path, engine, weight, groups):
    """And errors by the normal approximation are near those of 2,000 draws."""
    frame = people("whole" if weight else None)
    roles = {**ROLES, "covariates": [], "weight": weight, "groups": groups}
    there, here = both(engine, tmp_path, frame, roles, cost="price", budget=0.1, draws=2000)
    assert_alike(values_of(there), values_of(here))
    assert (there.best_blanket, there.budget) == (here.best_blanket, 0.1)
    for name, rule in here.values.items():
        own = there.values[name]
        for one, other in ((own.value, rule.value), (own.excess, rule.excess), (own.over_blanket, rule.over_blanket)):
            if other is not None and other.standard_error > 0:
                assert one.standard_error == pytest.approx(other.standard_error, rel=0.1), name
    assert "normal approximation" in there.summary()


def test_treating_people_at_random_costs_more_or_less_by_chance_too(tmp_path):
    """Where gains are large, the error of what a budget buys is mostly that of the mean cost."""
    frame = people()
    frame = frame.assign(
        y=frame.y + 3 * frame.a, **{name: frame[name] + 3 for name in ("outcome_treated", "tau", "half")}
    )
    there, here = both("local", tmp_path, frame, {**ROLES, "covariates": []}, cost="price", budget=0.1, draws=2000)
    assert here.best_blanket.endswith("at random")
    one, other = (found.values[here.best_blanket].value.standard_error for found in (there, here))
    assert one == pytest.approx(other, rel=0.1)


@pytest.mark.parametrize("cost", [0.5, "price"])
def test_on_a_coarse_grid_gains_are_within_the_bound(tmp_path, monkeypatch, cost):
    monkeypatch.setattr(policies_summed, "CELLS", 40)
    there, here = both("local", tmp_path, people(), {**ROLES, "covariates": []}, cost=cost, budget=0.1, draws=2)
    bound = float(there.note.split(";")[0].split()[-1])
    gaps = [abs(there.values[name].gain.value - here.values[name].gain.value) for name in there.predictions]
    assert 1e-6 < max(gaps) <= bound * (1 + 1e-3) < 0.05
    spent = [there.values[name].cost for name in there.predictions]
    assert spent == pytest.approx([0.1] * 4)


def test_budgets_that_buy_all_that_gains_or_nothing(tmp_path):
    roles = {**ROLES, "covariates": []}
    for number, budget in enumerate((0.45, 0.0)):
        (folder := tmp_path / str(number)).mkdir()
        there, here = both("local", folder, people(), roles, cost="price", budget=budget, draws=2)
        assert_alike(values_of(there), values_of(here))


def test_what_a_policy_on_partitions_refuses():
    frame = people()
    study = Study(dd.from_pandas(frame, npartitions=2), **ROLES, covariates=[])
    for settings, message in [
        ({"spend": "price"}, "`spend` must have rows in memory"),
        ({"cost": frame.price.to_numpy()}, "`cost` must be a number or a column on Dask"),
        ({"cost": -1.0}, "`cost` must be at least 0"),
        ({"cost": {2: 1.0}}, "`cost` by arm must name each of 1 and nothing else"),
        ({"cost": 0.1, "budget": 0.5}, "`budget` must not exceed 0.1"),
        ({"cost": "none"}, "none"),
    ]:
        with pytest.raises(OrthocalError, match=message):
            study.policy("tau", **settings)
    found = study.policy("tau", cost=0.2, holdout=0)
    assert found.predictions == ("tau",)
    with pytest.raises(OrthocalError, match="A table of top shares must have rows in memory"):
        found.table("tau")


def test_a_policy_warns_of_what_failed():
    frame = people().assign(tau=lambda table: table.y)
    study = Study(dd.from_pandas(frame, npartitions=2), **ROLES, covariates=[])
    found = study.policy("tau", cost=0.2, holdout="later", method="linear")
    assert found.recommendation.startswith(
        "Do not rely on this before the failed check is resolved: outcome as prediction"
    )
