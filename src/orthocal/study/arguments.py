"""From the arguments of a study to the part each column plays, and to the effect with its arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment.records import Settings
from orthocal.effects import EFFECTS, Effect, new_effect
from orthocal.errors import OrthocalError, is_number, require_mapping, require_one_of
from orthocal.formats import listed, shown
from orthocal.roles import Roles
from orthocal.study.arm_predictions import columns_named
from orthocal.study.columns import named_covariates, require_columns_in, require_name

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition


def roles_of(study: StudyDefinition, there: Sequence[str]) -> Roles:
    """Return which column plays which part, each found by its name among those that are there."""
    require_mapping(study.nuisances, "nuisances", "numbers, columns, arrays or functions of the covariates")
    known = dict(study.nuisances or {})
    if study.propensity is not None:
        design = study.questions.known_propensities(study.propensity)
        if design.keys() & known.keys():
            raise OrthocalError(
                f"`propensity` must be given once; it is {shown(study.propensity)}, and among `nuisances` too."
            )
        known |= design
    predictions = columns_named(study.predictions)
    parts = {
        "outcome": study.outcome,
        "treatment": study.treatment,
        "event": study.event,
        "instrument": study.instrument,
        "weight": study.weight,
        "groups": study.groups,
        "key": study.key,
        "fold": study.folds if isinstance(study.folds, str) else None,
    }
    for role, name in parts.items():
        if name is not None or role in ("outcome", "treatment"):
            require_name(name, role)
    taken = {name: role for role, name in parts.items() if name is not None}
    taken |= {value: name for name, value in known.items() if isinstance(value, str)}
    require_columns_in(there, dict.fromkeys(predictions, "prediction") | taken)
    covariates = named_covariates(
        there,
        taken,
        covariates=study.covariates,
        exclude=study.exclude,
        predictions=predictions,
        known_propensity=study.propensity is not None,
    )
    if not covariates and not any("propensity" in name for name in known):
        raise OrthocalError(
            "`covariates` must not be empty unless the propensity is known: without covariates nothing adjusts for how "
            "treatment was chosen. Pass propensity=..., or name covariates."
        )
    return Roles(
        outcome=study.outcome,
        treatment=study.treatment,
        event=study.event,
        instrument=study.instrument,
        sample_weight=study.weight,
        groups=study.groups,
        key=study.key,
        fold=parts["fold"],
        covariates=covariates,
        nuisances=known,
    )


def require_limits(limits: Any) -> None:
    """Limits of the outcome are two numbers, the lower first."""
    if limits is None:
        return
    is_pair = (
        isinstance(limits, Sequence | np.ndarray)
        and np.shape(limits)[:1] == (2,)
        and all(is_limit(one) for one in limits)
    )
    if not (is_pair and limits[0] < limits[1]):
        raise OrthocalError(f"`limits` must be two numbers, the lower first; they are {shown(limits)}.")


def require_named(predictions: Any) -> None:
    """Predictions of a study are named, as columns or by arm."""
    if not isinstance(predictions, str | list | tuple | Mapping):
        raise OrthocalError(f"`predictions` must be a list of columns; it is {shown(predictions)}.")


def is_limit(value: Any) -> bool:
    """Return whether something is a number, or infinite where there is no limit."""
    return is_number(value) or (isinstance(value, float | np.floating) and bool(np.isinf(value)))


def effect_with_arms(effect: str | Effect, arms: Mapping[str, Any]) -> Effect:
    """Return an effect by name, with the arms that were named, or the one given, which names its own."""
    given = {name: value for name, value in arms.items() if value is not None}
    if not isinstance(effect, str):
        if given:
            raise OrthocalError(
                f"`arm` and `control` must be left out where `effect` is an object, which names its own; it is {shown(effect)}."
            )
        return new_effect(effect)
    require_one_of(effect, EFFECTS, "effect")
    known = [one.name for one in fields(EFFECTS[effect])]
    for name in given:
        if name not in known:
            raise OrthocalError(f"`{name}` must belong to the effect; {shown(effect)} has {listed(known)}.")
    return EFFECTS[effect](**given)  # type: ignore[no-any-return]


def settings_of(
    study: StudyDefinition, *, bins: int = 10, cost: float | None = None, by: Any = None, draws: int
) -> Settings:
    """Return the settings of a verdict."""
    named = [by] if isinstance(by, str) else by
    return Settings(
        bins=bins,
        level=study.level,
        tolerance=study.tolerance,
        cost=cost,
        by=study.rows.subgroups(() if named is None else named),
        draws=draws,
        random_state=study.random_state,
    )


def named_predictions(study: StudyDefinition, prediction: Any) -> dict[str, Any]:
    """Return predictions by name; those that the study names, where none are given."""
    if prediction is None:
        if not study.predictions:
            raise OrthocalError("`prediction` must be given where the study names none. Pass a column.")
        prediction = study.predictions
    if isinstance(prediction, str):
        return {prediction: prediction}
    if isinstance(prediction, Mapping):
        return dict(prediction)
    if isinstance(prediction, Sequence) and all(isinstance(name, str) for name in prediction):
        return {name: name for name in prediction}
    raise OrthocalError(
        f"`prediction` must be a column, a list of columns, or a mapping of names to columns, arrays or models; it is a "
        f"{type(prediction).__name__}. Pass {{'name': it}}."
    )
