"""From observations and an effect to the loss everything else works on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.calibrators.left_out import validation_folds, value_order
from orthocal.effects import Effect, loss_of_all, new_effect
from orthocal.effects.description import stamped
from orthocal.errors import require_inside
from orthocal.events import require_use_of_event
from orthocal.folds import LEARNERS, SPLIT, VALIDATION, draw_folds, is_number_of, row_order, split_rows
from orthocal.losses import Loss
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import Fitted, check_given, cross_fit, to_learn
from orthocal.nuisances.learners import Recipe, choose_learners
from orthocal.observations import Observations, observe


@dataclass(frozen=True, eq=False, kw_only=True)
class Orthogonal:
    """A loss with all that was learnt on the way.

    Parameters
    ----------
    loss : Loss
        Of the rows in `rows`.
    nuisances : dict of str to array
        Their nuisances, by name.
    prediction : array or None
    fold : array or None
        Their folds; None where nothing was learnt, so that none were drawn.
    rows : array
        Which of the observed rows the loss covers.
    folds, seed : int
        Of the folds that are drawn for maps only.
    """

    loss: Loss
    nuisances: dict[str, Any]
    prediction: Floats | None
    fold: Integers | None
    rows: Integers
    folds: int = 5
    seed: int = 0

    @cached_property
    def map_fold(self) -> Integers:
        """The fold without which a row's map is fitted: that of its nuisances or, where none were learnt, one drawn now."""
        if self.fold is not None:
            return self.fold
        order = value_order(cast("Floats", self.prediction), self.loss)
        fold = np.empty(len(order), dtype=np.int64)
        fold[order] = validation_folds(self.loss[order], self.folds, [self.seed, VALIDATION])
        return fold


