"""From observations and an effect to the loss everything else works on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from orthocal.effects import Effect, loss_of_all, new_effect
from orthocal.effects.words import words_of
from orthocal.errors import OrthocalError, require_inside
from orthocal.folds import assign_folds, generator, split_rows
from orthocal.losses import Origin
from orthocal.nuisances.cross_fit import Fitted, check_given, cross_fit
from orthocal.nuisances.learners import choose_learners
from orthocal.observations import Observations, observe

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from orthocal.arrays import Floats, Integers
    from orthocal.losses import Loss
    from orthocal.nuisances import Nuisance


@dataclass(frozen=True, eq=False)
class Orthogonal:
    """A loss with all that was learnt on the way.

    Parameters
    ----------
    loss : Loss
        Of the rows in `rows`.
    nuisances : dict of str to array
        Their nuisances, by name.
    prediction : array or None
    fold : array
        Their folds.
    rows : array
        Which of the observed rows the loss covers.
    """

    loss: Loss
    nuisances: dict[str, Any]
    prediction: Floats | None
    fold: Integers
    rows: Integers


@dataclass(frozen=True)
class Recipe:
    """How nuisances are learnt: everything that is not data.

    Parameters
    ----------
    learners : mapping of str to scikit-learn estimator, optional
    clip : float
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
    """

    learners: Mapping[str, Any] | None = None
    clip: float = 0.01
    random_state: Any = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        require_inside(self.clip, 0, 0.5, "clip")
        if self.n_jobs == 0:
            raise OrthocalError("`n_jobs` must not be 0. Use 1 for one fit at a time, -1 for all cores.")
        if isinstance(self.random_state, int) and self.random_state < 0:
            raise OrthocalError(f"`random_state` must not be negative; it is {self.random_state}.")


def orthogonal_loss(
    effect: str | Effect,
    X: Any,
    y: Any,
    *,
    treatment: Any,
    instrument: Any = None,
    prediction: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    nuisances: Mapping[str, Any] | None = None,
    learners: Mapping[str, Any] | None = None,
    folds: int | Any = 5,
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
    instrument, prediction, sample_weight, groups : array or column of shape (rows,), optional
        `groups` names clusters, which folds keep whole. Rows are aligned by order, never by index.
    nuisances : mapping, optional
        Known nuisances by name, such as ``{"propensity": 0.5}``: a number, an array, or a function of `X`.
    learners : mapping, optional
        scikit-learn estimators by nuisance name or role, such as ``{"outcome": RidgeCV()}``.
    folds : int or array of shape (rows,), default 5
        How many folds, or the fold of each row.
    clip : float, default 0.01
        Fitted propensities are kept inside [clip, 1 - clip]; given ones are used as they are.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Learner fits that run at once, -1 for all cores. The answer does not depend on it.

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
    """Nuisances by cross-fitting, loss on every row (Algorithm 2, steps 1-6); functions among `given` see `X`."""
    wanted = effect.nuisances(observations)
    rng = generator(recipe.random_state)
    fold = assign_folds(folds, effect.strata(observations), observations.groups, rng)
    known = check_given(wanted, given, X, len(observations))
    fitted = _fit(wanted, observations, known, fold, recipe, rng, None)
    every = np.arange(len(observations))
    loss = _stamped(loss_of_all(effect, observations, fitted), effect, wanted, known, fold, recipe)
    return Orthogonal(loss, fitted.values, observations.prediction, fold, every)


def learn_split(
    effect: Effect,
    observations: Observations,
    X: Any,
    given: Mapping[str, Any] | None,
    split: float,
    recipe: Recipe,
) -> Orthogonal:
    """Nuisances from a `split` of the rows, loss on the rest (Algorithms 1 and 3, steps 1-2)."""
    require_inside(split, 0, 1, "split")
    rng = generator(recipe.random_state)
    part = split_rows(split, effect.strata(observations), observations.groups, rng)
    recipe = Recipe(recipe.learners, recipe.clip, rng, recipe.n_jobs)
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
    known = check_given(effect.nuisances(observations), given, X, len(observations))
    known = {name: value[used] for name, value in known.items()}
    chosen, rng = observations[used], generator(recipe.random_state)
    wanted = effect.nuisances(chosen)
    fitted = _fit(wanted, chosen, known, part, recipe, rng, [1])
    rows = used[part == 1]
    rest = observations[rows]
    loss = _stamped(loss_of_all(effect, rest, fitted), effect, wanted, known, part, recipe)
    return Orthogonal(loss, fitted.values, rest.prediction, part[part == 1], rows)


def _stamped(
    loss: Loss, effect: Effect, wanted: Sequence[Nuisance], known: Mapping[str, Any], fold: Integers, recipe: Recipe
) -> Loss:
    """Return the loss with its origin written on it; an own loss that has no place for one stays as it is."""
    if not hasattr(loss, "origin"):
        return loss
    learners = choose_learners(wanted, recipe.learners)
    origin = origin_of(effect, wanted, known, learners, len(np.unique(fold)), recipe, len(fold))
    return cast("Loss", replace(cast("Any", loss), origin=origin))


def origin_of(
    effect: Effect,
    wanted: Sequence[Nuisance],
    known: Collection[str],
    learners: Mapping[str, Any],
    folds: int,
    recipe: Recipe,
    rows: int,
) -> Origin:
    """Say where a loss comes from."""
    words = words_of(effect)
    return Origin(
        repr(effect),
        words.estimand,
        words.formula,
        words.assumption,
        {n.name: "given" if set(n.names) <= set(known) else " ".join(repr(learners[n.name]).split()) for n in wanted},
        folds,
        recipe.clip,
        str(recipe.random_state) if isinstance(recipe.random_state, int) else "not recorded",
        rows,
    )


def _fit(
    wanted: Sequence[Nuisance],
    observations: Observations,
    known: Mapping[str, Any],
    fold: Integers,
    recipe: Recipe,
    rng: np.random.Generator,
    evaluate: list[int] | None,
) -> Fitted:
    return cross_fit(
        wanted,
        observations.covariates,
        fold,
        given=known,
        learners=recipe.learners,
        weight=None if np.ptp(observations.weight) == 0 else observations.weight,
        clip=recipe.clip,
        evaluate=evaluate,
        random_state=rng,
        n_jobs=recipe.n_jobs,
    )
