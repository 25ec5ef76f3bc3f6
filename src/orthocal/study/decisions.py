"""What decisions by the predictions of a study are worth, as they are and calibrated, on rows that no map saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.decisions import Policy, policy
from orthocal.errors import OrthocalError
from orthocal.losses import ArmScores
from orthocal.observations import as_numbers
from orthocal.study.choice_words import calibrated_name
from orthocal.study.columns import require_columns_in


def decided(
    rows: Any,
    scores: ArmScores,
    predictions: Mapping[str, Floats],
    calibrated: Callable[[Floats], Floats],
    sides: tuple[Integers, Integers],
    settings: Mapping[str, Any],
) -> Policy:
    """Value rules by predictions, as they are and calibrated.

    Parameters
    ----------
    rows : StudyRows
    scores : ArmScores
        Of all rows.
    predictions : mapping of str to array of shape (rows, treatments)
    calibrated : callable
        Returns the calibrated predictions of all rows, by a map that was fitted on the first side.
    sides : (array, array)
        Rows that maps are fitted on, and rows that rules are valued on; the same where none are held out, and then nothing is
        calibrated.
    settings : mapping
        Of `policy`: cost, budget, spend, level, draws, random_state; costs and spend may be columns.
    """
    fitted, judged = sides
    rules = dict(predictions)
    if len(fitted) < len(scores):
        rules = {
            name: values
            for own, as_it_is in predictions.items()
            for name, values in ((own, as_it_is), (calibrated_name(own), calibrated(as_it_is)))
        }
    spend = settings["spend"]
    return policy(
        scores[judged],
        {name: values[judged] for name, values in rules.items()},
        **{
            **settings,
            "cost": costs_judged(rows, settings["cost"], judged),
            "spend": None if spend is None else rows.engine.scores_of(_column(rows, spend, "spend"))[judged],
        },
    )


def costs_judged(rows: Any, cost: Any, judged: Integers) -> Any:
    """Return costs of the rows judged: columns become arrays, and arrays are those of these rows."""
    if isinstance(cost, Mapping):
        return {arm: costs_judged(rows, one, judged) for arm, one in cost.items()}
    if isinstance(cost, str):
        return _column(rows, cost, "cost")[judged]
    if np.ndim(cost) == 0:
        return cost
    if len(cost) != rows.count:
        raise OrthocalError(f"`cost` must have one value for each of the {rows.count:,} rows; it has {len(cost):,}.")
    return np.asarray(cost, dtype=np.float64)[judged]


def _column(rows: Any, name: Any, role: str) -> Floats:
    require_columns_in(rows.columns, {name: role})
    return as_numbers(rows.table.column(name), name, rows.count)
