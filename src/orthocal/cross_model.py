"""CrossCalibratedModel: train an effect model by folds, calibrate it out of fold, no hold-out set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from orthocal.effects import new_effect
from orthocal.errors import OrthocalError, require_one_of
from orthocal.estimators import (
    EffectParameter,
    UnfittedError,
    effect_parameter,
    html_of,
    mime_bundle_of,
    remember_columns,
    require_columns_of,
    tags_of,
)
from orthocal.folds import draw_folds, row_order
from orthocal.losses import QuadraticLoss
from orthocal.models import prediction_of
from orthocal.nuisances.wrapped import fit_weighted
from orthocal.observations import alike, encode, observe
from orthocal.orthogonal import Recipe, learn_cross
from orthocal.refinement import fit_calibrator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orthocal.arrays import Floats, Integers
    from orthocal.calibrators import Calibrator
    from orthocal.effects import Effect
    from orthocal.losses import Loss
    from orthocal.maps import Map
    from orthocal.observations import Observations

COMBINE: dict[str, Callable[..., Any]] = {"median": np.median, "mean": np.mean}


class CrossCalibratedModel(BaseEstimator):  # type: ignore[misc]
    """From a raw table to a calibrated effect model in one call.

    The effect model is trained once per fold on the other folds; its out-of-fold predictions of all rows, with the cross-fitted
    loss of all rows, give one calibration map; a new row is answered by the median (or mean) of the calibrated fold models.
    This differs from ``CausalCalibrator(scheme="cross")``, where the model is fixed and only nuisances are cross-fitted. (van der
    Laan et al. 2023 call this cross-calibration.)

    Parameters
    ----------
    estimator : scikit-learn regressor, or callable
        A regressor is trained on pseudo-outcomes n / d with weights d: a DR-learner for the CATE; the loss must be quadratic with
        positive d. A callable ``estimator(X, y, treatment)`` trains the user's own model on given rows and returns it.
    effect, method, folds, learners, clip, random_state, n_jobs
        As in `CausalCalibrator`. With a whole number as `random_state` the order of the rows changes nothing, as long as the
        estimator's own seed is fixed, too.
    combine : {"median", "mean"}

    Attributes
    ----------
    models_ : list of fitted models, one per fold
    map_ : Map
    calibrator_ : calibrator
    loss_ : Loss
    prediction_ : array
        Out-of-fold predictions, before calibration.

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

    effect = EffectParameter()
    __sklearn_tags__, _repr_html_, _repr_mimebundle_ = tags_of, html_of, mime_bundle_of

    def __init__(
        self,
        estimator: Any,
        effect: str | Effect = "cate",
        method: str | Calibrator = "auto",
        *,
        folds: int | Any = 5,
        combine: str = "median",
        learners: Mapping[str, Any] | None = None,
        clip: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.effect = effect
        self.method = method
        self.folds = folds
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
        sample_weight: Any = None,
        groups: Any = None,
        nuisances: Mapping[str, Any] | None = None,
        key: Any = None,
    ) -> Self:
        """Train the models by folds and the map on what they predict out of fold; arguments as in `orthogonal_loss`."""
        require_one_of(self.combine, COMBINE, "combine")
        columns = {"treatment": treatment, "instrument": instrument, "sample_weight": sample_weight, "groups": groups}
        rows = observe(X, y, key=key, **columns)
        effect, recipe = new_effect(effect_parameter(self)), self._recipe()
        effect.nuisances(rows)
        order = row_order(rows, recipe.random_state)
        fold = draw_folds(self.folds, effect.strata(rows), rows, recipe.random_state, order)
        if hasattr(self.estimator, "fit"):
            matrix, self.encoding_ = encode(X)
            self.loss_: Loss = learn_cross(effect, rows, X, nuisances, fold, recipe).loss
            self.models_ = _regressors(self.estimator, matrix, self.loss_, fold, order)
            self.prediction_ = _out_of_fold(self.models_, matrix, fold, order, effect)
        else:
            self.models_ = [self._own_model(X, rows, order[fold[order] != k]) for k in range(int(fold.max()) + 1)]
            self.prediction_ = _out_of_fold(self.models_, X, fold, order, effect)
            predicted = replace(rows, prediction=self.prediction_)
            self.loss_ = learn_cross(effect, predicted, X, nuisances, fold, recipe).loss
        self.calibrator_ = fit_calibrator(self.method, self.prediction_, self.loss_, fold=fold)
        self.map_: Map = self.calibrator_.map_
        remember_columns(self, X)
        return self

    def predict(self, X: Any) -> Any:
        """Return the calibrated effect of each row: the fold models' calibrated answers, combined.

        The answer is a column of the kind of `X`: a pandas Series with its index, a polars Series, a pyarrow array, else numpy.
        """
        if not hasattr(self, "map_"):
            raise UnfittedError("This CrossCalibratedModel must be fitted first. Call fit(X, y, treatment=...).")
        require_columns_of(self, X)
        asked = encode(X, like=self.encoding_)[0] if hasattr(self.estimator, "fit") else X
        effect = new_effect(effect_parameter(self))
        answers = [self.map_.predict(prediction_of(model, asked, effect)) for model in self.models_]
        return alike(np.asarray(COMBINE[self.combine](np.stack(answers), axis=0)), X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, `effect` among them, whose attribute is a method."""
        return {**super().get_params(deep), "effect": effect_parameter(self)}

    def _recipe(self) -> Recipe:
        return Recipe(self.learners, self.clip, self.random_state, self.n_jobs).seeded

    def _own_model(self, X: Any, rows: Observations, train: Integers) -> Any:
        model = self.estimator(_safe_indexing(X, train), rows.outcome[train], rows.treatment[train])
        if model is None:
            raise OrthocalError("`estimator` as a function must return the fitted model; it returned None.")
        return model


def _regressors(estimator: Any, X: Floats, loss: Loss, fold: Integers, order: Integers) -> list[Any]:
    """Train the regressor without each fold in turn, on the minimisers of the rows' losses."""
    if not (isinstance(loss, QuadraticLoss) and (loss.denominator > 0).all()):
        raise OrthocalError(
            "A regressor must have a quadratic loss with positive masses to be trained on; this effect has none. "
            "Pass a function that trains your model: estimator(X, y, treatment)."
        )
    target, weight = loss.target, loss.denominator
    models = []
    for k in range(int(fold.max()) + 1):
        train = order[fold[order] != k]
        models.append(fit_weighted(clone(estimator), X[train], target[train], weight[train]))
    return models


def _out_of_fold(models: list[Any], X: Any, fold: Integers, order: Integers, effect: Effect) -> Floats:
    prediction = np.empty(len(fold))
    for k, model in enumerate(models):
        own = order[fold[order] == k]
        prediction[own] = prediction_of(model, _safe_indexing(X, own), effect)
    return prediction
