"""From a partition to its loss, by the same effect code as in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.effects import Effect
from orthocal.engines.partitioned.keys import folds_of, keys_of
from orthocal.errors import OrthocalError, require_known_propensity
from orthocal.losses import Loss, Origin, rows_that_count
from orthocal.nuisances.cross_fit import Fitted, clip_fitted, known_value
from orthocal.nuisances.nuisance import Trained
from orthocal.observations import Encoding, Observations, as_labels, encode, observe
from orthocal.roles import Roles


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """All that turns a partition into its loss.

    Parameters
    ----------
    roles : Roles
    effect : Effect
    clip : float
    folds, seed : int
    fold_labels : tuple
        What folds are called, sorted, where a column names them.
    trained : tuple of Trained
        The nuisances that are not given.
    divisors : frozenset of str
        Given nuisances that the formula divides by.
    encoding : Encoding, optional
        Of text covariates.
    sums : dict of str to array
        What the loss of a row must know of all rows.
    bounds : (float, float), optional
        Of losses that are searched, over all rows.
    origin : Origin, optional
        Of the loss; its number of rows is filled in where they are counted.
    """

    roles: Roles
    effect: Effect
    clip: float = 0.01
    folds: int = 5
    seed: int = 0
    fold_labels: tuple[Any, ...] = ()
    trained: tuple[Trained, ...] = ()
    divisors: frozenset[str] = frozenset()
    encoding: Encoding | None = None
    sums: Mapping[str, Any] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    origin: Origin | None = None


def observed(part: Any, roles: Roles, encoding: Encoding | None = None) -> Observations:
    """Return the rows of a partition, checked."""
    X = np.empty((len(part), 0))
    if roles.covariates:
        require_no_infinity(part, roles.covariates)
        X = encode(part[list(roles.covariates)], encoding)[0]
    found = {role: None if column is None else unconverted(column) for role, column in roles.of(part).items()}
    observations = observe(X, found.pop("y"), **found)
    if roles.groups is None:
        return observations
    # Codes that mean the same cluster in every partition; their upper bits leave room to count bins beside them.
    return replace(observations, groups=(keys_of(part[[roles.groups]]) >> np.uint64(16)).astype(np.int64))


def unconverted(column: Any) -> Any:
    """Return a column as an array where nothing has to be converted: doubles, whole numbers and booleans."""
    is_plain = isinstance(column.dtype, np.dtype) and (column.dtype == np.float64 or column.dtype.kind in "iub")
    return column.to_numpy() if is_plain else column


def require_no_infinity(part: Any, names: Sequence[str]) -> None:
    """No covariate is infinite; the first that is gets named."""
    for name in names:
        rows = np.flatnonzero(np.isinf(part[name].to_numpy()) if part[name].dtype.kind == "f" else np.zeros(0))
        if len(rows):
            raise OrthocalError(
                f"Covariate {name!r} must not be infinite; row {rows[0]} is. Use NaN for missing values."
            )


def row_keys(part: Any, roles: Roles) -> Any:
    """Return the keys of a partition's rows: of the cluster, of the key column, or of covariates, treatment and instrument."""
    chosen = roles.groups or roles.key
    contents = [name for name in (*roles.covariates, roles.treatment, roles.instrument) if name is not None]
    return keys_of(part[[chosen] if chosen else contents])


def fold_of(part: Any, job: Job) -> Integers:
    """Return the fold of each row of a partition: as a column says, or by a hash of its key."""
    if job.roles.fold is None:
        return folds_of(row_keys(part, job.roles), job.folds, job.seed)
    labels = as_labels(part[job.roles.fold], job.roles.fold)
    return np.searchsorted(np.array(job.fold_labels), labels)


def fitted_of(part: Any, observations: Observations, job: Job) -> Fitted:
    """Return the nuisances of a partition: known ones as they are, others asked of models that never saw the row's fold."""
    values = {name: known_of(name, value, part, job) for name, value in job.roles.nuisances.items()}
    if not job.trained:
        return Fitted(values, job.clip, {}, None, dict(job.sums), is_part=True)
    given, fold = set(values), fold_of(part, job)
    own = (
        {n.name: n.features for n in job.effect.nuisances(observations)}
        if any(t.has_features for t in job.trained)
        else {}
    )
    for trained in job.trained:
        features = own[trained.nuisance.name] if trained.has_features else observations.covariates
        values.update(trained.nuisance.named(trained.answers(features, fold)))
    fitted = clip_fitted([t.nuisance for t in job.trained], values, dict.fromkeys(given), job.clip, fold)
    return replace(fitted, sums=dict(job.sums), is_part=True)


def known_of(name: str, value: Any, part: Any, job: Job) -> Any:
    """Return a nuisance that is given, of the rows of a partition."""
    if isinstance(value, str):
        value = unconverted(part[value])
    elif callable(value):
        value = value(part[list(job.roles.covariates)])
    known = known_value(name, value, len(part))
    if name in job.divisors:
        require_known_propensity(known, name)
    return known


def _require_known_levels(observations: Observations, fitted: Fitted, effect: Any) -> None:
    """Where the control's propensity is taken to be the rest of the arm's, no row has another level."""
    if not (hasattr(effect, "arm") and hasattr(effect, "control")) or "propensity_control" in fitted.values:
        return
    other = np.flatnonzero((observations.treatment != effect.arm) & (observations.treatment != effect.control))
    if len(other):
        level = observations.treatment[other[:1]].tolist()[0]
        raise OrthocalError(
            f"`propensity_control` must be given where there are more than two treatment values; row {other[0]} has {level!r}, "
            "which the first partitions did not have."
        )


def loss_of(part: Any, job: Job) -> tuple[Floats, Loss]:
    """Return the predictions of a partition and their loss; rows of weight 0 are left out."""
    observations = observed(part, job.roles, job.encoding)
    fitted = fitted_of(part, observations, job)
    _require_known_levels(observations, fitted, job.effect)
    loss = job.effect.loss(observations, fitted)
    if job.bounds is not None:
        loss = replace(loss, bounds=job.bounds)  # type: ignore[type-var]
    assert observations.prediction is not None  # noqa: S101
    return rows_that_count(observations.prediction, loss)
