"""CrossCalibratedModel: train an effect model by folds, calibrate it out of fold, no hold-out set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import Floats, Integers, unmasked
from orthocal.calibration.effect_models import prediction_of, selected_rows, train_in_words, way_to_train
from orthocal.calibration.schemes import fit_calibrator
from orthocal.calibration.sklearn_api import (
    EffectParameter,
    UnfittedError,
    alike,
    effect_parameter,
    html_of,
    mime_bundle_of,
    parameters_of,
    remember_columns,
    require_columns_of,
    tags_of,
)
from orthocal.calibrators import Calibrator
from orthocal.effects import Effect, new_effect
from orthocal.errors import OrthocalError, require_one_of, require_whole
from orthocal.folds import draw_folds, is_number_of, row_order
from orthocal.losses import Loss, QuadraticLoss
from orthocal.maps import Map
from orthocal.nuisances.learners import Recipe
from orthocal.nuisances.wrapped import fit_weighted
from orthocal.observations import Observations, encode, observe
from orthocal.orthogonal import learn_cross
from orthocal.progress import followed

COMBINE: dict[str, Callable[..., Any]] = {"mean": np.mean, "median": np.median}
MOST_REPEATS = 1000


class CrossCalibratedModel(BaseEstimator):  # type: ignore[misc]
    r"""From a raw table to a calibrated effect model in one call.

    The effect model is trained on all folds but one, for each fold of several partitions of the rows; the answer to a new row
    is the mean of all these models, calibrated. The map is learnt from what the models that did not see a row predict for it,
    one per partition, with the cross-fitted loss of all rows. (van der Laan et al. 2023 call this cross-calibration. In
    ``CausalCalibrator(scheme="cross")`` the model is fixed and only nuisances are cross-fitted.)

    The mean of :math:`R` out-of-fold models is noisier than the mean of all :math:`RK` models that answers new rows, and a map
    learnt on the noisier one shrinks too much. So the map is learnt at the best linear prediction of the latter from the former,
    :math:`\bar p + \lambda (p - \bar p)` with :math:`\lambda = (V + s^2/RK) / (V + s^2/R)`, where :math:`s^2` is the variance
    between partitions and :math:`V + s^2/R` the variance of :math:`p` over the rows.

    Parameters
    ----------
    estimator : scikit-learn regressor, model of EconML, CausalML or metalearners, or callable
        A regressor is trained on pseudo-outcomes n / d with weights d: a DR-learner for the CATE; the loss must be quadratic with
        positive d. A model of another library, unfitted, is copied and trained on outcome and treatment, with sample weights
        where its `fit` has a place for them. A callable ``estimator(X, y, treatment)``, or ``estimator(X, y, treatment, event)``
        of censored times, trains the user's own model on given rows, without weights, and returns it.
    effect, method, learners, clip, random_state, n_jobs
        As in `CausalCalibrator`; `n_jobs` also trains models at the same time. With a whole number as `random_state` the order
        of the rows changes nothing, as long as the estimator's own seed is fixed, too.
    folds : int or array of shape (rows,) or (rows, partitions), default 5
        How many folds, or the folds as given, which decide how many partitions there are.
    repeats : int, default 3
        How many partitions of the rows into folds. With one the noise of the models cannot be told from the spread of
        their predictions, and calibrated effects are shrunk too much (slope of the effect on them 1.0 to 1.9 over trees, forests
        and boosting in simulations, 1.2 to 1.9 with linear maps; with three 0.91 to 1.04, with linear maps 1.01 to 1.04).
    combine : {"mean", "median"}
        How the models' predictions become one.

    Attributes
    ----------
    models_ : list of fitted models, one per fold of every partition
    map_ : Map
    calibrator_ : calibrator
    loss_ : Loss
    prediction_ : array
        What the map was learnt at: out-of-fold predictions, shrunk to the spread of the mean of all models.
    shrinkage_ : float
        The factor :math:`\lambda` of that.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=2000, random_state=0)
    >>> model = CrossCalibratedModel(LinearRegression(), method="linear", random_state=0)
    >>> model = model.fit(data.X, data.y, treatment=data.treatment, nuisances={"propensity": data.nuisances["propensity"]})
    >>> model.predict(data.X[:2]).shape
    (2,)
    """

    effect, get_params = EffectParameter(), parameters_of
    __sklearn_tags__, _repr_html_, _repr_mimebundle_ = tags_of, html_of, mime_bundle_of

    def __init__(
        self,
        estimator: Any,
        effect: str | Effect = "cate",
        method: str | Calibrator = "auto",
        *,
        folds: int | Any = 5,
        repeats: int = 3,
        combine: str = "mean",
        learners: Mapping[str, Any] | None = None,
        clip: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.effect = effect
        self.method = method
        self.folds = folds
        self.repeats = repeats
        self.combine = combine
        self.learners = learners
        self.clip = clip
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        treatment: Any,
        instrument: Any = None,
        event: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        nuisances: Mapping[str, Any] | None = None,
        key: Any = None,
    ) -> Self:
        """Train the models by folds and the map on what they predict out of fold; arguments as in `orthogonal_loss`."""
        require_one_of(self.combine, COMBINE, "combine")
        require_whole(self.repeats, 1, "repeats", MOST_REPEATS)
        columns = {"treatment": treatment, "instrument": instrument, "sample_weight": sample_weight, "groups": groups}
        rows = observe(X, y, event=event, key=key, **columns)
        effect, recipe = new_effect(effect_parameter(self)), self._recipe()
        effect.nuisances(rows)
        order = row_order(rows, recipe.random_state)
        partitions = self._partitions(effect, rows, recipe, order)
        train, self.encoding_, known = way_to_train(self.estimator, censored=rows.event is not None), None, X
        if train is None:
            known, self.encoding_ = encode(X)
            self.loss_: Loss = learn_cross(effect, rows, X, nuisances, partitions[0], recipe).loss
            train = partial(_train_regressor, loss=self.loss_)
        models = _trained(partial(train_in_words, train, self.estimator, known, rows), partitions, order, self.n_jobs)
        each = np.stack([_out_of_fold(*pair, order, known, effect) for pair in zip(models, partitions, strict=True)])
        self.models_ = [model for by_fold in models for model in by_fold]
        self.shrinkage_ = _shrinkage(each, len(self.models_), rows.weight)
        together = np.asarray(COMBINE[self.combine](each, axis=0))
        centre = np.average(together, weights=rows.weight)
        self.prediction_ = centre + self.shrinkage_ * (together - centre)
        if self.encoding_ is None:
            predicted = replace(rows, prediction=self.prediction_)
            self.loss_ = learn_cross(effect, predicted, X, nuisances, partitions[0], recipe).loss
        self.calibrator_ = fit_calibrator(self.method, self.prediction_, self.loss_, fold=partitions[0])
        self.map_: Map = self.calibrator_.map_
        remember_columns(self, X)
        return self

    def predict(self, X: Any) -> Any:
        """Return the calibrated effect of each row: the models' predictions, combined, then calibrated.

        The answer is a column of the kind of `X`: a pandas Series with its index, a polars Series, a pyarrow array, else numpy.
        """
        if not hasattr(self, "map_"):
            raise UnfittedError("This CrossCalibratedModel must be fitted first. Call fit(X, y, treatment=...).")
        require_columns_of(self, X)
        asked = X if self.encoding_ is None else encode(X, like=self.encoding_)[0]
        effect = new_effect(effect_parameter(self))
        answers = np.stack([prediction_of(model, asked, effect) for model in self.models_])
        return alike(self.map_.predict(np.asarray(COMBINE[self.combine](answers, axis=0))), X)

    def _recipe(self) -> Recipe:
        return Recipe(self.learners, self.clip, self.random_state, self.n_jobs).seeded

    def _partitions(self, effect: Effect, rows: Observations, recipe: Recipe, order: Integers) -> list[Integers]:
        """Folds of the rows, drawn several times or as given; the first are drawn in the order that is known."""
        strata = effect.strata(rows)
        if not is_number_of(self.folds):
            given = np.asarray(unmasked(self.folds))
            return [draw_folds(folds, strata, rows, 0) for folds in (given.T if given.ndim == 2 else [given])]
        first = draw_folds(self.folds, strata, rows, recipe.random_state, order)
        seeds = [recipe.again(time).random_state for time in range(1, self.repeats)]
        return [first, *(draw_folds(self.folds, strata, rows, seed) for seed in seeds)]


def _train_regressor(estimator: Any, X: Floats, observations: Observations, rows: Integers, *, loss: Loss) -> Any:
    """Train a regressor on the minimisers of the rows' losses."""
    del observations
    if not (isinstance(loss, QuadraticLoss) and (loss.denominator[loss.weight > 0] > 0).all()):
        raise OrthocalError(
            "A regressor must have a quadratic loss with positive masses to be trained on; this effect has none. "
            "Pass a function that trains your model: estimator(X, y, treatment)."
        )
    own = rows[loss.weight[rows] > 0]
    numerator, weight = loss.numerator[own], loss.denominator[own]
    return fit_weighted(clone(estimator), X[own], numerator / weight, weight)


