"""policy: what rules are worth, and whether choosing by a prediction beats treating no one or everyone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.compare import moments_of
from orthocal.assessment.limits import MOST_DRAWS
from orthocal.assessment.parts import Coefficient
from orthocal.decisions.allocation import Allocation, allocation, steps_of, unlimited
from orthocal.decisions.budget import budget_curve_of, walked
from orthocal.decisions.evidence import Averages, Measure, RuleEvidence, minus, over_best, ratio_of
from orthocal.decisions.people import NO_ONE, People, people_of, require_budget, within_budget
from orthocal.decisions.records import BudgetCurve, Policy, Ratio, Rule
from orthocal.decisions.sentences import recommendation_of
from orthocal.errors import require_inside, require_whole
from orthocal.folds import require_seed
from orthocal.losses.arm_scores import ArmScores


def policy(
    scores: ArmScores,
    predictions: Mapping[str, Any],
    *,
    cost: Any = 0.0,
    budget: float | None = None,
    spend: ArmScores | None = None,
    level: float = 0.95,
    draws: int = 200,
    random_state: Any = 0,
) -> Policy:
    r"""Estimate what treating no one, everyone and by each prediction is worth, and recommend one of these.

    A rule d gives each person the arm with the largest predicted gain less cost, or the control where none is above 0; with a
    budget, people and arms in the order of predicted gain per cost, until it is spent (`allocation`). Whatever a rule was made
    from, it is valued by the scores: its gain is the mean of :math:`\chi_{d} - \chi_0`, so the rows must be unseen by the model
    and by the map. Intervals of differences are paired (mathematics 10.8).

    Parameters
    ----------
    scores : ArmScores
        Of rows that the predictions have not seen; the first arm is the control.
    predictions : dict of str to array of shape (rows, treatments)
        Predicted effects against the control, in the order of ``scores.treatments``.
    cost : float, array of shape (rows,) or dict of these by arm, default 0
        What a treatment costs. Without a budget it is in units of the outcome, and taken off the gain.
    budget : float, optional
        Mean cost per person that may be spent, in any unit. Rules are then judged by their gain, and blanket rules that cost
        more are given to as many people, drawn at random, as it allows.
    spend : ArmScores, optional
        Scores of the same rows with what was spent as the outcome: for the return on spend. Costs are used where it is missing.
    level : float, default 0.95
    draws : int, default 200
        Multiplier draws behind the errors within a budget.
    random_state : default 0
        Seed of these.

    Returns
    -------
    Policy

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses.arm_scores import ArmScores
    >>> rng = np.random.default_rng(0)
    >>> effect = rng.standard_normal((2000, 2))
    >>> values = np.column_stack([np.zeros(2000), effect]) + rng.standard_normal((2000, 3))
    >>> scores = ArmScores(arms=("none", "call", "mail"), values=values, weight=np.ones(2000))
    >>> found = policy(scores, {"tau": effect}, cost={"call": 0.5, "mail": 0.1})
    >>> print(found.recommendation)
    Choose by tau: it gains 0.5259 (0.4702 to 0.5894) more per person than treating no one, the best blanket rule.
    """
    require_inside(level, 0, 1, "level")
    require_whole(draws, 2, "draws", MOST_DRAWS)
    require_seed(random_state)
    people = people_of(scores, predictions, cost, spend)
    if budget is None:
        allocations = {name: unlimited(prediction, people.cost) for name, prediction in people.predictions.items()}
        return _of_people(_without_limit(people.counted, level), people, allocations, None)
    require_budget(budget, people)
    people, shares = within_budget(people, budget)
    steps = {name: steps_of(prediction, people.cost) for name, prediction in people.predictions.items()}
    allocations = {name: allocation(bought, people.weight, budget) for name, bought in steps.items()}
    way = walked(people, steps, budget, draws, random_state)
    curve = budget_curve_of(way, people, level)
    judged = RulesJudged(way.evidence(-1, level), {"gain": 1.0}, shares, _baseline(people.counted, level), curve)
    return _of_people(judged, people, allocations, float(budget))


class About(NamedTuple):
    """Arms and rules of a policy, how many rows it is judged on, and whether arms cost anything, or spends are known."""

    arms: tuple[str, ...]
    blankets: tuple[str, ...]
    rows: int
    has_cost: bool
    has_spend: bool = False


@dataclass(frozen=True, eq=False)
class RulesJudged:
    """What is known of the rules: evidence, by which measures they are judged, and the share of people of blanket rules."""

    found: RuleEvidence
    measures: Mapping[str, float]
    shares: Floats
    baseline: Coefficient
    curve: BudgetCurve | None = None

    def parts(self, name: str) -> dict[Measure, float]:
        """Return the mixture of means that a rule is judged by."""
        return {(name, measure): count for measure, count in self.measures.items()}


def _without_limit(people: People, level: float) -> RulesJudged:
    found = _averages(people, rule_columns(people), level)
    return RulesJudged(found, LESS_COST, np.ones(len(people.arms)), _baseline(people, level))


LESS_COST = {"gain": 1.0, "cost": -1.0}
"""What rules are judged by where there is no budget."""
BASELINE = (NO_ONE, "outcome")
"""The mean outcome if no one is treated."""


def rule_columns(people: People) -> dict[Measure, Floats]:
    """Return what each rule gains, costs and promises of each row, where nothing limits it."""
    columns = _blanket_columns(people)
    for name, prediction in people.predictions.items():
        chosen = unlimited(prediction, people.cost)
        columns[name, "gain"] = chosen.expected(people.gains)
        columns[name, "promised"] = chosen.expected(prediction)
        columns[name, "cost"] = chosen.expected(people.cost)
        if people.spend is not None:
            columns[name, "spend"] = chosen.expected(people.spend)
    return columns


def _blanket_columns(people: People) -> dict[Measure, Floats]:
    columns: dict[Measure, Floats] = {}
    for k, name in enumerate(people.blankets):
        columns[name, "gain"], columns[name, "cost"] = people.gains[:, k], people.cost[:, k]
        if people.spend is not None:
            columns[name, "spend"] = people.spend[:, k]
    return columns


def _averages(people: People, columns: Mapping[Measure, Floats], level: float) -> Averages:
    weighted = [people.weight, *(people.weight * column for column in columns.values())]
    return Averages(moments_of(weighted, people.groups), list(columns), level)


def _baseline(people: People, level: float) -> Coefficient:
    return _averages(people, {BASELINE: people.baseline}, level).mixture({BASELINE: 1.0}).coefficient


def _of_people(judged: RulesJudged, people: People, allocations: dict[str, Allocation], budget: float | None) -> Policy:
    about = About(people.arms, people.blankets, len(people), people.has_cost, people.spend is not None)
    shares = {name: given.shares(people.weight, len(people.arms)) for name, given in allocations.items()}
    return replace(concluded_policy(judged, about, shares, budget), allocations=allocations, people=people)


def concluded_policy(judged: RulesJudged, about: About, shares: Mapping[str, Floats], budget: float | None) -> Policy:
    """Return the policy from what is known of its rules; `shares` of people get each arm by each prediction."""
    values = {NO_ONE: _rule(judged, NO_ONE, about, np.zeros(len(about.arms)))}
    for k, name in enumerate(about.blankets):
        values[name] = _rule(judged, name, about, judged.shares[k] * (np.arange(len(about.arms)) == k))
    best = max(values, key=lambda name: values[name].value.value)
    blankets, rivals = list(values), list(shares)
    for name, given in shares.items():
        values[name] = _rule(judged, name, about, given, blankets, rivals)
    return Policy(
        values=values,
        baseline=judged.baseline,
        best_blanket=best,
        recommendation=recommendation_of(values, best, about.rows),
        arms=about.arms,
        budget=budget,
        curve=judged.curve,
        level=judged.found.level,
        rows=about.rows,
    )


def _rule(
    judged: RulesJudged,
    name: str,
    about: About,
    shares: Floats,
    blankets: Sequence[str] = (),
    rivals: Sequence[str] = (),
) -> Rule:
    """Return the record of a rule; of one by prediction, with what only such rules have."""
    found, gain = judged.found, {(name, "gain"): 1.0}
    promised, parts = {(name, "promised"): 1.0}, judged.parts
    over = (
        over_best(found, parts(name), {one: parts(one) for one in blankets}, [*map(parts, rivals)])
        if blankets
        else None
    )
    return Rule(
        name=name,
        value=found.mixture(judged.parts(name)).coefficient,
        gain=found.mixture(gain).coefficient,
        cost=found.mixture({(name, "cost"): 1.0}).value,
        shares=dict(zip(about.arms, shares.tolist(), strict=True)),
        promised=found.mixture(promised).value if blankets else None,
        excess=found.mixture(minus(promised, gain)).coefficient if blankets else None,
        over_blanket=over[0] if over else None,
        blankets=over[1] if over else (),
        **(_ratios(found, name, about) if shares.any() else {}),
    )


def _ratios(found: RuleEvidence, name: str, about: About) -> dict[str, Ratio]:
    """Return gain per unit spent and its inverse, where anything costs something."""
    if not about.has_spend and not about.has_cost:
        return {}
    gain, spend = {(name, "gain"): 1.0}, {(name, "spend" if about.has_spend else "cost"): 1.0}
    return {"return_on_spend": ratio_of(found, gain, spend), "cost_per_gain": ratio_of(found, spend, gain)}
