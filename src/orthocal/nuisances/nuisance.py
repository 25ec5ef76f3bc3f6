"""A nuisance: what is learnt of which rows; and its models, to be asked about rows of the folds they never saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers


def _of_covariates(function: Callable[..., Any], X: Any) -> Any:
    return function(X)


def _as_it_is(values: Any) -> Any:
    return values


@dataclass(frozen=True, eq=False)
class Nuisance:
    """One regression of a target on the covariates.

    Parameters
    ----------
    name : str
        Its own name, under which it can be given or its learner chosen.
    role : str
        The kind of thing it is; a learner chosen for a role serves every nuisance of that role.
    target : array of shape (rows,)
    rows : boolean array of shape (rows,), optional
        The rows it is learnt from, for instance those of one treatment arm; all by default. It is predicted for all.
    is_probability : bool
        The target is 0 or 1: a classifier learns it.
    is_divisor : bool
        The formula divides by it and by one minus it: fitted values are clipped, given ones must be inside (0, 1).
    features : array of shape (rows, columns), optional
        What it is learnt from, when not the covariates alone.
    wrap : callable, optional
        Turns the learner into an estimator of something else, such as a derivative or a whole conditional distribution.
    outputs : tuple of str
        Names of the columns that estimator predicts; the nuisance's own name by default.
    extras : tuple of str
        Names of further columns behind the outputs that the loss can do without: who gives the outputs need not give them.
    finish : callable
        Turns the predicted values of all rows into what the loss works with.
    call : callable
        How a function that is given in place of this nuisance is asked: ``call(function, X)``.
    read : callable
        Turns another value that is given in its place into what the loss works with.
    learner : scikit-learn estimator, optional
        Its learner by default, where `default_learner` is not for it.
    settings : mapping of str to object
        What the boosted trees of `default_learner` have otherwise, if they can be stopped by rows that are set aside for it.
    """

    name: str
    role: str
    target: Floats
    rows: Booleans | None = None
    is_probability: bool = False
    is_divisor: bool = False
    features: Floats | None = None
    wrap: Callable[[Any], Any] | None = None
    outputs: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    finish: Callable[[Floats], Any] = field(default=_as_it_is)
    call: Callable[[Callable[..., Any], Any], Any] = field(default=_of_covariates)
    read: Callable[[Any], Any] = field(default=_as_it_is)
    learner: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """What it provides, and must be given in its place."""
        return self.outputs or (self.name,)

    def named(self, values: Floats) -> dict[str, Any]:
        """Return what was predicted by name: one entry per output, or the finished whole."""
        finished = self.finish(values)
        if self.outputs:
            return {name: finished[:, j] for j, name in enumerate((*self.outputs, *self.extras))}
        return {self.name: finished}


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """A nuisance with its fitted models.

    Parameters
    ----------
    nuisance : Nuisance
        Without rows: what is left says how answers become what the loss works with.
    models : sequence of callables
        For each fold, features to answers, by a model that never saw the fold.
    has_features : bool
        Its features are not the covariates alone, and must be asked of the effect.
    """

    nuisance: Nuisance
    models: Sequence[Any]
    has_features: bool = False

    def answers(self, features: Any, fold: Integers) -> Floats:
        """Return what the models say of rows, each asked of the model that never saw its fold."""
        found: Any = None
        for k, model in enumerate(self.models):
            rows = fold == k
            if rows.any():
                answer = np.asarray(model(features[rows]))
                found = np.empty((len(fold), *answer.shape[1:])) if found is None else found
                found[rows] = answer
        return np.asarray(found)


def trained(nuisance: Nuisance, models: Sequence[Any]) -> Trained:
    """Return a nuisance with its models and without its rows, light enough to be sent about."""
    bare = replace(nuisance, target=np.empty(0), rows=None, features=None)
    return Trained(nuisance=bare, models=tuple(models), has_features=nuisance.features is not None)
