"""From a frame and column names to partitions that know their loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.effects import Effect, SummedEffect, sums_of
from orthocal.effects.description import origin_of
from orthocal.engines.partitioned.partition_loss import Job, fitted_of, known_of, observed
from orthocal.engines.partitioned.passes import each, reduced
from orthocal.engines.partitioned.source import Source
from orthocal.engines.partitioned.training import (
    encoding_of,
    probe,
    probe_all,
    require_defined,
    train_on_sample,
    unseeded,
)
from orthocal.engines.protocol import PartitionedTable
from orthocal.errors import OrthocalError, require_whole
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import Fitted
from orthocal.nuisances.learners import Recipe
from orthocal.observations import Observations, as_labels
from orthocal.roles import Roles

NEAR = 1e-9
"""Share of a column's size that rounding may move it by."""
FEWEST = 4
"""Rows that can be halved with something in both halves to compare."""

MOST_FOLDS = 10_000
"""Of cross-fitting: every one has models of its own."""


def require_separable(effect: Effect, rows: Observations, fitted: Fitted) -> None:
    """The loss of some rows is that of the same rows among all: other rows enter through `sums` only."""
    # In one fold, for a few rows need not have every level in each.
    fitted = replace(fitted, fold=None, is_part=True)
    fitted = replace(fitted, sums=sums_of(effect, rows, fitted))

    def scores(some: Observations, own: Fitted) -> list[Floats]:
        loss = effect.loss(some, own)
        assert some.prediction is not None  # noqa: S101
        return [loss.mass, *(loss.derivative(some.prediction + step) for step in (-spread, 0.0, spread))]

    spread = float(np.std(rows.outcome))
    _require_same(effect, "loss", rows, fitted, scores)


def require_separable_targets(effect: Effect, rows: Observations) -> None:
    """What is to be learnt of some rows is that of the same rows among all."""

    def targets(some: Observations, own: Fitted) -> list[Floats]:
        del own
        found = {n.name: n for n in effect.nuisances(some)}
        return [np.asarray(column, dtype=np.float64) for name in names for column in _columns(found[name])]

    names = [n.name for n in effect.nuisances(rows)]
    _require_same(effect, "target of a nuisance", rows, Fitted({}, 0.0), targets)


def _columns(nuisance: Nuisance) -> Iterator[Any]:
    for column in (nuisance.target, nuisance.rows, nuisance.features):
        if column is not None:
            yield column


