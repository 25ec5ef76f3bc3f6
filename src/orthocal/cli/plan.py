"""What a job will do, in words, before long work begins; the words of both engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from orthocal.cli.options import Options
from orthocal.effects.description import words_of
from orthocal.nuisances import Nuisance
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.wrapped import bare
from orthocal.roles import Roles

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
