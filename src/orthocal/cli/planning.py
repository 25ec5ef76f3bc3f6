"""A job as it was asked for: checked as far as it can be, and put into words, before long work begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthocal.cli.columns import chosen_effect, level_of, observe_table, roles_of, subgroups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orthocal.nuisances import Nuisance
    from orthocal.nuisances.recipe import Recipe
    from orthocal.observations import Observations

DRAWS = 3
"""The folds are drawn anew and the error estimated again, this many times in all: a loss is one draw."""
NAMED = 8
"""Columns that are named before the rest is only counted."""


@dataclass(frozen=True)
class Asked:
    """What `calibrate` and `assess` are both asked, in the words of the command line."""

    data: str
    outcome: str
    treatment: str
    predictions: Sequence[str]
    effect: str
    settings: Mapping[str, Any]
    instrument: str | None
    arm: str | None
    control: str | None
    propensity: str | None
    covariates: str | None
    weight: str | None
    groups: str | None
    key: str | None
    folds: int
    clip: float
    by: str | None
    seed: int
    jobs: int


@dataclass(frozen=True, eq=False)
class Plan:
    """A job that can begin.

    Parameters
    ----------
    predictions : dict of str to array
        By column.
    known : dict of str to array or number
        Nuisances that are not learnt.
    by : dict of str to array
        Subgroups to judge apart.
    words : dict of str to str
        What will be done, for people.
    """

    effect: Any
    observations: Observations
    X: Any
    predictions: dict[str, Any]
    known: dict[str, Any]
    by: dict[str, Any]
    folds: int
    recipe: Recipe
    words: dict[str, str]


def plan_of(asked: Asked, draws: int = DRAWS) -> Plan:
    """Read the table, find every column, and check what can be checked without learning anything."""
    from orthocal.files.tables import column, read_table
    from orthocal.folds import draw_folds
    from orthocal.nuisances.cross_fit import check_given
    from orthocal.nuisances.recipe import Recipe
    from orthocal.observations import as_numbers

    table = read_table(Path(asked.data))
    levels = {name: level_of(getattr(asked, name), table, asked.treatment) for name in ("arm", "control")}
    effect = chosen_effect(asked.effect, **levels, **asked.settings)
    roles = roles_of(asked.outcome, asked.treatment, asked.predictions[0], asked.instrument, asked.weight, asked.groups)
    roles |= {"key": asked.key}
    X, observations, known = observe_table(table, roles, asked.covariates, asked.propensity, asked.predictions)
    predictions = {name: as_numbers(column(table, name, "prediction"), name) for name in asked.predictions}
    by = subgroups(table, asked.by)
    recipe = Recipe(clip=asked.clip, random_state=asked.seed, n_jobs=asked.jobs)
    nuisances = effect.nuisances(observations)
    given = check_given(nuisances, known, X, len(observations))
    learnt = [nuisance for nuisance in nuisances if not set(nuisance.names) <= set(given)]
    if learnt:
        draw_folds(asked.folds, effect.strata(observations), observations, asked.seed)  # refuses too few rows of an arm
    words = {
        **words_of_data(asked, effect, len(observations), X.column_names),
        **({} if asked.key is None else {"key": asked.key}),
        "learners": words_of_learners(learnt, list(given)),
        "folds": f"{asked.folds}, draws of them {draws}: {len(learnt) * asked.folds * draws} learner fits",
        "clip": f"fitted propensities are kept inside [{asked.clip:g}, {1 - asked.clip:g}]",
        "seed": str(asked.seed),
    }
    return Plan(effect, observations, X, predictions, known, by, asked.folds, recipe, words)


def words_of_fit(method: Any, fitted: int, judged: int, holdout: float) -> dict[str, str]:
    """Say how the map will be fitted and judged."""
    verdict = f"on {judged:,} rows the map never sees" if holdout else "none: no rows are held out"
    return {"method": str(method), "map": f"fitted on {fitted:,} rows", "verdict": verdict}


def words_of_data(asked: Asked, effect: Any, rows: int, covariates: Sequence[str]) -> dict[str, str]:
    """Say what the data are and which column plays which part."""
    from orthocal.effects.description import words_of

    optional = {"instrument": asked.instrument, "weight": asked.weight, "clusters": asked.groups, "subgroups": asked.by}
    return {
        "data": f"{asked.data}, {rows:,} rows",
        "effect": f"{effect!r}: {words_of(effect).estimand}",
        "outcome": asked.outcome,
        "treatment": asked.treatment,
        "prediction": ", ".join(asked.predictions),
        **{role: name for role, name in optional.items() if name is not None},
        "covariates": _listed(covariates),
    }


def words_of_learners(learnt: Sequence[Nuisance], given: list[str]) -> str:
    """Say what learns which nuisance."""
    from orthocal.nuisances.learners import choose_learners
    from orthocal.nuisances.wrapped import bare

    names: dict[str, list[str]] = {}
    for nuisance, learner in choose_learners(learnt, None).items():
        names.setdefault(type(bare(learner)).__name__, []).append(nuisance)
    parts = [f"{learner} for {', '.join(wanted)}" for learner, wanted in names.items()]
    return "; ".join([*parts, *([f"known: {', '.join(given)}"] if given else [])]) or "none"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{len(names):,}: {', '.join(names[:NAMED])}{more}" if names else "none"
