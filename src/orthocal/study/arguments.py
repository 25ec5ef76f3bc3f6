"""From the arguments of a study to the part each column plays, and to the effect with its arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from orthocal.effects import EFFECTS, Effect, new_effect
from orthocal.errors import OrthocalError, require_one_of
from orthocal.roles import Roles
from orthocal.study.columns import named_covariates, require_columns_in

if TYPE_CHECKING:
    from orthocal.study.study import Study


def roles_of(study: Study, there: Sequence[str]) -> Roles:
    """Return which column plays which part, each found by its name among those that are there."""
    known = dict(study.nuisances or {})
    if study.propensity is not None:
        known["propensity" if study.instrument is None else "instrument_propensity"] = study.propensity
    predictions = [study.predictions] if isinstance(study.predictions, str) else list(study.predictions)
    parts = {
        "outcome": study.outcome,
        "treatment": study.treatment,
        "instrument": study.instrument,
        "weight": study.weight,
        "groups": study.groups,
        "key": study.key,
        "fold": study.folds if isinstance(study.folds, str) else None,
    }
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
    if not covariates and study.propensity is None and study.nuisances is None:
        raise OrthocalError(
            "`covariates` must not be empty unless the propensity is known: without covariates nothing makes up for how "
            "treatment was chosen. Pass propensity=..., or name covariates."
        )
    return Roles(
        outcome=study.outcome,
        treatment=study.treatment,
        instrument=study.instrument,
        sample_weight=study.weight,
        groups=study.groups,
        key=study.key,
        fold=parts["fold"],
        covariates=covariates,
        nuisances=known,
    )


def effect_with_arms(effect: str | Effect, arms: Mapping[str, Any]) -> Effect:
    """Return an effect by name, with the arms that were named, or the one given, which names its own."""
    given = {name: value for name, value in arms.items() if value is not None}
    if not isinstance(effect, str):
        if given:
            raise OrthocalError(
                f"`arm` and `control` must be said by the effect where it is one; it is {effect!r}. Leave them out."
            )
        return new_effect(effect)
    require_one_of(effect, EFFECTS, "effect")
    known = [one.name for one in fields(EFFECTS[effect])]
    for name in given:
        if name not in known:
            raise OrthocalError(f"`{name}` must belong to the effect; {effect!r} has {', '.join(known)}.")
    return EFFECTS[effect](**given)  # type: ignore[no-any-return]
