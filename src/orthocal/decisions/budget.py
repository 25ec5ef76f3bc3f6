"""Curves of what rules gain over the budget, with standard errors by a multiplier bootstrap (mathematics 10.8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import norm

from orthocal.arrays import Floats, Integers
from orthocal.assessment.sweeps import cluster_sums, effective_number
from orthocal.decisions.allocation import Steps, step_values, steps_of
from orthocal.decisions.evidence import Draws, Measure, as_t_quantile
from orthocal.decisions.people import People, affordable
from orthocal.decisions.records import BudgetCurve

POINTS = 101
"""Budgets at which the curves are drawn, from 0 to the spend of the rule that spends most."""
SEGMENTS = 1024
"""Runs of steps that are summed in one under multiplier weights; a budget that ends inside one buys it in part."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """Steps of a rule in the order of buying, with what each adds.

    Parameters
    ----------
    row : array
        Whose step it is.
    columns : dict of str to array
        What a step adds to the cost, which comes first, and to whatever else is measured.
    starts : array
        First steps of the runs that are bought together.
    free : bool
        Whether the first run costs nothing, so that it is bought at any budget.
    """

    row: Integers
    columns: dict[str, Floats]
    starts: Integers
    free: bool

    def at(self, weight: Floats, total: float, budgets: Floats) -> Floats:
        """Return the mean per person of each measure at each budget, when rows have these weights."""
        held = weight[self.row]
        path = np.zeros((len(self.columns), len(self.starts) + 1))
        for place, column in zip(path, self.columns.values(), strict=True):
            np.cumsum(np.add.reduceat(held * column, self.starts), out=place[1:])
        path = path[:, int(self.free) :] / total
        return np.array([np.interp(budgets, path[0], one) for one in path])


def ladder_of(steps: Steps, people: People) -> Ladder:
    """Return the steps of a rule with their costs, estimated and predicted gains, who is treated, and what is spent."""
    columns = {"cost": steps.cost, "gain": step_values(people.gains, steps), "promised": steps.gain}
    columns["treated"] = (steps.previous == 0).astype(np.float64)
    if people.spend is not None:
        columns["spend"] = step_values(people.spend, steps)
    ends = steps.ends
    return Ladder(steps.row, columns, np.concatenate([[0], ends[:-1] + 1])[: len(ends)], steps.free > 0)


def in_segments(ladder: Ladder) -> Ladder:
    """Return a ladder whose runs are summed in few segments; steps without a cost stay one segment."""
    starts = ladder.starts
    if len(starts) <= SEGMENTS:
        return ladder
    wanted = np.linspace(1, len(starts) - 1, SEGMENTS).astype(np.int64)
    return Ladder(ladder.row, ladder.columns, starts[np.unique(np.append(0, wanted))], ladder.free)


@dataclass(frozen=True, eq=False)
class Blankets:
    """Giving everyone the same treatment, or as many people, drawn at random, as the budget allows."""

    names: tuple[str, ...]
    columns: dict[str, Floats]

    @classmethod
    def of(cls, people: People) -> Blankets:
        """Of people."""
        columns = {"cost": np.asfortranarray(people.cost), "gain": people.gains}
        if people.spend is not None:
            columns["spend"] = people.spend
        return cls(people.blankets, columns)

    def at(self, weight: Floats, total: float, budgets: Floats) -> dict[str, Floats]:
        """Return the mean per person of each measure, an array of shape (treatments, budgets)."""
        means = {name: weight @ column / total for name, column in self.columns.items()}
        share = affordable(means["cost"], budgets)
        return {name: mean[:, None] * share for name, mean in means.items()}


def multipliers(people: People, draws: int, random_state: Any) -> Iterator[Floats]:
    """Yield weights of the rows times exponential(1) variables, one a row or a cluster, whatever the order of the rows."""
    counts = people.weight > 0
    unit = np.zeros(len(people), dtype=np.int64)
    unit[counts] = _units(people.counted)
    rng, size = np.random.default_rng(random_state), int(unit.max()) + 1
    for _ in range(draws):
        yield people.weight * rng.standard_exponential(size)[unit]


def _units(people: People) -> Integers:
    """Return the number of each row's cluster, or the place of the row when all are sorted by what they hold."""
    if people.groups is not None:
        return np.unique(people.groups, return_inverse=True)[1].astype(np.int64, copy=False)
    held = [*(columns.sum(axis=1) for columns in people.predictions.values()), *people.gains.T, people.baseline]
    place = np.empty(len(people), dtype=np.int64)
    place[np.lexsort(held)] = np.arange(len(people))
    return place


def effective_units(people: People) -> float:
    """Return Kish's effective number of rows, or of clusters."""
    weight = people.weight
    if people.groups is not None:
        weight = cluster_sums(people.groups, [weight])[1][0]
    return effective_number(float(weight.sum()), float(weight @ weight))


