"""Nuisances from partitions: a look at a few rows, and learning on a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from orthocal.effects import Effect
from orthocal.engines.partitioned.keys import sampled
from orthocal.engines.partitioned.partition_loss import Job, fold_of, observed, require_no_infinity, row_keys
from orthocal.engines.partitioned.passes import each
from orthocal.engines.protocol import PartitionedTable
from orthocal.errors import OrthocalError, UnavailableError
from orthocal.events import require_use_of_event
from orthocal.folds import LEARNERS, row_order
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import fit_one, seeds_of
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.nuisance import Trained, trained
from orthocal.observations import Encoding, Observations, encode
from orthocal.roles import Roles

PROBED, MOST_LEVELS = 300, 50


def probe(table: PartitionedTable, roles: Roles, effect: Effect) -> Any:
    """Return a few rows, with every treatment value of the partitions that had to be looked at, until the effect is defined."""
    import pandas as pd

    found: list[Any] = []
    problem: OrthocalError | None = None
    for number in range(len(table.names)):
        (few,) = each(table, _few, roles, parts=[number])
        if few is None:
            continue
        found.append(few)
        together = pd.concat(found, ignore_index=True)
        try:
            effect.nuisances(observed(together, roles))
        except OrthocalError as error:
            problem = error
        else:
            return together
    raise problem or OrthocalError("The data must have rows; every partition is empty.")


def probe_all(table: PartitionedTable, roles: Roles) -> Any:
    """Return a few rows of every partition, with every treatment value, and an outcome that is not 0 or 1 where there is one."""
    import pandas as pd

    found = [few for few in each(table, _few, roles, PROBED // len(table.names) + 1) if few is not None]
    return pd.concat(found, ignore_index=True)


def _few(part: Any, roles: Roles, first: int = PROBED) -> Any:
    """Question: the first rows, one of each level of treatment, instrument and event, and one outcome beside 0 and 1."""
    outcome = observed(part, replace(roles, covariates=())).outcome
    keep = np.zeros(len(part), dtype=bool)
    keep[:first] = True
    keep[np.flatnonzero(~np.isin(outcome, (0.0, 1.0)))[:1]] = True
    keep[np.flatnonzero(outcome == outcome.max(initial=-np.inf))[:1]] = True
    for name in (roles.treatment, roles.instrument, roles.event):
        if name is not None:
            new = np.flatnonzero(~part[name].duplicated().to_numpy())
            keep[new[:MOST_LEVELS]] = True
    return part[keep]


def encoding_of(table: PartitionedTable, roles: Roles) -> Encoding | None:
    """Return how text covariates become numbers, with the levels of all partitions; None where every covariate is a number."""
    if not roles.covariates:
        return None
    found = [one for one in each(table, _encoding, roles) if one is not None]
    levels = {
        name: tuple(sorted({level for one in found for level in one.levels.get(name, ())})) for name in roles.covariates
    }
    levels = {name: known for name, known in levels.items() if known}
    return Encoding(roles.covariates, len(roles.covariates), levels) if levels else None


def _encoding(part: Any, roles: Roles) -> Encoding:
    require_no_infinity(part, roles.covariates)
    text = [name for name in roles.covariates if part[name].dtype.kind not in "fiub"]
    return encode(part[text])[1] if text else Encoding((), 0, {})


def train_on_sample(
    table: PartitionedTable, job: Job, learners: Mapping[str, Any] | str | None, share: float
) -> tuple[Trained, ...]:
    """Learn on a seeded sample of the rows, gathered in one place; the fits run where the table's work is done."""
    import pandas as pd

    roles, effect = job.roles, job.effect
    drawn = [one for one in each(table, _sampled, roles, share, job.seed) if one is not None]
    rows = pd.concat(drawn, ignore_index=True)
    if not len(rows):
        raise OrthocalError("`sample` must leave rows to learn from; it leaves none. Ask for more.")
    observations = observed(rows, roles, job.encoding)
    wanted = nuisances_to_learn(effect.nuisances(observations), roles)
    weight = None if np.ptp(observations.weight) == 0 else observations.weight
    chosen = choose_learners(effect.nuisances(observations), learners, weighted=weight is not None)
    fold = fold_of(rows, job)
    every = effect.nuisances(observations)
    # Seeds and order as in memory, so that the same rows in the same folds teach the same models.
    seeds = seeds_of(len(every), job.folds, [job.seed, LEARNERS])
    order = row_order(observations, job.seed)
    numbers = [j for j, n in enumerate(every) if n.name in {one.name for one in wanted}]
    fits = [(every[j].name, j, k, int(seeds[j, k])) for j in numbers for k in range(job.folds)]
    models = table.calls(_fitted_without, fits, chosen, every, observations.covariates, fold, weight, order)
    own = [models[start : start + job.folds] for start in range(0, len(fits), job.folds)]
    return tuple(trained(every[j], found) for j, found in zip(numbers, own, strict=True))


def _fitted_without(name: str, j: int, k: int, seed: int, learners: Any, every: Any, *data: Any) -> Any:
    """Fit the learner of a nuisance without a fold."""
    X, fold, weight, order = data
    return fit_one(learners[name], every[j], X, fold, k, weight, seed, order)


def _sampled(part: Any, roles: Roles, share: float, seed: int) -> Any:
    return part[sampled(row_keys(part, roles), share, seed)]


def unseeded(learner: Any) -> Any:
    """Return a learner as it was before it was seeded, to be shown."""
    if not hasattr(learner, "get_params"):
        return learner
    seeds = [name for name in learner.get_params() if name.endswith("random_state")]
    return clone(learner).set_params(**dict.fromkeys(seeds))


def nuisances_to_learn(nuisances: Sequence[Nuisance], roles: Roles) -> list[Nuisance]:
    """Return the nuisances that are not given."""
    return [n for n in nuisances if not set(n.names) <= set(roles.nuisances)]


def require_defined(effect: Effect, observations: Observations, roles: Roles) -> tuple[list[Nuisance], frozenset[str]]:
    """Return the nuisances of the effect, and those given ones it divides by; what is given must be of use, and whole."""
    from orthocal.nuisances.cross_fit import check_given

    require_use_of_event(effect, observations.event)
    wanted = list(effect.nuisances(observations))
    curves = [n.name for n in wanted if n.learner is not None and n.name in roles.nuisances]
    if curves:
        raise UnavailableError(
            f"Curves must be learnt where rows come in partitions; `{curves[0]}` is given. Leave it out, or calibrate in memory."
        )
    stand_ins = dict.fromkeys(roles.nuisances, 0.5)
    check_given(wanted, stand_ins, observations.covariates, len(observations))
    return wanted, frozenset(n.name for n in wanted if n.is_divisor and n.name in roles.nuisances)
