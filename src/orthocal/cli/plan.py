"""From words on the command line to columns and effects, and to words on what will be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from orthocal.cli.options import EFFECT, Options
from orthocal.effects import EFFECTS
from orthocal.effects.description import words_of
from orthocal.errors import OrthocalError, require_one_of
from orthocal.files.tables import column, require_column
from orthocal.nuisances import Nuisance
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.wrapped import bare
from orthocal.roles import Roles

if TYPE_CHECKING:
    from pyarrow import Table


NAMED = 8
"""Columns that are named before the rest is only counted."""


def words_of_data(options: Options, effect: Any, data: str, roles: Roles) -> dict[str, str]:
    """Say what the data are and which column plays which part."""
    optional = {
        "instrument": options.instrument,
        "weight": options.weight,
        "clusters": options.groups,
        "subgroups": options.by,
    }
    return {
        "data": data,
        "effect": f"{effect!r}: {words_of(effect).estimand}",
        "outcome": options.outcome,
        "treatment": options.treatment,
        "prediction": ", ".join(options.prediction),
        **{role: name for role, name in optional.items() if name is not None},
        "covariates": _listed(roles.covariates),
    }


def words_of_learning(options: Options, learnt: Sequence[Nuisance], given: Iterable[str], folds: str) -> dict[str, str]:
    """Say what learns which nuisance, and how."""
    return {
        "learners": _learners(learnt, list(given)),
        "folds": folds,
        "clip": f"fitted propensities are kept inside [{options.clip:g}, {1 - options.clip:g}]",
        "seed": str(options.seed),
    }


def words_of_map(method: str, sides: tuple[int, int], holdout: float) -> dict[str, str]:
    """Say how the map will be fitted and judged."""
    verdict = f"on {sides[1]:,} rows the map never sees" if holdout else "none: no rows are held out"
    return {"method": method, "map": f"fitted on {sides[0]:,} rows", "verdict": verdict}


def _learners(learnt: Sequence[Nuisance], given: list[str]) -> str:
    names: dict[str, list[str]] = {}
    for nuisance, learner in choose_learners(learnt, None).items():
        names.setdefault(type(bare(learner)).__name__, []).append(nuisance)
    parts = [f"{learner} for {', '.join(wanted)}" for learner, wanted in names.items()]
    return "; ".join([*parts, *([f"known: {', '.join(given)}"] if given else [])]) or "none"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{len(names):,}: {', '.join(names[:NAMED])}{more}" if names else "none"


def roles_of(options: Options, there: Sequence[str]) -> Roles:
    """Return which column of those that are there plays which part, each found by its name."""

    def found(role: str, name: str) -> str:
        require_column(there, name, role)
        return name

    roles = ("outcome", "treatment", "instrument", "weight", "groups", "key")
    named = {role: name for role in roles if (name := getattr(options, role)) is not None}
    by = split_names(options.by) if options.by else []
    for role, name in [*named.items(), *(("prediction", name) for name in options.prediction)]:
        found(role, name)
    covariates = [found("covariate", name) for name in _covariates(options, there, set(named.values()))]
    given = {}
    if options.propensity is not None:
        name = "propensity" if options.instrument is None else "instrument_propensity"
        given[name] = number_or(options.propensity, lambda column: found("propensity", column))
    return Roles(
        outcome=options.outcome,
        treatment=options.treatment,
        prediction=options.prediction[0],
        instrument=options.instrument,
        sample_weight=options.weight,
        groups=options.groups,
        key=options.key,
        covariates=tuple(covariates),
        nuisances=given,
        by=tuple(found("subgroup", name) for name in by),
    )


def _covariates(options: Options, there: Sequence[str], taken: set[str]) -> list[str]:
    """Return the covariates that were named or, where none were, every column without a role."""
    if not options.covariates:
        return [name for name in there if name not in {*taken, *options.prediction, options.propensity}]
    names = split_names(options.covariates)
    for name in names:
        if name in (options.outcome, options.treatment, options.instrument):
            raise OrthocalError(
                f"`--covariates` must not name the outcome, treatment or instrument; {name!r} is one. Leave it out."
            )
    return names


def split_names(text: str) -> list[str]:
    """Return names that were given by comma, with or without spaces."""
    return [name.strip() for name in text.split(",")]


def number_or(text: str, found: Callable[[str], Any]) -> Any:
    """Return a number or, where the text is none, the column it names."""
    try:
        return float(text)
    except ValueError:
        return found(text)


def effect_of(options: Options, table: Table) -> Any:
    """Return the effect with the settings that were given; one it has no use for is an error."""
    require_one_of(options.effect, EFFECTS, "effect")
    known = [one.name for one in fields(EFFECTS[options.effect])]
    given = options.of(EFFECT)
    for name in given:
        if name not in known:
            raise OrthocalError(
                f"`--{name}` must belong to the effect; {options.effect!r} has {', '.join(known) or 'no settings'}."
            )
    arms = {name: arm_of(given[name], table, options.treatment) for name in ("arm", "control") if name in given}
    return EFFECTS[options.effect](**given | arms)


def only(names: Sequence[str]) -> str:
    """Return the one prediction column; a repeated option is an error, not a silent choice."""
    if len(names) != 1:
        raise OrthocalError(f"`--prediction` must be given once here; it was given {len(names)} times.")
    return names[0]


def arm_of(text: str, table: Table, treatment: str) -> Any:
    """Return a treatment level as the type of the treatment column."""
    import pyarrow as pa

    kind = column(table, treatment, "treatment").type
    if pa.types.is_boolean(kind):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        try:
            return int(text) if pa.types.is_integer(kind) else float(text)
        except ValueError:
            return text
    return text
