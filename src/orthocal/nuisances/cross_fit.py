"""Cross-fitting: each row's nuisance comes from a model that never saw the row's fold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.errors import OrthocalError, is_number, require_known_propensity, require_mapping
from orthocal.folds import generator
from orthocal.formats import listed, shown
from orthocal.nuisances.class_shares import kept_apart
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.learnt import Learnt, one_thread, said_of
from orthocal.nuisances.nuisance import Nuisance
from orthocal.nuisances.wrapped import fit_weighted
from orthocal.observations import as_numbers
from orthocal.progress import followed


@dataclass(frozen=True)
class Fitted:
    """The nuisances of an effect, filled in for every row.

    Parameters
    ----------
    values : dict of str to array or Distribution
        By name.
    clip : float
    clipped : dict of str to float
        Share of rows where a fitted divisor was moved to `clip` or 1 - `clip`; empty for given ones.
    fold : array of shape (rows,), optional
        Each row's fold; one fold by default.
    sums : dict of str to array
        What an effect's loss must know of all rows, where these are some of them: what ``effect.sums`` gave, added up.
    is_part : bool
        These are some of the rows: what is told of all rows is not told of them.
    """

    values: dict[str, Any]
    clip: float
    clipped: dict[str, float] = field(default_factory=dict)
    fold: Integers | None = None
    sums: dict[str, Any] = field(default_factory=dict)
    is_part: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def cross_fit(
    nuisances: Sequence[Nuisance],
    X: Floats,
    fold: Integers,
    *,
    given: Mapping[str, Any] | None = None,
    learners: Mapping[str, Any] | str | None = None,
    weight: Floats | None = None,
    clip: float = 0.01,
    evaluate: Sequence[int] | None = None,
    order: Integers | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Fitted:
    """Learn each nuisance on the other folds of every fold (Algorithm 2, steps 3-5) and predict it there.

    Parameters
    ----------
    given : mapping of str to array or Distribution, optional
        Nuisances known beforehand: they are used as they are, not learnt.
    evaluate : sequence of int, optional
        The folds to predict, all by default; the answer covers the rows of these folds only. Sample splitting is two folds of
        which one is evaluated.
    order : array of shape (rows,), optional
        The rows in the order in which learners see them, which what they learn can depend on; as they stand by default.
    n_jobs : int, optional
        Fits in parallel. Every fit uses one thread, so answers do not depend on this.
    """
    given = dict(given or {})
    learner = choose_learners(nuisances, learners, weighted=weight is not None)
    folds = np.unique(fold) if evaluate is None else np.asarray(evaluate)
    kept = np.flatnonzero(np.isin(fold, folds))
    seeds = seeds_of(len(nuisances), int(fold.max()) + 1, random_state)
    wanted = [(j, n) for j, n in enumerate(nuisances) if not set(n.names) <= set(given)]
    order = np.arange(len(fold)) if order is None else order
    jobs = [
        delayed(_fit_and_predict)(learner[n.name], n, X, fold, k, weight, int(seeds[j, k]), order)
        for j, n in wanted
        for k in folds
    ]
    answers = followed(Parallel(n_jobs=n_jobs, return_as="generator")(jobs) if jobs else (), len(jobs))
    values: dict[str, Any] = {}
    for _, nuisance in wanted:
        parts = [next(answers) for _ in folds]
        together = np.empty((len(fold), *parts[0].shape[1:]))
        for k, part in zip(folds, parts, strict=True):
            together[order[fold[order] == k]] = part
        values.update(nuisance.named(together[kept]))
    values.update({name: value[kept] for name, value in given.items()})
    return clip_fitted(nuisances, values, given, clip, fold[kept])


def seeds_of(nuisances: int, folds: int, random_state: Any) -> Integers:
    """Return the seed of every fit, by nuisance and fold."""
    return generator(random_state).integers(2**31, size=(nuisances, folds))


def to_learn(nuisances: Sequence[Nuisance], known: Collection[str]) -> list[Nuisance]:
    """Return the nuisances that are not known."""
    return [nuisance for nuisance in nuisances if not set(nuisance.names) <= set(known)]


def check_given(nuisances: Sequence[Nuisance], given: Mapping[str, Any] | None, X: Any, n: int) -> dict[str, Any]:
    """Return the nuisances a user knows, each as an array or a Distribution."""
    names = {name: nuisance for nuisance in nuisances for name in (*nuisance.names, *nuisance.extras)}
    known: dict[str, Any] = {}
    require_mapping(given, "nuisances", "numbers, arrays or functions of X")
    for name, value in ({} if given is None else given).items():
        if name not in names:
            raise OrthocalError(f"`nuisances` does not know {shown(name)}; this effect has {listed(names)}.")
        own = names[name]
        known[name] = known_value(name, own.call(value, X) if is_function(value) else own.read(value), n)
        if own.is_divisor:
            require_known_propensity(known[name], name)
    for nuisance in nuisances:
        missing = [name for name in nuisance.names if name not in known]
        if missing and len(missing) < len(nuisance.names):
            raise OrthocalError(
                f"`{'` and `'.join(nuisance.names)}` must be given together; `{missing[0]}` is missing."
            )
    return known


def is_function(value: Any) -> bool:
    """Return whether something is to be called; a class is not."""
    return callable(value) and not isinstance(value, type)


def known_value(name: str, value: Any, n: int) -> Any:
    """Return a number or a column as one finite number per row; a Distribution or a SurvivalCurve as it is."""
    if hasattr(value, "below") or hasattr(value, "survival"):
        if len(value) != n:
            raise OrthocalError(f"`{name}` as given must cover the {n} rows; it covers {len(value)}.")
        return value
    is_column = not (np.isscalar(value) or value is None or isinstance(value, Mapping))
    if is_column:
        return as_numbers(value, name, n)
    if not is_number(value):
        raise OrthocalError(
            f"`{name}` as given must be a finite number, an array or a function of X; it is {shown(value)}. Leave it out to "
            "learn it."
        )
    return np.full(n, float(value))


def fit_one(
    learner: Any,
    nuisance: Nuisance,
    X: Floats,
    fold: Integers,
    k: int,
    weight: Floats | None,
    seed: int,
    order: Integers | None = None,
) -> Learnt:
    """Learn one nuisance outside one fold, on one thread: threads of several fits on few cores wait for each other."""
    features = X if nuisance.features is None else nuisance.features
    own = fold != k if nuisance.rows is None else (fold != k) & nuisance.rows
    if weight is not None:
        own = own & (weight > 0)  # such rows teach nothing, and a learner that sets some aside may draw only those
    train = np.flatnonzero(own) if order is None else order[own[order]]
    target = nuisance.target[train]
    if len(target) == 0:
        raise OrthocalError(
            f"Nuisance `{nuisance.name}` must have rows to learn from; outside fold {k} there is none. Use fewer folds, "
            "or name a `key` that identifies rows."
        )
    if nuisance.wrap is None and target.min() == target.max():  # nothing to learn; classifiers refuse a single class
        return Learnt(float(target[0]))
    if nuisance.wrap is None and features.shape[1] == 0:  # without covariates the best guess is the mean
        return Learnt(float(np.average(target, weights=None if weight is None else weight[train])))
    model = clone(learner)
    _require_kind(model, nuisance)
    model = _seeded(model if nuisance.wrap is None else nuisance.wrap(model), seed)
    if is_classifier(model):
        target = target.astype(np.int64)
    with said_of(learner, nuisance), one_thread():
        fit_weighted(model, features[train], target, None if weight is None else weight[train])
    return Learnt(model)


def _fit_and_predict(
    learner: Any,
    nuisance: Nuisance,
    X: Floats,
    fold: Integers,
    k: int,
    weight: Floats | None,
    seed: int,
    order: Integers,
) -> Floats:
    """One nuisance of one fold; rows are asked about in the same order, for in some learners even that moves the last digit."""
    learnt = fit_one(learner, nuisance, X, fold, k, weight, seed, order)
    with said_of(learner, nuisance):
        answer = learnt((X if nuisance.features is None else nuisance.features)[order[fold[order] == k]])
        if nuisance.wrap is None and answer.ndim != 1:
            raise ValueError(f"it returned the shape {answer.shape} for {len(answer)} rows.")
        return answer


def _seeded(model: Any, seed: int) -> Any:
    """Seed every part of a learner whose seed was left open."""
    open_seeds = {
        name: seed
        for name, value in model.get_params().items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return model.set_params(**open_seeds)


def _require_kind(model: Any, nuisance: Nuisance) -> None:
    if is_classifier(model) and not nuisance.is_probability:
        raise OrthocalError(
            f"Nuisance `{nuisance.name}` is a regression on numbers, but {type(model).__name__} is a classifier. "
            f"Pass a regressor in `learners`."
        )


def clip_fitted(
    nuisances: Sequence[Nuisance], values: dict[str, Any], given: Mapping[str, Any], clip: float, fold: Integers
) -> Fitted:
    """Keep fitted divisors away from 0 and 1, and remember how often that was needed."""
    shares: dict[str, float] = {}
    for nuisance in nuisances:
        if nuisance.is_divisor and not set(nuisance.names) <= set(given):
            names = [name for name in (*nuisance.names, *nuisance.extras) if name in values]
            for name, (kept, moved) in zip(names, _clipped([values[name] for name in names], clip), strict=True):
                values[name], shares[name] = kept, float(moved.mean())
    return Fitted(values, clip, shares, fold)


def _clipped(raw: list[Floats], clip: float) -> list[tuple[Floats, Booleans]]:
    """Return fitted chances kept away from 0 and 1, and which had to be; those of several arms still add up to 1."""
    if len(raw) == 1:
        kept = np.clip(raw[0], clip, 1 - clip)
        return [(kept, kept != raw[0])]
    if clip * len(raw) >= 1:
        raise OrthocalError(f"`clip` must be below 1/{len(raw)} where there are {len(raw)} arms; it is {clip}.")
    return [(kept, own < clip) for own, kept in zip(raw, kept_apart(np.column_stack(raw), clip).T, strict=True)]
