"""The rows that a policy is judged on: scores, predictions and costs, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthocal.arrays import ROUNDING, Booleans, Floats, Integers, as_floats
from orthocal.errors import LARGEST, OrthocalError, is_number, require_finite, require_rows, require_weights
from orthocal.formats import listed, shown
from orthocal.losses.arm_scores import ArmScores, require_scores_of_arms


@dataclass(frozen=True, eq=False, kw_only=True)
class People:
    """Rows with one column for each treatment.

    Parameters
    ----------
    arms : tuple of str
        The treatments, without the control.
    baseline : array of shape (rows,)
        Score of the control.
    gains, cost : array of shape (rows, treatments)
        Scores less that of the control, and what each treatment costs.
    predictions : dict of str to array of shape (rows, treatments)
    spend : array of shape (rows, treatments) or None
        Scores of what was spent, less that of the control.
    weight, groups : array of shape (rows,)
        Sample weights, and cluster codes or None.
    blankets : tuple of str
        Names of giving everyone the same treatment.
    """

    arms: tuple[str, ...]
    baseline: Floats
    gains: Floats
    cost: Floats
    predictions: dict[str, Floats]
    spend: Floats | None
    weight: Floats
    groups: Integers | None
    blankets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.weight)

    def __getitem__(self, rows: Booleans) -> People:
        return replace(
            self,
            baseline=self.baseline[rows],
            gains=by_columns(self.gains[rows]),
            cost=self.cost[rows],
            predictions={name: by_columns(columns[rows]) for name, columns in self.predictions.items()},
            spend=None if self.spend is None else by_columns(self.spend[rows]),
            weight=self.weight[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    @property
    def counted(self) -> People:
        """Those of the rows that have weight."""
        return self if self.weight.min() > 0 else self[self.weight > 0]

    @property
    def has_cost(self) -> bool:
        """Whether anything costs something."""
        return bool(self.cost.any())

    def mean(self, values: Floats) -> Floats:
        """Return means by weight."""
        return np.asarray(self.weight @ values / self.weight.sum())


NO_ONE = "no one"


def people_of(
    scores: ArmScores, predictions: Mapping[str, Any], cost: Any = 0.0, spend: ArmScores | None = None
) -> People:
    """Return scores, predictions and costs of the same rows, checked."""
    require_scores_of_arms(scores)
    require_rows(len(scores))
    require_weights(scores.weight)
    if not isinstance(predictions, Mapping) or not predictions:
        raise OrthocalError(
            f"`predictions` must map names to at least one prediction; it is {shown(predictions)}. Pass {{name: array}}."
        )
    people = People(
        arms=tuple(str(arm) for arm in scores.treatments),
        baseline=scores.values[:, 0],
        gains=by_columns(scores.gains),
        cost=costs_of(cost, scores.treatments, len(scores)),
        predictions={str(name): _prediction(name, given, scores) for name, given in predictions.items()},
        spend=None if spend is None else _spend(spend, scores),
        weight=scores.weight,
        groups=scores.groups,
        blankets=tuple(blanket_name(arm, scores) for arm in scores.treatments),
    )
    taken = sorted({NO_ONE, *people.blankets} & set(people.predictions))
    if taken:
        raise OrthocalError(
            f"A prediction must not have the name of a blanket rule; one is {shown(taken[0])}. Rename it."
        )
    return people


def blanket_name(arm: Any, scores: ArmScores) -> str:
    """Return the name of giving everyone an arm; of the only one, without its name."""
    return "everyone" if len(scores.treatments) == 1 else f"{arm} for everyone"


def by_columns(values: Any) -> Floats:
    """Return a table whose columns are contiguous."""
    return np.asfortranarray(values, dtype=np.float64)


def _prediction(name: str, given: Any, scores: ArmScores) -> Floats:
    columns, arms = as_floats(given, f"predictions[{shown(name)}]"), scores.treatments
    if columns.ndim == 1 and len(arms) == 1:
        columns = columns[:, None]
    if columns.shape != (len(scores), len(arms)):
        named = listed(arms)
        raise OrthocalError(
            f"`predictions[{shown(name)}]` must have {len(scores)} rows and one column for each arm ({named}); its shape is "
            f"{columns.shape}. Give the predicted effect of every arm against {scores.control}."
        )
    columns = by_columns(columns)
    for k, arm in enumerate(arms):
        require_finite(columns[:, k], f"predictions[{shown(name)}] of {shown(arm)[1:-1]}")
    return columns


def costs_of(cost: Any, arms: Sequence[Any], n: int) -> Floats:
    """Return what each treatment costs each of n people; numbers are not copied for every row."""
    if isinstance(cost, Mapping):
        wrong = [arm for arm in [*cost, *arms] if arm not in cost or arm not in arms]
        if wrong:
            named = listed(map(repr, arms))
            raise OrthocalError(
                f"`cost` by arm must name each of {named} and nothing else; {shown(wrong[0])} breaks that."
            )
        columns = [_cost(cost[arm], n, f"cost[{shown(arm)}]") for arm in arms]
    else:
        columns = [_cost(cost, n, "cost")] * len(arms)
    if all(column.ndim == 0 for column in columns):
        return np.broadcast_to(np.array(columns), (n, len(arms)))
    return by_columns(np.stack([np.broadcast_to(column, n) for column in columns], axis=1))


def _cost(given: Any, n: int, name: str) -> Floats:
    column = as_floats(given, name, "be a number or one number per row")
    if column.shape not in ((), (n,)):
        raise OrthocalError(
            f"`{name}` must be a number or one number per row; its shape is {column.shape} for {n} rows."
        )
    wrong = np.flatnonzero(~((column <= LARGEST) & (column >= 0)))
    if len(wrong):
        where = f"row {wrong[0]} is" if column.ndim else "it is"
        raise OrthocalError(
            f"`{name}` must be at least 0, finite and without gaps; {where} {np.atleast_1d(column)[wrong[0]]}. "
            "Fill it in or leave such rows out."
        )
    return column


def _spend(spend: ArmScores, scores: ArmScores) -> Floats:
    require_scores_of_arms(spend, "spend")
    if spend.arms != scores.arms or len(spend) != len(scores):
        raise OrthocalError(
            f"`spend` must have the rows and arms of the scores, {len(scores)} and {scores.arms}; it has {len(spend)} and "
            f"{spend.arms}. Score what was spent as an outcome of the same study."
        )
    return by_columns(spend.gains)


def require_budget(budget: float, people: People) -> None:
    """A budget can be spent on these people."""
    require_spendable(budget, float(people.mean(people.cost.max(axis=1))))


def require_spendable(budget: float, most: float) -> None:
    """A budget can be spent: it is a number of at least 0 and at most what the most expensive arm for everyone costs."""
    if not (is_number(budget) and budget >= 0):
        raise OrthocalError(
            f"`budget` must be a number of at least 0, the mean cost per person; it is {shown(budget)}."
        )
    if most == 0:
        raise OrthocalError(
            f"`budget` must come with a `cost`; it is {budget} and every cost is 0. Give what arms cost."
        )
    if budget > most * (1 + ROUNDING):
        raise OrthocalError(
            f"`budget` must not exceed {most:.6g}, the mean cost of giving everyone the most expensive arm; it is {budget}. "
            "Leave it out if there is no limit."
        )


def affordable(cost: Floats, budgets: Floats) -> Floats:
    """Return the share of people that can be treated at each mean cost (rows) and budget (columns)."""
    dear = cost[:, None] > budgets
    return np.where(dear, budgets / np.where(dear, cost[:, None], 1.0), 1.0)


def within_budget(people: People, budget: float) -> tuple[People, Floats]:
    """Return people with the names of blanket rules that a budget allows, and the shares of people they reach."""
    names, shares = blankets_within(people.blankets, people.mean(people.cost), budget)
    return replace(people, blankets=names), shares


def blankets_within(names: Sequence[str], cost: Floats, budget: float) -> tuple[tuple[str, ...], Floats]:
    """Return blanket rules of these mean costs as a budget allows them, by name, and the shares of people they reach."""
    shares = affordable(cost, np.array([budget]))[:, 0]
    named = zip(names, shares.tolist(), strict=True)
    return tuple(
        n if share == 1 else f"{n.removesuffix('everyone')}{share:.0%} at random" for n, share in named
    ), shares