def _require_same(
    effect: Effect,
    what: str,
    rows: Observations,
    fitted: Fitted,
    columns: Callable[[Observations, Fitted], Sequence[Floats]],
) -> None:
    for half in _halves(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = columns(rows, fitted)
            try:
                some = columns(rows[half], _of_rows(fitted, half))
            except (
                OrthocalError,
                KeyError,
            ):  # a level is missing here, as it may be in a partition: nothing to compare
                continue
        for every, own in zip(whole, some, strict=True):
            reach = NEAR * float(np.abs(every).max(initial=0.0))
            if not np.allclose(every[half], own, rtol=NEAR, atol=reach, equal_nan=True):
                raise OrthocalError(
                    f"In partitions the {what} of some rows must not depend on the others; that of {type(effect).__name__} does, "
                    "as a mean over all rows would. Say in its `sums` what it must know of all rows, or calibrate in memory."
                )


def _halves(rows: Observations) -> list[Integers]:
    """Every second row of each level of treatment and instrument, and the others."""
    if len(rows) < FEWEST:
        return []
    labels = [rows.treatment] if rows.instrument is None else [rows.treatment, rows.instrument]
    order = np.lexsort([np.unique(one, return_inverse=True)[1] for one in labels])
    return [np.sort(order[start::2]) for start in (0, 1)]


def _of_rows(fitted: Fitted, rows: Integers) -> Fitted:
    return replace(fitted, values={name: value[rows] for name, value in fitted.values.items()})


def stand_ins(nuisances: Sequence[Nuisance], given: dict[str, Any], rows: int) -> dict[str, Any] | None:
    """Return nuisances as they might be, where those to be learnt are plain columns; None where they are not."""
    wanted = [n for n in nuisances if not set(n.names) <= set(given)]
    if any(n.wrap is not None for n in wanted):
        return None
    rng, values = np.random.default_rng(0), dict(given)
    for nuisance in wanted:
        target = nuisance.target
        guess = (
            rng.uniform(0.2, 0.8, rows) if nuisance.is_probability else rng.normal(target.mean(), target.std(), rows)
        )
        values.update(nuisance.named(guess))
    return values


def seed_of_partitions(folds: Any, recipe: Recipe) -> int:
    """Return the seed of folds, sample and learners, 0 where none was given: workers must agree on it."""
    if not isinstance(folds, str):
        require_whole(folds, 2, "folds", MOST_FOLDS)
    if recipe.random_state is not None:
        require_whole(recipe.random_state, 0, "random_state")
    return int(recipe.random_state or 0)


def prepared(
    table: PartitionedTable, roles: Roles, effect: Effect, folds: int, recipe: Recipe, *, all_covariates: bool = False
) -> Source:
    """Check the columns, learn what is not given, and return the partitions with all they need to know their loss."""
    seed = seed_of_partitions(folds, recipe)
    roles.require_in(table.columns)
    labels: tuple[Any, ...] = ()
    if roles.fold is not None:
        labels = _labels_of(table, roles.fold)
        folds = len(labels)
    known = replace(roles, covariates=())
    few = probe(chosen(table, known), known, effect)
    wanted, divisors = require_defined(effect, observed(few, known), known)
    job = Job(
        roles=known, effect=effect, clip=recipe.clip, folds=folds, seed=seed, fold_labels=labels, divisors=divisors
    )
    learners: dict[str, Any] = {}
    unknown = [n.name for n in wanted if not set(n.names) <= set(roles.nuisances)]
    if unknown:  # learning takes many passes, so that one more is spent on seeing every treatment level
        every = probe_all(chosen(table, known), known)
        wanted, divisors = require_defined(effect, observed(every, known), known)
    if unknown or any(callable(value) for value in roles.nuisances.values()):
        names = covariates_of(table, known) if all_covariates else roles.covariates
        job = replace(job, roles=replace(roles, covariates=names))
        job = replace(job, encoding=encoding_of(table.select(names), job.roles))
    seen = few if job.roles == known else probe(chosen(table, job.roles), job.roles, effect)
    checked = _is_separable(seen, job, recipe)
    if unknown:
        job, learners = _learnt(table, job, recipe)
    if not checked:
        rows = observed(seen, job.roles, job.encoding)
        require_separable(effect, rows, fitted_of(seen, rows, job))
    learnt = {n.name: learners.get(n.name, "") for n in wanted}
    origin = origin_of(effect, wanted, set(roles.nuisances), learnt, folds, recipe, 0)
    return with_sums(Source(chosen(table, job.roles), replace(job, origin=origin)))


def _labels_of(table: PartitionedTable, name: str) -> tuple[Any, ...]:
    """Return the different values of a column of folds, sorted."""
    found = [one for one in each(table.select([name]), _different, name) if one is not None]
    labels = sorted({value for one in found for value in one})
    if len(labels) < 2:
        raise OrthocalError(f"`folds` must be at least 2; column {name!r} has one value only, {labels[0]!r}.")
    return tuple(labels)


def _different(part: Any, name: str) -> list[Any]:
    return list(np.unique(as_labels(part[name], name)).tolist())


def _is_separable(seen: Any, job: Job, recipe: Recipe) -> bool:
    """Refuse an effect that depends on more than a partition; False where only what is learnt can show it."""
    rows = observed(seen, job.roles, job.encoding)
    wanted = list(job.effect.nuisances(rows))
    try:
        given = {name: known_of(name, value, seen, job) for name, value in job.roles.nuisances.items()}
    except OrthocalError:  # what is wrong with the rows is said with their partition, when it is asked
        return True
    if recipe.sample is None and set(given) < {name for n in wanted for name in n.names}:
        require_separable_targets(job.effect, rows)
    values = stand_ins(wanted, given, len(rows))
    if values is None:
        return False
    # Numbers that stand in for what is learnt are not those of a design, whose chances must not add to more than 1.
    require_separable(job.effect, rows, Fitted(values, job.clip, dict.fromkeys(set(values) - set(given), 0.0)))
    return True


def chosen(table: PartitionedTable, roles: Roles) -> PartitionedTable:
    """Return the columns that are needed, so that no other is read."""
    roles.require_in(table.columns)
    return table.select(roles.needed)


def covariates_of(table: Any, roles: Roles) -> tuple[str, ...]:
    """Return all columns without another role."""
    taken = set(replace(roles, by=(), covariates=()).needed)
    return tuple(name for name in table.columns if name not in taken)


def _learnt(table: PartitionedTable, job: Job, recipe: Recipe) -> tuple[Job, dict[str, Any]]:
    """Return the job with trained models, and how its learners are written."""
    source = Source(chosen(table, job.roles), job)
    if recipe.sample is None:
        trained = source.table.trained(job, recipe.learners, probe_all(source.table, job.roles))
    else:
        share = recipe.sample / source.sketch.counts.rows
        trained = train_on_sample(source.table, job, recipe.learners, share)
    return replace(job, trained=trained), {t.nuisance.name: unseeded(t.models[0].model) for t in trained}


class Totals(NamedTuple):
    """What the loss of a row must know of all rows."""

    sums: dict[str, Any]
    bounds: tuple[float, float]

    def merge(self, other: Totals) -> Totals:
        """Of both."""
        low, high = zip(self.bounds, other.bounds, strict=True)
        return Totals({name: _added(one, other.sums[name]) for name, one in self.sums.items()}, (min(low), max(high)))


def _added(one: Any, other: Any) -> Any:
    """Add arrays of which one may know fewer folds than the other."""
    if one.shape == other.shape:
        return one + other
    wider = max(one.shape[-1], other.shape[-1])
    fill = [np.concatenate([a, np.zeros((*a.shape[:-1], wider - a.shape[-1]))], axis=-1) for a in (one, other)]
    return fill[0] + fill[1]


def with_sums(source: Source) -> Source:
    """Return the source with what its effect must know of all rows, where it must."""
    if not isinstance(source.job.effect, SummedEffect):
        return source
    facts = reduced(source.table, _facts, Totals.merge, source.job)
    bounds = facts.bounds if np.isfinite(facts.bounds).all() else None
    return replace(source, job=replace(source.job, sums=facts.sums, bounds=bounds))


def _facts(part: Any, job: Job) -> Totals:
    observations = observed(part, job.roles, job.encoding)
    fitted = fitted_of(part, observations, job)
    sums = sums_of(job.effect, observations, fitted)
    loss = job.effect.loss(observations, replace(fitted, sums=_harmless(sums)))
    return Totals(sums, loss.bounds)


def _harmless(sums: dict[str, Any]) -> dict[str, Any]:
    """Stand-ins for sums, so that the bounds of a loss can be had where a partition lacks an arm."""
    return {name: np.ones_like(one) for name, one in sums.items()}
