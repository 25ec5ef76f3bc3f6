"""Predictions of several arms: which column, array or model predicts the effect of which arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from orthocal.arrays import Floats, as_floats
from orthocal.calibration.effect_models import prediction_of
from orthocal.effects import CATE
from orthocal.effects.arm_means import ArmMeans, propensity_of
from orthocal.errors import OrthocalError, did_you_mean
from orthocal.formats import listed, shown
from orthocal.joint_maps import as_prediction_matrix

SAME_SHARE = 1e-6
"""By which one number for all arms may miss an equal share."""
ONLY = "prediction"
"""Name of a prediction that was given without one."""


def arms_in_order(named: str | Sequence[Any] | None, control: Any, there: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arms of a study, the control first.

    Parameters
    ----------
    named : "all" or sequence
        As the user names them, with or without the control.
    there : sequence
        All values of the treatment.
    """
    first = 0 if control is None and 0 in there else control
    known = listed(map(repr, there))
    if not (first is None or np.isscalar(first) or isinstance(first, date)):
        raise OrthocalError(f"`control` must be one value of the treatment; it is {shown(control)}. There are {known}.")
    if first is None:
        raise OrthocalError(f"`control` must be named where there are several arms; the treatment has {known}.")
    wanted = list(there) if isinstance(named, str) and named == "all" else named
    if isinstance(wanted, str | bytes) or not isinstance(wanted, Sequence | np.ndarray) or np.ndim(wanted) != 1:
        raise OrthocalError(f"`arms` must be 'all' or a list of values of the treatment; it is {shown(named)}.")
    for arm in (first, *wanted):
        if arm not in there:
            text = shown(arm).strip("'")
            alike = [one for one in there if str(one) == text]
            hint = f" Did you mean {alike[0]!r}?" if alike else did_you_mean(text, list(map(str, there)))
            raise OrthocalError(
                f"Every arm must occur in the treatment; {shown(arm)} does not.{hint} There are {known}."
            )
    arms = (first, *dict.fromkeys(arm for arm in wanted if arm != first))
    if len({str(arm) for arm in arms}) < len(arms):
        raise OrthocalError(f"`arms` must have different names; they are {listed(repr(arm) for arm in arms)}.")
    return arms


def known_propensities(given: Any, effect: ArmMeans, values: int) -> dict[str, Any]:
    """Return known propensities by the names that nuisances have.

    Parameters
    ----------
    given : number or mapping of arms to numbers, columns or functions
        One number is that of every arm. In a mapping one arm may be left out, if the others are numbers.
    values : int
        How many values the treatment has, of which some may be no arms of the study.
    """
    arms, is_all = effect.arms, values == len(effect.arms)
    if not isinstance(given, Mapping):
        if is_all and not (isinstance(given, int | float | np.number) and abs(given * len(arms) - 1) < SAME_SHARE):
            raise OrthocalError(
                f"`propensity` must be given for each arm, as in propensity={{{shown(arms[1])}: 0.3, ...}}; as one number for "
                f"{len(arms)} arms it can only be 1/{len(arms)}, and it is {shown(given)}."
            )
        return {propensity_of(arm): 1 / len(arms) if is_all else given for arm in arms}
    unknown = [arm for arm in given if arm not in arms]
    if unknown:
        raise OrthocalError(
            f"`propensity` must be of the arms {listed(map(repr, arms))}; {shown(unknown[0])} is none of them."
        )
    missing, known = [arm for arm in arms if arm not in given], dict(given)
    if len(missing) == 1 and is_all and all(isinstance(value, int | float) for value in given.values()):
        known[missing[0]], missing = 1 - sum(given.values()), []
    if missing:
        raise OrthocalError(f"`propensity` must be given for every arm; that of {shown(missing[0])} is missing.")
    return {propensity_of(arm): known[arm] for arm in arms}


