"""Cross-fitting: each row's nuisance comes from a model that never saw the row's fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from orthocal.errors import OrthocalError, require_known_propensity
from orthocal.folds import generator
from orthocal.nuisances.learners import choose_learners
from orthocal.observations import as_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orthocal.arrays import Floats, Integers, Rows
    from orthocal.nuisances.nuisance import Nuisance


@dataclass(frozen=True)
class Fitted:
    """The nuisances of an effect, filled in for every row.

    Parameters
    ----------
    values : dict of str to array
        By name; rows that were not evaluated hold NaN.
    clip : float
    clipped : dict of str to float
        Share of rows where a fitted divisor was moved to `clip` or 1 - `clip`; empty for given ones.
    """

    values: dict[str, Floats]
    clip: float
    clipped: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Floats:
        return self.values[name]


def cross_fit(
    nuisances: Sequence[Nuisance],
    X: Floats,
    fold: Integers,
    *,
    given: Mapping[str, Floats] | None = None,
    learners: Mapping[str, Any] | None = None,
    weight: Floats | None = None,
    clip: float = 0.01,
    evaluate: Sequence[int] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Fitted:
    """Learn each nuisance on the other folds of every fold (Algorithm 2, steps 3-5) and predict it there.

    Parameters
    ----------
    given : mapping of str to array, optional
        Nuisances known beforehand: they are used as they are, not learnt.
    evaluate : sequence of int, optional
        The folds to predict; all by default. Sample splitting is two folds of which one is evaluated.
    n_jobs : int, optional
        Fits that run at once. Every fit uses one thread, so answers do not depend on this.
    """
    given = dict(given or {})
    learner = choose_learners(nuisances, learners)
    open_ = [nuisance for nuisance in nuisances if nuisance.name not in given]
    folds = np.unique(fold) if evaluate is None else evaluate
    seeds = generator(random_state).integers(2**31, size=(len(nuisances), int(fold.max()) + 1))
    jobs = [
        delayed(_fit_and_predict)(learner[n.name], n, X, fold, k, weight, int(seeds[j, k]))
        for j, n in enumerate(nuisances)
        if n.name not in given
        for k in folds
    ]
    answers = iter(Parallel(n_jobs=n_jobs)(jobs) if jobs else ())
    values = {name: np.asarray(array) for name, array in given.items()}
    for nuisance in open_:
        values[nuisance.name] = np.full(len(fold), np.nan)
        for k in folds:
            values[nuisance.name][fold == k] = next(answers)
    return _clipped(nuisances, values, given, clip)


def check_given(nuisances: Sequence[Nuisance], given: Mapping[str, Any] | None, X: Any, n: int) -> dict[str, Floats]:
    """Return the nuisances a user knows, each a number, an array or a function of X, as one array each."""
    names = {nuisance.name: nuisance for nuisance in nuisances}
    arrays: dict[str, Floats] = {}
    for name, known in (given or {}).items():
        if name not in names:
            raise OrthocalError(f"`nuisances` has no use for {name!r}; this effect has {', '.join(names)}.")
        value = known(X) if callable(known) else known
        arrays[name] = np.full(n, float(value)) if np.ndim(value) == 0 else as_numbers(value, name, n)
        if names[name].is_divisor:
            require_known_propensity(arrays[name], name)
    return arrays


def _fit_and_predict(
    learner: Any, nuisance: Nuisance, X: Floats, fold: Integers, k: int, weight: Floats | None, seed: int
) -> Floats:
    """One nuisance of one fold, on one thread: threads of several fits on few cores wait for each other."""
    train = fold != k if nuisance.rows is None else (fold != k) & nuisance.rows
    target = nuisance.target[train]
    if len(target) == 0:
        raise OrthocalError(
            f"Nuisance `{nuisance.name}` must have rows to learn from; outside fold {k} there is none. Use fewer folds."
        )
    if target.min() == target.max():  # nothing to learn, and classifiers refuse a single class
        return np.full(int((fold == k).sum()), target[0])
    model = _seeded(clone(learner), seed)
    if is_classifier(model):
        target = _classes(target, nuisance, model)
    try:
        with threadpool_limits(limits=1):
            model.fit(X[train], target, **_weight_arguments(model, None if weight is None else weight[train]))
            return _predict(model, X[fold == k])
    except (TypeError, ValueError) as error:
        raise OrthocalError(
            f"The learner {type(model).__name__} of nuisance `{nuisance.name}` failed: {str(error).splitlines()[0]} "
            "Choose another with `learners`, or mend the covariates."
        ) from error


def _seeded(model: Any, seed: int) -> Any:
    """Seed every part of a learner whose seed was left open."""
    open_seeds = {
        name: seed
        for name, value in model.get_params().items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return model.set_params(**open_seeds)


def _classes(target: Floats, nuisance: Nuisance, model: Any) -> Integers:
    if not nuisance.is_probability:
        raise OrthocalError(
            f"Nuisance `{nuisance.name}` is a regression on numbers, but {type(model).__name__} is a classifier. "
            f"Pass a regressor in `learners`."
        )
    return target.astype(np.int64)


def _predict(model: Any, X: Floats) -> Floats:
    answer = model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X)
    return np.asarray(answer, dtype=np.float64).reshape(len(X))


def _weight_arguments(model: Any, weight: Floats | None) -> dict[str, Floats]:
    """Weights under the name the learner takes them, or nothing where it takes none."""
    if weight is None:
        return {}
    if has_fit_parameter(model, "sample_weight"):
        return {"sample_weight": weight}
    steps = getattr(model, "steps", None)
    if steps and has_fit_parameter(steps[-1][1], "sample_weight"):
        return {f"{steps[-1][0]}__sample_weight": weight}
    return {}


def _clipped(
    nuisances: Sequence[Nuisance], values: dict[str, Floats], given: Mapping[str, Floats], clip: float
) -> Fitted:
    shares: dict[str, float] = {}
    for nuisance in nuisances:
        if nuisance.is_divisor and nuisance.name not in given:
            raw = values[nuisance.name]
            values[nuisance.name] = np.clip(raw, clip, 1 - clip)
            seen: Rows = ~np.isnan(raw)
            shares[nuisance.name] = float((values[nuisance.name][seen] != raw[seen]).mean())
    return Fitted(values, clip, shares)