@dataclass(frozen=True, eq=False)
class Walked:
    """Means of every rule at every budget: as estimated, and under each draw of the weights.

    Parameters
    ----------
    budgets : array of shape (budgets,)
    keys : list of Measure
    value : array of shape (keys, budgets)
    draws : array of shape (draws, keys, budgets)
    effective : float
    """

    budgets: Floats
    keys: list[Measure]
    value: Floats
    draws: Floats
    effective: float

    def evidence(self, place: int, level: float) -> Draws:
        """Return what is known at one of the budgets."""
        return Draws(self.keys, self.value[:, place], self.draws[:, :, place], self.effective, level)


def walked(people: People, steps: Mapping[str, Steps], budget: float | None, draws: int, random_state: Any) -> Walked:
    """Walk every rule up its budgets, with the same draws for all, so that differences are paired; `budget` is the last point."""
    ladders = {name: ladder_of(bought, people) for name, bought in steps.items()}
    total = float(people.weight.sum())
    spent = [float(people.weight[one.row] @ one.columns["cost"]) / total for one in ladders.values()]
    budgets = np.append(np.linspace(0, max(spent), POINTS), max(spent) if budget is None else budget)
    blankets = Blankets.of(people)
    value = _measured(ladders, blankets, people.weight, budgets)
    short = {name: in_segments(one) for name, one in ladders.items()}
    found = np.empty((draws, len(value), len(budgets)))
    for place, weight in enumerate(multipliers(people, draws, random_state)):
        found[place] = list(_measured(short, blankets, weight, budgets).values())
    return Walked(budgets, list(value), np.array(list(value.values())), found, effective_units(people))


def _measured(
    ladders: Mapping[str, Ladder], blankets: Blankets, weight: Floats, budgets: Floats
) -> dict[Measure, Floats]:
    """Return every measure of every rule over budgets, under weights."""
    total = float(weight.sum())
    found: dict[Measure, Floats] = {}
    for name, ladder in ladders.items():
        for measure, means in zip(ladder.columns, ladder.at(weight, total, budgets), strict=True):
            found[name, measure] = means
    for measure, table in blankets.at(weight, total, budgets).items():
        found.update({(name, measure): means for name, means in zip(blankets.names, table, strict=True)})
    return found


def budget_curve_of(way: Walked, people: People, level: float) -> BudgetCurve:
    """Return the curves with their bands, and those of paired differences, from all points but the last."""
    names, value = list(people.predictions), dict(zip(way.keys, way.value[:, :-1], strict=True))
    drawn = {name: way.draws[:, way.keys.index((name, "gain")), :-1] for name in names}
    rules = {
        name: {
            **banded(value[name, "gain"], drawn[name], way.effective, level),
            "predicted": value[name, "promised"],
            "share_treated": value[name, "treated"],
        }
        for name in names
    }
    differences = {
        f"{two} - {one}": banded(value[two, "gain"] - value[one, "gain"], drawn[two] - drawn[one], way.effective, level)
        for one, two in combinations(names, 2)
    }
    blankets = {name: value[name, "gain"] for name in people.blankets}
    return BudgetCurve(budget=way.budgets[:-1], rules=rules, differences=differences, blankets=blankets)


def banded(value: Floats, draws: Floats, effective: float, level: float) -> dict[str, Floats]:
    """Return a curve with standard errors, pointwise intervals and the band that holds at all points at once (sup-t)."""
    rest = draws - draws.mean(axis=0)
    deviation = np.sqrt((rest**2).sum(axis=0) / (len(rest) - 1))
    error = deviation * np.sqrt(effective / (effective - 1))
    pointwise = float(norm.ppf((1 + level) / 2))
    noisy = deviation > 1e-12 * max(float(deviation.max()), 1e-300)
    largest = np.abs(rest[:, noisy] / deviation[noisy]).max(axis=1, initial=0.0)
    together = max(float(np.quantile(largest, level)), pointwise)
    reach, wide = (as_t_quantile(critical, effective) * error for critical in (pointwise, together))
    return {
        "gain": value,
        "standard_error": error,
        "lower": value - reach,
        "upper": value + reach,
        "band_lower": value - wide,
        "band_upper": value + wide,
    }


def curve_over_budgets(people: People, *, level: float = 0.95, draws: int = 200, random_state: Any = 0) -> BudgetCurve:
    """Return what each rule gains over the budget, people in the order of predicted gain per cost.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.decisions.people import people_of
    >>> from orthocal.losses.arm_scores import ArmScores
    >>> scores = ArmScores(arms=("none", "mail"), values=np.array([[0.0, 3.0], [0.0, 1.0]]), weight=np.ones(2))
    >>> curve = curve_over_budgets(people_of(scores, {"tau": [2.0, 1.0]}, cost=1.0))
    >>> curve.budget[[0, 50, 100]], curve.rules["tau"]["gain"][[0, 50, 100]]
    (array([0. , 0.5, 1. ]), array([0. , 1.5, 2. ]))
    """
    steps = {name: steps_of(prediction, people.cost) for name, prediction in people.predictions.items()}
    return budget_curve_of(walked(people, steps, None, draws, random_state), people, level)
