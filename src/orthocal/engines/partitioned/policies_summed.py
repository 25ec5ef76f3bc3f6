"""What rules by predictions are worth, from sums over partitions; within a budget, people are bought by cells of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.compare import Clusters, Moments, moments_of
from orthocal.decisions.evidence import Averages, Measure
from orthocal.decisions.people import People, blankets_within, people_of, require_spendable
from orthocal.decisions.policy import BASELINE, LESS_COST, About, RulesJudged, concluded_policy, rule_columns
from orthocal.decisions.records import Policy
from orthocal.engines.partitioned.budget_cells import (
    MEASURES,
    TREATED,
    RatioCells,
    Reach,
    cells_of,
    gain_per_cost,
    reach_of,
)
from orthocal.engines.partitioned.grid_cells import CELLS
from orthocal.engines.partitioned.partition_loss import Job, fitted_of, observed
from orthocal.engines.partitioned.passes import reduced
from orthocal.engines.partitioned.rivals_summed import RivalColumn, with_columns_of
from orthocal.engines.partitioned.sketch import Sketch
from orthocal.engines.partitioned.source import Source
from orthocal.engines.protocol import PartitionedTable
from orthocal.formats import number
from orthocal.observations import as_numbers


class PolicyPlan(NamedTuple):
    """Rules by predictions, and what treating a person costs: a number or a column."""

    rules: Mapping[str, RivalColumn]
    cost: float | str


@dataclass(frozen=True, eq=False)
class RuleSums:
    """Moments of what rules gain, cost and promise, weights first, and how many rows there are."""

    keys: tuple[Measure, ...]
    sums: Moments | Clusters
    rows: int
    about: tuple[tuple[str, ...], tuple[str, ...]]
    has_cost: bool

    def merge(self, other: RuleSums) -> RuleSums:
        """Of both."""
        both: Any = self.sums.merge(other.sums)  # type: ignore[arg-type]
        return replace(self, sums=both, rows=self.rows + other.rows, has_cost=self.has_cost or other.has_cost)

    def mean(self, *key: str) -> float:
        """Return the mean of a measure of a rule."""
        place = 1 + self.keys.index((key[0], key[1]))
        return float(self.sums.total[place] / self.sums.total[0])

    def judged(self, measures: Mapping[str, float], shares: Floats, level: float) -> RulesJudged:
        """Return what is known of the rules."""
        found = Averages(self.sums, self.keys, level)
        return RulesJudged(found, measures, shares, found.mixture({BASELINE: 1.0}).coefficient)

    def conclusion(
        self, measures: Mapping[str, float], shares: Floats, blankets: tuple[str, ...], settings: Mapping[str, Any]
    ) -> Policy:
        """Return the policy."""
        own = [key[0] for key in self.keys if key[1] == "promised"]
        treated = {name: np.array([self.mean(name, TREATED)]) for name in own}
        about = About(self.about[0], blankets, self.rows, self.has_cost)
        return concluded_policy(self.judged(measures, shares, settings["level"]), about, treated, settings["budget"])


def summed_policy(source: Source, table: PartitionedTable, plan: PolicyPlan, settings: Mapping[str, Any]) -> Policy:
    """Value rules on the rows of a table, from sums.

    Parameters
    ----------
    source : Source
        With the job to be done on the rows.
    table : PartitionedTable
        The rows that rules are valued on, with all columns.
    plan : PolicyPlan
    settings : mapping
        With level and budget.
    """
    columns = (plan.cost,) if isinstance(plan.cost, str) else ()
    own = with_columns_of(source, table, list(plan.rules.values()), *columns)
    found = reduced(own.table, _unlimited, RuleSums.merge, own.job, plan)
    if settings["budget"] is None:
        return found.conclusion(LESS_COST, np.ones(1), found.about[1], settings)
    return _within(own, plan, found, settings)


def people_in(part: Any, job: Job, plan: PolicyPlan) -> People:
    """Return the people of a partition, with scores, predictions and costs; those of weight 0 are left out."""
    rows = observed(part, job.roles, job.encoding)
    effect: Any = job.effect
    scores = effect.scores(rows, fitted_of(part, rows, job))
    every = replace(job.roles, sample_weight=None)
    predictions = {name: rule.values(part, every) for name, rule in plan.rules.items()}
    cost = as_numbers(part[plan.cost], plan.cost) if isinstance(plan.cost, str) else plan.cost
    return people_of(scores, predictions, cost).counted


def _unlimited(part: Any, job: Job, plan: PolicyPlan) -> RuleSums:
    """Question: what rules are worth that nothing limits."""
    people = people_in(part, job, plan)
    columns = rule_columns(people)
    columns |= {(name, TREATED): (one > people.cost)[:, 0].astype(float) for name, one in people.predictions.items()}
    return _summed(people, columns, len(part))


def _summed(people: People, columns: Mapping[Measure, Floats], rows: int) -> RuleSums:
    every = {**columns, BASELINE: people.baseline}
    weighted = [people.weight, *(people.weight * column for column in every.values())]
    sums = moments_of(weighted, people.groups)
    return RuleSums(tuple(every), sums, rows, (people.arms, people.blankets), people.has_cost)


def _within(source: Source, plan: PolicyPlan, found: RuleSums, settings: Mapping[str, Any]) -> Policy:
    """Value rules within a budget: a pass for the grid of each rule, one for its cells, and one for errors."""
    budget, (_, everyone) = settings["budget"], found.about
    mean_cost = found.mean(everyone[0], "cost")
    require_spendable(budget, mean_cost)
    blankets, shares = blankets_within(everyone, np.array([mean_cost]), budget)
    sketches = reduced(source.table, _sketches, _both_sketches, source.job, plan, source.kept)
    edges = {name: _edges(one) for name, one in sketches.items()}
    cells = reduced(source.table, _cells, _both_cells, source.job, plan, edges)
    reach = {name: reach_of(one, budget) for name, one in cells.items()}
    dear = Reach(0, float(shares[0]), _blanket_marginal(found, everyone[0], shares[0]), 0.0)
    limit = Limit(budget, edges, reach, blankets[0], dear)
    sums = reduced(source.table, _limited, RuleSums.merge, source.job, plan, limit)
    decision = sums.conclusion({"gain": 1.0}, shares, blankets, settings)
    bound = max(one.bound for one in reach.values())
    note = (
        f"people are bought by cells of predicted gain per cost, which moves gains by at most {number(bound)}; intervals by "
        "the normal approximation"
    )
    return replace(decision, note=note)


class Limit(NamedTuple):
    """A budget, the cells of each rule and how far it reaches down them, and the blanket rule that it allows."""

    budget: float
    edges: Mapping[str, Floats]
    reach: Mapping[str, Reach]
    blanket: str
    everyone: Reach


def _blanket_marginal(found: RuleSums, everyone: str, share: float) -> Floats:
    """What one more unit of cost adds to treating people at random: gain over cost, and nothing where all are treated."""
    per_cost = found.mean(everyone, "gain") / found.mean(everyone, "cost")
    return np.array([1.0, per_cost, 0.0, 0.0]) * float(share < 1)


def _edges(sketch: Sketch | None) -> Floats:
    return np.empty(0) if sketch is None else sketch.grid(CELLS)


def _sketches(part: Any, job: Job, plan: PolicyPlan, keep: int) -> dict[str, Sketch | None]:
    people = people_in(part, job, plan)
    found: dict[str, Sketch | None] = {}
    for name, prediction in people.predictions.items():
        ratio = gain_per_cost(prediction[:, 0], people.cost[:, 0])
        some = (ratio > 0) & np.isfinite(ratio)
        found[name] = Sketch.of(ratio[some], people.weight[some], keep) if some.any() else None
    return found


def _both_sketches(one: dict[str, Sketch | None], other: dict[str, Sketch | None]) -> dict[str, Sketch | None]:
    return {
        name: b if a is None else a if b is None else a.merge(b)
        for name, (a, b) in ((name, (one[name], other[name])) for name in one)
    }


def _cells(part: Any, job: Job, plan: PolicyPlan, edges: Mapping[str, Floats]) -> dict[str, RatioCells]:
    people = people_in(part, job, plan)
    return {name: RatioCells.of(people, name, own) for name, own in edges.items()}


def _both_cells(one: dict[str, RatioCells], other: dict[str, RatioCells]) -> dict[str, RatioCells]:
    return {name: own.merge(other[name]) for name, own in one.items()}


def _limited(part: Any, job: Job, plan: PolicyPlan, limit: Limit) -> RuleSums:
    """Question: what rules are worth within a budget, linearised: a row that costs more leaves less for the last ones."""
    people = people_in(part, job, plan)
    cost, gain = people.cost[:, 0], people.gains[:, 0]
    bought = {name: _bought(people, name, limit) for name in people.predictions}
    columns: dict[Measure, Floats] = {}
    everyone = {"cost": cost, "gain": gain}
    for measure, column in everyone.items():
        columns[limit.blanket, measure] = _linear(limit.everyone, limit.budget, measure, column, cost)
    for name, share in bought.items():
        own = {**everyone, "promised": people.predictions[name][:, 0], TREATED: np.ones(len(people))}
        for measure, column in own.items():
            columns[name, measure] = _linear(limit.reach[name], limit.budget, measure, column, cost, share)
    return _summed(people, columns, len(part))


def _bought(people: People, name: str, limit: Limit) -> Floats:
    """Return the share of each row that the budget buys."""
    reach = limit.reach[name]
    cell = cells_of(people.predictions[name][:, 0], people.cost[:, 0], limit.edges[name])
    share = np.where(cell < reach.cell, 1.0, np.where(cell == reach.cell, reach.share, 0.0))
    return np.where(cell == len(limit.edges[name]) + 2, 0.0, share)


def _linear(
    reach: Reach, budget: float, measure: str, column: Floats, cost: Floats, share: Floats | None = None
) -> Floats:
    r"""Return :math:`s_i m_i - \lambda (s_i c_i - B)`: its mean is that of the rule, its deviation what a budget leaves of it."""
    bought = reach.share if share is None else share
    return np.asarray(bought * column - reach.marginal[MEASURES.index(measure)] * (bought * cost - budget))