def _trained(
    train: Callable[[Integers], Any], partitions: list[Integers], order: Integers, n_jobs: int | None
) -> list[list[Any]]:
    """Train one model without each fold of each partition."""
    without = [[order[fold[order] != k] for k in range(int(fold.max()) + 1)] for fold in partitions]
    jobs = [delayed(train)(rows) for by_fold in without for rows in by_fold]
    models = followed(Parallel(n_jobs=n_jobs, return_as="generator")(jobs), len(jobs))
    return [[next(models) for _ in by_fold] for by_fold in without]


def _out_of_fold(models: list[Any], fold: Integers, order: Integers, X: Any, effect: Effect) -> Floats:
    prediction = np.empty(len(fold))
    for k, model in enumerate(models):
        own = order[fold[order] == k]
        prediction[own] = prediction_of(model, selected_rows(X, np.asarray(own)), effect)
    return prediction


def _shrinkage(each: Floats, models: int, weight: Floats) -> float:
    r"""Return the slope of the mean of all models on the mean of one model per partition.

    With :math:`s^2` between the models of a row and :math:`V` between rows, :math:`(V + s^2/RK) / (V + s^2/R)`: models that saw
    different rows are taken to err independently given the row.
    """
    repeats = len(each)
    if repeats == 1:
        return 1.0
    noise = float(np.average(each.var(axis=0, ddof=1), weights=weight))
    if noise == 0:
        return 1.0
    mean = each.mean(axis=0)
    between = float(np.average((mean - np.average(mean, weights=weight)) ** 2, weights=weight)) - noise / repeats
    return (max(between, 0.0) + noise / models) / (max(between, 0.0) + noise / repeats)