def orthogonal_loss(
    effect: str | Effect,
    X: Any,
    y: Any,
    *,
    treatment: Any,
    instrument: Any = None,
    event: Any = None,
    prediction: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    nuisances: Mapping[str, Any] | None = None,
    learners: Mapping[str, Any] | None = None,
    folds: int | Any = 5,
    key: Any = None,
    clip: float = 0.01,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Loss:
    r"""Cross-fit the nuisances of an effect and return the orthogonal loss of each row.

    The mean of the loss over people with the same prediction is least at their true average effect, and an error of size
    :math:`h` in the nuisances moves that minimum by :math:`h^2` only (paper, Definition of a universally orthogonal loss).

    Parameters
    ----------
    effect : str or Effect
        For instance ``"cate"`` or ``CATE(arm="drug", control="placebo")``.
    X : array or data frame of shape (rows, columns)
        Covariates; numpy, pandas, polars or pyarrow. Text and categories become indicators; NaN is left to the learners.
    y, treatment : array or column of shape (rows,)
    event : array or column of shape (rows,), optional
        Where `y` is a time: 1 if it is that of the event, 0 if follow-up ended then (censored). scikit-survival's structured
        arrays of both may be passed as `y`.
    instrument, prediction, sample_weight, groups : array or column of shape (rows,), optional
        `groups` names clusters, which folds keep whole. Rows are aligned by order, never by index.
    nuisances : mapping, optional
        Known nuisances by name, such as ``{"propensity": 0.5}``: a number, an array, or a function of `X`.
    learners : mapping, optional
        scikit-learn estimators by nuisance name or role, such as ``{"outcome": RidgeCV()}``.
    folds : int or array of shape (rows,), default 5
        How many folds, or the fold of each row. They are drawn only where something is learnt.
    key : array or column of shape (rows,), optional
        What identifies a row, such as a person's number. Folds are drawn by a hash of it and of `random_state`, so that neither
        the order of the rows nor the outcome has a say; by covariates, treatment and instrument where it is left out.
    clip : float, default 0.01
        Fitted propensities are clipped to [clip, 1 - clip]; given ones are used as they are.
    random_state : int, Generator, RandomState or None
        With a whole number the answer of a row does not depend on where it stands among the others; None draws one.
    n_jobs : int, optional
        Learner fits in parallel, -1 for all cores. The answer does not depend on it.

    Returns
    -------
    Loss
        To be handed, with a prediction of the same rows, to a calibrator, `assess` or `compare`.

    Examples
    --------
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=1000, random_state=0)
    >>> loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment,
    ...                        nuisances=data.nuisances, random_state=0)
    >>> len(loss), loss.unit
    (1000, 'effect')
    """
    observations = observe(
        X,
        y,
        treatment=treatment,
        instrument=instrument,
        prediction=prediction,
        sample_weight=sample_weight,
        groups=groups,
        key=key,
        event=event,
    )
    recipe = Recipe(learners, clip, random_state, n_jobs)
    return learn_cross(new_effect(effect), observations, X, nuisances, folds, recipe).loss


def learn_cross(
    effect: Effect,
    observations: Observations,
    X: Any,
    given: Mapping[str, Any] | None,
    folds: int | Any,
    recipe: Recipe,
) -> Orthogonal:
    """Nuisances by cross-fitting, loss on every row (Algorithm 2, steps 1-6); functions among `given` see `X`.

    Folds are drawn only where there is something to learn.
    """
    recipe, drawing = recipe.seeded, is_number_of(folds)
    require_use_of_event(effect, observations.event)
    wanted = effect.nuisances(observations)
    known = check_given(wanted, given, X, len(observations))
    order = _learning_order(wanted, observations, known, recipe)
    fold = None
    if order is not None or not drawing:
        fold = draw_folds(folds, effect.strata(observations), observations, recipe.random_state, order)
    fitted = _fit(wanted, observations, known, fold, recipe, order, None)
    number = int(folds) if drawing else len(np.unique(cast("Integers", fold)))
    loss = stamped(loss_of_all(effect, observations, fitted), effect, wanted, known, number, recipe, len(observations))
    every = np.arange(len(observations))
    return Orthogonal(
        loss=loss,
        nuisances=fitted.values,
        prediction=observations.prediction,
        fold=fold,
        rows=every,
        folds=number,
        seed=recipe.random_state,
    )


def learn_split(
    effect: Effect, observations: Observations, X: Any, given: Mapping[str, Any] | None, split: float, recipe: Recipe
) -> Orthogonal:
    """Nuisances from a `split` of the rows, loss on the rest (Algorithms 1 and 3, steps 1-2)."""
    require_inside(split, 0, 1, "split")
    recipe = recipe.seeded
    part = split_rows(split, effect.strata(observations), observations, recipe.random_state, SPLIT)
    return learn_given_split(effect, observations, X, given, np.arange(len(observations)), part, recipe)


def learn_given_split(
    effect: Effect,
    observations: Observations,
    X: Any,
    given: Mapping[str, Any] | None,
    used: Integers,
    part: Integers,
    recipe: Recipe,
) -> Orthogonal:
    """Among the `used` rows: nuisances from those whose `part` is 0, loss on those where it is 1."""
    require_use_of_event(effect, observations.event)
    known = check_given(effect.nuisances(observations), given, X, len(observations))
    known = {name: value[used] for name, value in known.items()}
    chosen = observations[used]
    wanted = effect.nuisances(chosen)
    fitted = _fit(wanted, chosen, known, part, recipe, _learning_order(wanted, chosen, known, recipe), [1])
    rows = used[part == 1]
    rest = observations[rows]
    loss = stamped(loss_of_all(effect, rest, fitted), effect, wanted, known, len(np.unique(part)), recipe, len(part))
    return Orthogonal(loss=loss, nuisances=fitted.values, prediction=rest.prediction, fold=part[part == 1], rows=rows)


def _learning_order(
    wanted: Sequence[Nuisance], observations: Observations, known: Collection[str], recipe: Recipe
) -> Integers | None:
    """Return the rows in the order in which folds are dealt and learners see them; None where nothing is learnt."""
    return row_order(observations, recipe.random_state) if to_learn(wanted, known) else None


def _fit(
    wanted: Sequence[Nuisance],
    observations: Observations,
    known: dict[str, Any],
    fold: Integers | None,
    recipe: Recipe,
    order: Integers | None,
    evaluate: list[int] | None,
) -> Fitted:
    if fold is None:  # nothing is learnt
        if recipe.learners is not None:
            choose_learners(wanted, recipe.learners)  # refuses what is no learner
        return Fitted(known, recipe.clip)
    return cross_fit(
        wanted,
        observations.covariates,
        fold,
        given=known,
        learners=recipe.learners,
        weight=None if np.ptp(observations.weight) == 0 else observations.weight,
        clip=recipe.clip,
        evaluate=evaluate,
        order=order,
        random_state=[recipe.random_state, LEARNERS],
        n_jobs=recipe.n_jobs,
    )
