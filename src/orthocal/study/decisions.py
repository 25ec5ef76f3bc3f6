"""What decisions by the predictions of a study are worth, as they are and calibrated, on rows that no map saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.assessment.parts import Check
from orthocal.decisions import Policy, policy
from orthocal.decisions.people import costs_of, require_spendable
from orthocal.engines.partitioned.policies_summed import PolicyPlan, summed_policy
from orthocal.engines.partitioned.rivals_summed import RivalColumn
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.losses import ArmScores
from orthocal.maps import IdentityMap
from orthocal.observations import as_numbers
from orthocal.study.choice import require_names
from orthocal.study.choice_words import calibrated_name
from orthocal.study.columns import require_columns_in, require_name


def checked_costs(rows: Any, arms: Sequence[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a policy with columns looked up and costs checked, before anything is learnt."""
    spend, budget = settings["spend"], settings["budget"]
    cost = costs_of(_looked_up(rows, settings["cost"]), arms, rows.count)
    if budget is not None:
        require_spendable(budget, float(np.average(cost.max(axis=1), weights=rows.engine.observations.weight)))
    if spend is not None:
        require_name(spend, "spend")
    if spend in rows.study.roles.covariates:
        raise OrthocalError(
            f"`spend` must not name a covariate, for it is an outcome; {shown(spend)} is one. Leave it out of the covariates."
        )
    return {
        **settings,
        "cost": cost,
        "spend": None if spend is None else _column(rows, spend, "spend"),
    }


def decided(
    engine: Any,
    scores: ArmScores,
    predictions: Mapping[str, Floats],
    calibrated: Callable[[Floats], Floats],
    sides: tuple[Integers, Integers],
    settings: Mapping[str, Any],
) -> Policy:
    """Value rules by predictions, as they are and calibrated.

    Parameters
    ----------
    engine : MemoryEngine
    scores : ArmScores
        Of all rows.
    predictions : mapping of str to array of shape (rows, treatments)
    calibrated : callable
        Returns the calibrated predictions of all rows, by a map that was fitted on the first side.
    sides : (array, array)
        Rows that maps are fitted on, and rows that rules are valued on; the same where none are held out, and then nothing is
        calibrated.
    settings : mapping
        Of `policy`, as `checked_costs` returns them.
    """
    require_names(predictions)
    fitted, judged = sides
    rules = dict(predictions)
    if len(fitted) < len(scores):
        rules = {
            name: values
            for own, as_it_is in predictions.items()
            for name, values in ((own, as_it_is), (calibrated_name(own), calibrated(as_it_is)))
        }
    cost, spend = settings["cost"][judged], settings["spend"]
    return policy(
        scores[judged],
        {name: values[judged] for name, values in rules.items()},
        **{
            **settings,
            "cost": {arm: cost[:, k] for k, arm in enumerate(scores.treatments)},
            "spend": None if spend is None else engine.scores_of(spend)[judged],
        },
    )


def checked_costs_in_partitions(rows: Any, arm: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a policy with the cost as a number or a column, before anything is learnt."""
    cost, budget = settings["cost"], settings["budget"]
    if isinstance(cost, Mapping):
        costs_of(dict.fromkeys(cost, 0.0), (arm,), 1)  # each arm is named, and no other
        cost = cost[arm]
    if settings["spend"] is not None:
        raise OrthocalError(
            f"`spend` must have rows in memory, for its regressions are learnt; this study's are {rows.table.place}. Take a "
            f"sample: Study({rows.table.sampling}, ...)."
        )
    if isinstance(cost, str):
        require_columns_in(rows.columns, {cost: "cost"})
    elif np.ndim(cost) > 0:
        raise OrthocalError(
            f"`cost` must be a number or a column {rows.table.place}; it is an array. Add it to the table."
        )
    else:
        (most,) = costs_of(cost, (arm,), 1)[0]
        if budget is not None:
            require_spendable(budget, float(most))
    return {**settings, "cost": cost}


def decided_in_partitions(
    rows: Any, named: Mapping[str, str], method: Any, holdout: Any, settings: Mapping[str, Any]
) -> Policy:
    """Value rules by columns of predictions, as they are and calibrated, from sums over partitions."""
    require_names(named)
    engine, held, plain = rows.engine, rows.held_out(holdout), IdentityMap()
    trials = {name: engine.trial(column, method, held, ()) for name, column in named.items()} if held else {}
    rules = {name: RivalColumn(column, plain) for name, column in named.items()}
    for name, trial in trials.items():
        rules |= {name: rules.pop(name), calibrated_name(name): RivalColumn(named[name], trial.map)}
    table = next((trial.judged_table for trial in trials.values()), engine.table)
    source = engine.source(next(iter(named.values())))
    return summed_policy(source, table, PolicyPlan(rules, settings["cost"]), settings)


def with_checks(decision: Policy, checks: tuple[Check, ...]) -> Policy:
    """Return a policy with checks; where one failed, that comes first."""
    failed = ", ".join(dict.fromkeys(check.name for check in checks if check.result == "failed"))
    warned = f"Do not rely on this before the failed check is resolved: {failed}. " if failed else ""
    return replace(decision, checks=checks, recommendation=f"{warned}{decision.recommendation}")


def _looked_up(rows: Any, cost: Any) -> Any:
    """Return costs with columns in the place of their names."""
    if isinstance(cost, Mapping):
        return {arm: _looked_up(rows, one) for arm, one in cost.items()}
    return _column(rows, cost, "cost") if isinstance(cost, str) else cost


def _column(rows: Any, name: Any, role: str) -> Floats:
    require_columns_in(rows.columns, {name: role})
    return as_numbers(rows.table.column(name), name, rows.count)
