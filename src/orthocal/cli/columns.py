"""From words on the command line to columns, effects and observations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyarrow import Table

    from orthocal.observations import Observations

SPOKEN = {"y": "outcome", "sample_weight": "weight"}
"""What a role is called on the command line, where that is another word."""


def roles_of(
    outcome: str, treatment: str, prediction: str, instrument: str | None, weight: str | None, groups: str | None
) -> dict[str, str | None]:
    """Name the column of each role; the keys are what `observe` calls them."""
    names = {"y": outcome, "treatment": treatment, "prediction": prediction, "instrument": instrument}
    return {**names, "sample_weight": weight, "groups": groups}


def observe_table(
    table: Table,
    roles: dict[str, str | None],
    covariates: str | None,
    propensity: str | None,
    predictions: Sequence[str] = (),
) -> tuple[Table, Observations, dict[str, Any]]:
    """Return covariates, checked observations and known nuisances, each column found by its name."""
    from orthocal.files.tables import column, select
    from orthocal.observations import observe

    X = select(table, covariate_names(table.column_names, roles, covariates, (*predictions, propensity)), "covariate")
    found = {
        role: None if name is None else column(table, name, SPOKEN.get(role, role)) for role, name in roles.items()
    }
    known = {} if propensity is None else {propensity_name(roles): number_or(propensity, partial(_propensity, table))}
    return X, observe(X, found.pop("y"), **found), known


def covariate_names(
    there: Sequence[str], roles: dict[str, str | None], covariates: str | None, taken: Sequence[str | None]
) -> list[str]:
    """Return the covariates that were named or, where none were, every column without a role that is not taken otherwise."""
    names = split_names(covariates) if covariates else [n for n in there if n not in {*roles.values(), *taken}]
    seen = [name for name in names if name in {roles[role] for role in ("y", "treatment", "instrument")}]
    if seen:
        raise OrthocalError(
            f"`--covariates` must not name the outcome, treatment or instrument; {seen[0]!r} is one. Leave it out."
        )
    return names


def propensity_name(roles: dict[str, str | None]) -> str:
    """With an instrument, its propensity is the one that can be known."""
    return "propensity" if roles["instrument"] is None else "instrument_propensity"


def subgroups(table: Table, by: str | None) -> dict[str, Any]:
    """Return the columns to judge apart, by name."""
    from orthocal.files.tables import column
    from orthocal.observations import as_labels

    return {name: as_labels(column(table, name, "subgroup"), name) for name in (split_names(by) if by else [])}


def split_names(text: str) -> list[str]:
    """Return names that were given by comma, with or without spaces."""
    return [name.strip() for name in text.split(",")]


def number_or(text: str, found: Callable[[str], Any]) -> Any:
    """Return a number or, where the text is none, the column it names."""
    try:
        return float(text)
    except ValueError:
        return found(text)


def _propensity(table: Table, name: str) -> Any:
    from orthocal.files.tables import column

    return column(table, name, "propensity")


def chosen_effect(name: str, **settings: Any) -> Any:
    """Return the effect with the settings that were given; one it has no use for is an error."""
    from dataclasses import fields

    from orthocal.effects import EFFECTS
    from orthocal.errors import require_one_of

    require_one_of(name, EFFECTS, "effect")
    given = {key: value for key, value in settings.items() if value is not None}
    known = [field.name for field in fields(EFFECTS[name])]
    for key in given:
        if key not in known:
            raise OrthocalError(
                f"`--{key}` must belong to the effect; {name!r} has {', '.join(known) or 'no settings'}."
            )
    return EFFECTS[name](**given)


def only(names: Sequence[str]) -> str:
    """Return the one prediction column; a repeated option is an error, not a silent choice."""
    if len(names) != 1:
        raise OrthocalError(f"`--prediction` must be given once here; it was given {len(names)} times.")
    return names[0]


def level_of(text: str | None, table: Table, treatment: str) -> Any:
    """Return a treatment level as the type of the treatment column."""
    import pyarrow as pa

    from orthocal.files.tables import column

    if text is None:
        return None
    kind = column(table, treatment, "treatment").type
    if pa.types.is_boolean(kind):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        try:
            return int(text) if pa.types.is_integer(kind) else float(text)
        except ValueError:
            return text
    return text