def predictions_by_model(given: Any, arms: Sequence[Any]) -> tuple[dict[str, Any], bool]:
    """Return what predicts the arms by the name of the model, and whether there is only one, which has no name.

    Parameters
    ----------
    given : mapping of arms to columns, arrays or models; matrix; model; or mapping of names to these
    arms : sequence
        Without the control.
    """
    if isinstance(given, Mapping) and given and not (set(given) & set(arms)):
        return {str(name): one for name, one in given.items()}, False
    return {ONLY: given}, True


def matrix_of_arms(given: Any, effect: ArmMeans, rows: Any, name: str) -> Floats:
    """Return the predicted effect of each arm against the control, one column an arm."""
    arms = effect.arms[1:]
    if isinstance(given, str):
        raise OrthocalError(
            f"Predictions of several arms must name a column for each arm, as in {{{shown(arms[0])}: {shown(given)}, ...}}; "
            f"{shown(given)} is one column."
        )
    if isinstance(given, Mapping):
        _require_every_arm(given, effect, name)
        return np.column_stack([_predicted(given[one.arm], one, rows, name) for one in effect.effects])
    if _is_model(given):
        return np.column_stack([_predicted(given, one, rows, name) for one in effect.effects])
    places = _places_of(arms, given)
    matrix = as_floats(given, name, "hold numbers, a column for each arm, or map each arm to its column")
    matrix = as_prediction_matrix(matrix[:, places] if matrix.ndim == 2 else matrix, len(arms))
    if len(matrix) != rows.count:
        raise OrthocalError(f"`{name}` must have one row for each of the {rows.count:,} rows; it has {len(matrix):,}.")
    return matrix


def _places_of(arms: Sequence[Any], table: Any) -> Any:
    """Return which columns of a table are of which arm, by their names; an array has none, and is taken as it is."""
    names = getattr(table, "column_names", getattr(table, "columns", None))
    if names is None:
        return slice(None)
    texts = [str(name) for name in names]
    missing = [arm for arm in arms if str(arm) not in texts]
    if missing:
        raise OrthocalError(
            f"A table of predictions must have a column named as each arm; {shown(missing[0])} has none among {listed(texts)}."
        )
    return [texts.index(str(arm)) for arm in arms]


def _predicted(source: Any, effect: CATE, rows: Any, name: str) -> Floats:
    """Return the predictions of one arm, asked of a model or looked up."""
    if _is_model(source):
        return prediction_of(source, rows.engine.X, effect)
    found: Floats = rows.predicted(source, f"{name} of {effect.arm}")
    return found


def _is_model(source: Any) -> bool:
    ways = (source, getattr(source, "effect", None), getattr(source, "predict", None))
    return not isinstance(source, str) and any(callable(way) for way in ways)


def columns_named(given: Any) -> list[str]:
    """Return the columns that predictions of several arms name, however they are nested."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping):
        return [name for one in given.values() for name in columns_named(one)]
    if isinstance(given, list | tuple):
        return [name for one in given for name in columns_named(one)]
    return []


def _require_every_arm(given: Mapping[Any, Any], effect: ArmMeans, name: str) -> None:
    missing = [arm for arm in effect.arms[1:] if arm not in given]
    if missing:
        raise OrthocalError(
            f"Every arm must have a prediction; {shown(missing[0])} has none in {shown(name)}. Add its column, or leave the arm "
            "out of `arms`."
        )
    columns = [one for one in given.values() if isinstance(one, str)]
    twice = next((one for one in columns if columns.count(one) > 1), None)
    if twice is not None:
        raise OrthocalError(f"Every arm must have a column of its own; {shown(twice)} is that of two arms.")
    for arm in given:
        if arm == effect.arms[0]:
            raise OrthocalError(
                f"The control must have no prediction, for effects are predicted against it; {shown(arm)} is the control."
            )
        if arm not in effect.arms:
            raise OrthocalError(
                f"Predictions must be of the arms {listed(map(repr, effect.arms[1:]))}; {shown(arm)} is none of them."
            )
