"""Nuisances by learners that train on Dask collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from orthocal.engines.partitioned.partition_loss import Job, fold_of, observed
from orthocal.engines.partitioned.training import nuisances_to_learn
from orthocal.errors import OrthocalError, UnavailableError
from orthocal.nuisances import Nuisance
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.learnt import Learnt
from orthocal.nuisances.nuisance import Trained, trained
from orthocal.nuisances.wrapped import Standardised

SETTINGS = {"n_estimators": 200, "max_depth": 3, "num_leaves": 8, "learning_rate": 0.1, "verbosity": -1}
"""Of LightGBM on Dask: shallow trees, as in memory; there is no early stopping on a cluster."""


def train_on_partitions(
    parts: Sequence[Any], job: Job, learners: Mapping[str, Any] | str | None, probed: Any
) -> tuple[Trained, ...]:
    """Learn by estimators that take Dask arrays, such as those of ``lightgbm.dask``."""
    import dask
    from dask import array as da

    few = observed(probed, job.roles, job.encoding)
    every = job.effect.nuisances(few)
    wanted = nuisances_to_learn(every, job.roles)
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
