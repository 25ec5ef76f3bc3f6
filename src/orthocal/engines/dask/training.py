"""Nuisances from partitions: by learners that train on Dask collections, or by any learner on a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from orthocal.effects import Effect
from orthocal.engines.dask.keys import sampled
from orthocal.engines.dask.partition_loss import Job, fold_of, observed, row_keys
from orthocal.engines.dask.passes import each
from orthocal.errors import OrthocalError, UnavailableError
from orthocal.events import require_use_of_event
from orthocal.folds import LEARNERS, row_order
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import Learnt, fit_one, seeds_of
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.nuisance import Trained, trained
from orthocal.nuisances.wrapped import Standardised
from orthocal.observations import Encoding, Observations, encode
from orthocal.roles import Roles

PROBED, MOST_LEVELS = 300, 50
SETTINGS = {"n_estimators": 200, "max_depth": 3, "num_leaves": 8, "learning_rate": 0.1, "verbosity": -1}
"""Of LightGBM on Dask: shallow trees, as in memory; there is no early stopping on a cluster."""


def probe(parts: Sequence[Any], roles: Roles, effect: Effect) -> Any:
    """Return a few rows, with every treatment level of the partitions that had to be looked at, until the effect is defined."""
    import pandas as pd

    found: list[Any] = []
    problem: OrthocalError | None = None
    for number, part in enumerate(parts):
        (few,) = each([part], _few, roles, first=number)
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


def probe_all(parts: Sequence[Any], roles: Roles) -> Any:
    """Return a few rows of every partition, with every treatment level, and an outcome that is not 0 or 1 where there is one."""
    import pandas as pd

    found = [few for few in each(parts, _few, roles, PROBED // len(parts) + 1) if few is not None]
    return pd.concat(found, ignore_index=True)


def _few(part: Any, roles: Roles, first: int = PROBED) -> Any:
    """Question: the first rows, one of each level of treatment, instrument and event, and one outcome beside 0 and 1."""
    observed(part, replace(roles, covariates=()))
    keep = np.zeros(len(part), dtype=bool)
    keep[:first] = True
    keep[np.flatnonzero(~part[roles.outcome].isin([0, 1]).to_numpy())[:1]] = True
    keep[np.flatnonzero((part[roles.outcome] == part[roles.outcome].max()).to_numpy())[:1]] = True
    for name in (roles.treatment, roles.instrument, roles.event):
        if name is not None:
            new = np.flatnonzero(~part[name].duplicated().to_numpy())
            keep[new[:MOST_LEVELS]] = True
    return part[keep]


def encoding_of(parts: Sequence[Any], roles: Roles) -> Encoding | None:
    """Return how text covariates become numbers, with the levels of all partitions; None where every covariate is a number."""
    if not roles.covariates:
        return None
    found = [one for one in each(parts, _encoding, roles) if one is not None]
    levels = {
        name: tuple(sorted({level for one in found for level in one.levels.get(name, ())})) for name in roles.covariates
    }
    levels = {name: known for name, known in levels.items() if known}
    return Encoding(roles.covariates, len(roles.covariates), levels) if levels else None


def _encoding(part: Any, roles: Roles) -> Encoding:
    text = [name for name in roles.covariates if part[name].dtype.kind not in "fiub"]
    return encode(part[text])[1] if text else Encoding((), 0, {})


def train_on_sample(
    parts: Sequence[Any], job: Job, learners: Mapping[str, Any] | str | None, share: float
) -> tuple[Trained, ...]:
    """Learn on a seeded sample of the rows, gathered in one place; the fits run on the cluster."""
    import dask
    import pandas as pd

    roles, effect = job.roles, job.effect
    drawn = [one for one in each(parts, _sampled, roles, share, job.seed) if one is not None]
    rows = pd.concat(drawn, ignore_index=True)
    if not len(rows):
        raise OrthocalError("`sample` must leave rows to learn from; it leaves none. Ask for more.")
    observations = observed(rows, roles, job.encoding)
    wanted = _to_learn(effect.nuisances(observations), roles)
    weight = None if np.ptp(observations.weight) == 0 else observations.weight
    chosen = choose_learners(effect.nuisances(observations), learners, weighted=weight is not None)
    fold = fold_of(rows, job)
    every = effect.nuisances(observations)
    # Seeds and order as in memory, so that the same rows in the same folds teach the same models.
    seeds = seeds_of(len(every), job.folds, [job.seed, LEARNERS])
    order = row_order(observations, job.seed)
    shared = [dask.delayed(one, pure=False) for one in (observations.covariates, fold, weight, order)]
    fits = [
        [_fitted_on(chosen[n.name], target, k, int(seeds[j, k]), *shared) for k in range(job.folds)]
        for j, n in enumerate(every)
        if n.name in {one.name for one in wanted}
        for target in [dask.delayed(n, pure=False)]
    ]
    models = dask.compute(*fits)
    return tuple(trained(n, own) for n, own in zip(wanted, models, strict=True))


def _fitted_on(learner: Any, nuisance: Any, k: int, seed: int, X: Any, fold: Any, weight: Any, order: Any) -> Any:
    import dask

    return dask.delayed(fit_one)(learner, nuisance, X, fold, k, weight, seed, order)


def _sampled(part: Any, roles: Roles, share: float, seed: int) -> Any:
    return part[sampled(row_keys(part, roles), share, seed)]


def train_on_partitions(
    parts: Sequence[Any], job: Job, learners: Mapping[str, Any] | str | None, probed: Any
) -> tuple[Trained, ...]:
    """Learn by estimators that take Dask arrays, such as those of ``lightgbm.dask``."""
    import dask
    from dask import array as da

    few = observed(probed, job.roles, job.encoding)
    every = job.effect.nuisances(few)
    wanted = _to_learn(every, job.roles)
    for nuisance in wanted:
        if nuisance.wrap is not None:
            raise UnavailableError(
                f"Nuisance `{nuisance.name}` must be learnt on a sample, for its learner is wrapped; pass sample=200_000, say."
            )
    chosen = {n.name: _seeded(_own_or_default(n, learners, every), job.seed) for n in wanted}
    told = [dask.delayed(one, pure=False) for one in (job, probed)]
    found = []
    for nuisance in wanted:
        models = []
        for k in range(job.folds):
            blocks = [dask.delayed(_training_rows)(part, nuisance.name, k, *told) for part in parts]
            width = few.covariates.shape[1]
            columns_of = [
                da.concatenate([da.from_delayed(block[at], (np.nan, *shape), dtype=float) for block in blocks])
                for at, shape in ((0, (width,)), (1, ()), (2, ()))
            ]
            models.append(_fit_on_dask(chosen[nuisance.name], nuisance, *columns_of))
        found.append(trained(nuisance, models))
    return tuple(found)


def _training_rows(part: Any, name: str, k: int, job: Job, probed: Any) -> tuple[Any, Any, Any]:
    """Covariates, target and weight of the rows that teach a nuisance outside a fold.

    The probe's rows are put beside the partition's, so that an effect is defined where a partition lacks an arm.
    """
    import pandas as pd

    own = len(part)
    rows = observed(pd.concat([part, probed], ignore_index=True), job.roles, job.encoding)
    nuisance = next(n for n in job.effect.nuisances(rows) if n.name == name)
    train = fold_of(part, job) != k
    if nuisance.rows is not None:
        train &= nuisance.rows[:own]
    return rows.covariates[:own][train], nuisance.target[:own][train], rows.weight[:own][train]


def _fit_on_dask(learner: Any, nuisance: Nuisance, X: Any, y: Any, weight: Any) -> Learnt:
    if isinstance(learner, Standardised):
        # In units of the rows that were probed: near enough to those of all, and no further pass over them.
        seen = nuisance.target if nuisance.rows is None else nuisance.target[nuisance.rows]
        outer = clone(learner).in_units_of(seen)
        outer.model_ = _fit_on_dask(learner.learner, nuisance, X, outer.standard(y), weight).model
        return Learnt(outer)
    model = clone(learner)
    target = y.astype(np.int64) if nuisance.is_probability and hasattr(model, "predict_proba") else y
    try:
        model.fit(X, target, sample_weight=weight)
    except (TypeError, ValueError, RuntimeError) as error:
        raise OrthocalError(
            f"The learner {type(learner).__name__} of nuisance `{nuisance.name}` failed on Dask arrays: "
            f"{str(error).splitlines()[0]} Pass sample=... to learn on a sample."
        ) from error
    return Learnt(model.to_local() if hasattr(model, "to_local") else model)


def _own_or_default(nuisance: Nuisance, learners: Any, every: Sequence[Nuisance]) -> Any:
    if isinstance(learners, str):
        raise OrthocalError(
            f"`learners` must take Dask arrays, or `sample` be given; it is {learners!r}. Pass sample=200_000, say."
        )
    given = dict(learners or {})
    if given:
        choose_learners(every, given)  # refuses unknown names and what is no learner
    own = given.get(nuisance.name, given.get(nuisance.role))
    if own is not None:
        return own
    try:
        from lightgbm.dask import DaskLGBMClassifier, DaskLGBMRegressor
    except ImportError as missing:
        raise UnavailableError(
            "Learning on all partitions must have a learner that takes Dask collections; lightgbm is not installed. "
            "Install it, pass `learners`, or pass sample=200_000 to learn on a sample."
        ) from missing
    return DaskLGBMClassifier(**SETTINGS) if nuisance.is_probability else Standardised(DaskLGBMRegressor(**SETTINGS))


def _seeded(learner: Any, seed: int) -> Any:
    unset = [name for name, value in learner.get_params().items() if name.endswith("random_state") and value is None]
    return clone(learner).set_params(**dict.fromkeys(unset, seed)) if unset else learner


def unseeded(learner: Any) -> Any:
    """Return a learner as it was before it was seeded, to be shown."""
    if not hasattr(learner, "get_params"):
        return learner
    seeds = [name for name in learner.get_params() if name.endswith("random_state")]
    return clone(learner).set_params(**dict.fromkeys(seeds))


def _to_learn(nuisances: Sequence[Nuisance], roles: Roles) -> list[Nuisance]:
    return [n for n in nuisances if not set(n.names) <= set(roles.nuisances)]


def require_defined(effect: Effect, observations: Observations, roles: Roles) -> tuple[list[Nuisance], frozenset[str]]:
    """Return the nuisances of the effect, and those given ones it divides by; what is given must be of use, and whole."""
    from orthocal.nuisances.cross_fit import check_given

    require_use_of_event(effect, observations.event)
    wanted = list(effect.nuisances(observations))
    curves = [n.name for n in wanted if n.learner is not None and n.name in roles.nuisances]
    if curves:
        raise UnavailableError(
            f"Curves must be learnt on Dask; `{curves[0]}` is given. Leave it out, or calibrate in memory."
        )
    stand_ins = dict.fromkeys(roles.nuisances, 0.5)
    check_given(wanted, stand_ins, observations.covariates, len(observations))
    return wanted, frozenset(n.name for n in wanted if n.is_divisor and n.name in roles.nuisances)
