"""From a partition to its loss, by the same effect code as in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.engines.dask.keys import folds_of, keys_of
from orthocal.errors import OrthocalError, did_you_mean, require_known_propensity
from orthocal.losses import Loss, Origin, rows_that_count
from orthocal.nuisances.cross_fit import Fitted, Learnt, clip_fitted, known_value
from orthocal.observations import Encoding, Observations, encode, observe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orthocal.arrays import Floats, Integers
    from orthocal.effects import Effect
    from orthocal.nuisances import Nuisance


@dataclass(frozen=True)
class Columns:
    """Which column plays which part.

    Parameters
    ----------
    y, treatment, prediction : str
    instrument, sample_weight, groups, key : str, optional
    covariates : tuple of str
    given : dict of str to (str, number or callable)
        Known nuisances: a column, a number, or a function of the covariates.
    by : tuple of str
        Subgroups to judge apart.
    """

    y: str
    treatment: str
    prediction: str
    instrument: str | None = None
    sample_weight: str | None = None
    groups: str | None = None
    key: str | None = None
    covariates: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    by: tuple[str, ...] = ()

    @property
    def roles(self) -> dict[str, str | None]:
        """Column of each part that `observe` knows."""
        names = ("y", "treatment", "prediction", "instrument", "sample_weight", "groups")
        return {name: getattr(self, name) for name in names}

    @property
    def needed(self) -> list[str]:
        """Every column that is read."""
        known = [value for value in self.given.values() if isinstance(value, str)]
        names = [*self.roles.values(), self.key, *self.covariates, *known, *self.by]
        return list(dict.fromkeys(name for name in names if name is not None))


def require_columns(columns: Columns, there: Sequence[str]) -> None:
    """Every column that is asked for is in the table."""
    for name in columns.needed:
        if name not in there:
            raise OrthocalError(
                f"Column {name!r} must be in the data; it has {', '.join(there)}.{did_you_mean(name, there)}"
            )


@dataclass(frozen=True, eq=False)
class Trained:
    """A nuisance with its fitted models.

    Parameters
    ----------
    nuisance : Nuisance
        Without rows: what is left says how answers become what the loss works with.
    models : sequence of Learnt
        For each fold, features to answers, by a model that never saw the fold.
    has_features : bool
        Its features are not the covariates alone, and must be asked of the effect.
    """

    nuisance: Nuisance
    models: Sequence[Learnt]
    has_features: bool = False


@dataclass(frozen=True, eq=False)
class Job:
    """All that turns a partition into its loss.

    Parameters
    ----------
    columns : Columns
    effect : Effect
    clip : float
    folds, seed : int
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

    columns: Columns
    effect: Effect
    clip: float = 0.01
    folds: int = 5
    seed: int = 0
    trained: tuple[Trained, ...] = ()
    divisors: frozenset[str] = frozenset()
    encoding: Encoding | None = None
    sums: Mapping[str, Any] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    origin: Origin | None = None


def observed(part: Any, columns: Columns, encoding: Encoding | None = None) -> Observations:
    """Return the rows of a partition, checked."""
    X = np.empty((len(part), 0))
    if columns.covariates:
        X = encode(part[list(columns.covariates)], encoding)[0]
    found = {role: None if name is None else part[name] for role, name in columns.roles.items()}
    observations = observe(X, found.pop("y"), **found)
    if columns.groups is None:
        return observations
    # Codes that mean the same cluster in every partition; their upper bits leave room to count bins beside them.
    return replace(observations, groups=(keys_of(part[[columns.groups]]) >> np.uint64(16)).astype(np.int64))


def row_keys(part: Any, columns: Columns) -> Any:
    """Return the keys of a partition's rows: of the cluster, of the key column, or of prediction and covariates."""
    chosen = columns.groups or columns.key
    return keys_of(part[[chosen] if chosen else [columns.prediction, *columns.covariates]])


def fitted_of(part: Any, observations: Observations, job: Job) -> Fitted:
    """Return the nuisances of a partition: known ones as they are, others asked of models that never saw the row's fold."""
    values = {name: known_of(name, value, part, job) for name, value in job.columns.given.items()}
    if not job.trained:
        return Fitted(values, job.clip, {}, None, dict(job.sums), is_part=True)
    given, fold = set(values), folds_of(row_keys(part, job.columns), job.folds, job.seed)
    own = (
        {n.name: n.features for n in job.effect.nuisances(observations)}
        if any(t.has_features for t in job.trained)
        else {}
    )
    for trained in job.trained:
        features = own[trained.nuisance.name] if trained.has_features else observations.covariates
        values.update(trained.nuisance.named(_asked(trained.models, features, fold)))
    fitted = clip_fitted([t.nuisance for t in job.trained], values, dict.fromkeys(given), job.clip, fold)
    return replace(fitted, sums=dict(job.sums), is_part=True)


def _asked(models: Sequence[Any], features: Any, fold: Integers) -> Floats:
    answers: Any = None
    for k, model in enumerate(models):
        rows = fold == k
        if rows.any():
            answer = np.asarray(model(features[rows]))
            answers = np.empty((len(fold), *answer.shape[1:])) if answers is None else answers
            answers[rows] = answer
    return np.asarray(answers)


def known_of(name: str, value: Any, part: Any, job: Job) -> Any:
    """Return a nuisance that is given, of the rows of a partition."""
    if isinstance(value, str):
        value = part[value]
    elif callable(value):
        value = value(part[list(job.columns.covariates)])
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
            f"Row {other[0]} has the treatment {level!r}, and no row of the partitions looked at first had another level than "
            "arm and control; `propensity_control` must be given as well."
        )


def loss_of(part: Any, job: Job) -> tuple[Floats, Loss]:
    """Return the predictions of a partition and their loss; rows of weight 0 are left out."""
    observations = observed(part, job.columns, job.encoding)
    fitted = fitted_of(part, observations, job)
    _require_known_levels(observations, fitted, job.effect)
    loss = job.effect.loss(observations, fitted)
    if job.bounds is not None:
        loss = replace(loss, bounds=job.bounds)  # type: ignore[type-var]
    assert observations.prediction is not None  # noqa: S101
    return rows_that_count(observations.prediction, loss)
