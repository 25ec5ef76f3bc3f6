"""CausalCalibrator: observations and predictions in, a calibrated prediction out (Algorithms 1 and 2)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.calibrators import new_calibrator
from orthocal.effects import new_effect
from orthocal.errors import OrthocalError, require_one_of
from orthocal.models import prediction_of, warn_if_trained_on
from orthocal.observations import as_numbers, column_names, observe
from orthocal.orthogonal import Orthogonal, Recipe, learn_cross, learn_split, orthogonal_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orthocal.arrays import Floats
    from orthocal.calibrators import Calibrator
    from orthocal.effects import Effect
    from orthocal.losses import Loss, Overlap
    from orthocal.maps import Map

SCHEMES = {
    "cross": lambda effect, rows, X, given, self, recipe: learn_cross(effect, rows, X, given, self.folds, recipe),
    "split": lambda effect, rows, X, given, self, recipe: learn_split(effect, rows, X, given, self.split, recipe),
}
"""How nuisances are kept apart from the rows they are used on."""


class CausalCalibrator(BaseEstimator):  # type: ignore[misc]
    r"""Calibrate a model of causal effects: among people predicted :math:`v`, make the average effect :math:`v`.

    **The predictions must come from a model that was not trained on the rows given to** `fit`: a model flatters itself on its
    training rows, and the map would learn the flattery. Valid under the assumptions of the effect (for the CATE:
    treatment as good as random given the covariates, and overlap).

    Parameters
    ----------
    effect : str or Effect, default "cate"
    method : str or calibrator, default "isotonic"
        ``"identity" "linear" "isotonic" "histogram" "platt"``, or an instance such as ``Histogram(bins=10)``.
    estimator : object, optional
        A fitted effect model with ``.effect(X)`` or ``.predict(X)``, or a callable; then `prediction` need not be passed.
    scheme : {"cross", "split"}, default "cross"
        ``"cross"``: nuisances cross-fitted, one map on all rows (Algorithm 2). ``"split"``: nuisances from a share `split` of the
        rows, map on the rest (Algorithm 1).
    folds : int or array, default 5
    split : float, default 0.5
    refinements : int, default 2
        Rounds of re-estimation for effects whose nuisances depend on the level; without meaning for the CATE.
    learners, clip, random_state, n_jobs
        As in `orthogonal_loss`.

    Attributes
    ----------
    map_ : Map
        The calibration map; ``orthocal.save(map_, path)`` keeps it.
    loss_ : Loss
        The orthogonal loss of the rows in `rows_`.
    nuisances_ : dict of str to array
        The nuisances of those rows; can be passed back to `fit`.
    overlap_ : Overlap
    rows_ : array
        The rows the map was fitted on.
    honest_prediction_ : array
        Scheme "cross" only: each row's calibrated prediction by a map fitted without its fold. For `compare` and pictures; not
        to be judged by `assess` with the same loss, whose residuals it pulls towards zero.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=2000, random_state=0)
    >>> calibrator = CausalCalibrator(method="linear", random_state=0)
    >>> calibrator = calibrator.fit(data.X, data.y, treatment=data.treatment,
    ...                             prediction=1 + 2 * data.effect, nuisances={"propensity": data.nuisances["propensity"]})
    >>> np.round(calibrator.calibrate([1.0, 3.0]), 1) + 0.0
    array([0., 1.])
    """

    def __init__(
        self,
        effect: str | Effect = "cate",
        method: str | Calibrator = "isotonic",
        *,
        estimator: Any = None,
        scheme: str = "cross",
        folds: int | Any = 5,
        split: float = 0.5,
        refinements: int = 2,
        learners: Mapping[str, Any] | None = None,
        clip: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.effect = effect
        self.method = method
        self.estimator = estimator
        self.scheme = scheme
        self.folds = folds
        self.split = split
        self.refinements = refinements
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
        prediction: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        nuisances: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn the nuisances and the calibration map.

        Parameters
        ----------
        X, y, treatment, instrument, sample_weight, groups, nuisances
            As in `orthogonal_loss`.
        prediction : array of shape (rows,), optional
            The effect model's predictions, made without these rows; asked of `estimator` when left out.
        """
        require_one_of(self.scheme, SCHEMES, "scheme")
        observations = observe(
            X,
            y,
            treatment=treatment,
            instrument=instrument,
            prediction=self._prediction(X, prediction),
            sample_weight=sample_weight,
            groups=groups,
        )
        recipe = Recipe(self.learners, self.clip, self.random_state, self.n_jobs)
        self.__dict__.pop("honest_prediction_", None)
        effect = new_effect(self._effect)
        self.learnt_: Orthogonal = SCHEMES[self.scheme](effect, observations, X, nuisances, self, recipe)
        self.map_: Map = fit_map(self.method, self._fitted_prediction, self.loss_, self.refinements)
        self.n_features_in_ = np.shape(X)[1]
        self.columns_ = column_names(X)
        return self

    def calibrate(self, prediction: Any) -> Floats:
        """Return the calibrated prediction for each prediction."""
        return self._require_fitted().map_.predict(prediction)

    def predict(self, X: Any) -> Floats:
        """Return the calibrated effect of each row, asking `estimator` for its prediction."""
        self._require_fitted()
        if self.estimator is None:
            raise OrthocalError(
                "`predict` must have an effect model to ask; `estimator` is None. Use calibrate(prediction), or "
                "CausalCalibrator(estimator=model)."
            )
        self._require_same_columns(X)
        return self.calibrate(prediction_of(self.estimator, X))

    @property
    def effect(self) -> Callable[[Any], Floats]:
        """``effect(X)`` is ``predict(X)``, as EconML's models have it; the parameter is ``get_params()["effect"]``."""
        return self.predict

    @effect.setter
    def effect(self, effect: str | Effect) -> None:
        self._effect = effect

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, `effect` among them, whose attribute is a method."""
        return {**super().get_params(deep), "effect": self._effect}

    def score(
        self,
        X: Any,
        y: Any,
        *,
        treatment: Any,
        instrument: Any = None,
        prediction: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        nuisances: Mapping[str, Any] | None = None,
    ) -> float:
        """Return minus the mean orthogonal loss of the calibrated prediction on these rows; larger is better.

        Nuisances are cross-fitted on these rows. Only differences between scores on the same rows have a meaning.
        """
        before = self._prediction(X, prediction)
        after = self._require_fitted().map_.predict(before)
        loss = orthogonal_loss(
            self._effect,
            X,
            y,
            treatment=treatment,
            instrument=instrument,
            prediction=before,
            sample_weight=sample_weight,
            groups=groups,
            nuisances=nuisances,
            learners=self.learners,
            folds=self.folds,
            clip=self.clip,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        ).at(after)
        return -float(loss.value(after).sum() / loss.weight.sum())

    @property
    def loss_(self) -> Loss:
        """The orthogonal loss of the rows in `rows_`."""
        return self._require_fitted().learnt_.loss

    @property
    def nuisances_(self) -> dict[str, Floats]:
        """The nuisances of those rows, by name."""
        return self._require_fitted().learnt_.nuisances

    @property
    def overlap_(self) -> Overlap | None:
        """How well treatment levels overlap."""
        return self.loss_.overlap

    @property
    def rows_(self) -> Any:
        """The rows the map was fitted on."""
        return self._require_fitted().learnt_.rows

    @cached_property
    def honest_prediction_(self) -> Floats:
        """Each row's calibrated prediction by a map fitted without its fold (scheme "cross" only)."""
        if self.scheme != "cross":
            raise OrthocalError(
                f"`honest_prediction_` must have scheme='cross'; it is {self.scheme!r}. Judge the map on rows not in `rows_`."
            )
        fold, prediction = self._require_fitted().learnt_.fold, self._fitted_prediction
        honest = np.empty(len(prediction))
        for k in np.unique(fold):
            others = np.flatnonzero(fold != k)
            own = fit_map(self.method, prediction[others], self.loss_[others], self.refinements)
            honest[fold == k] = own.predict(prediction[fold == k])
        return honest

    @property
    def _fitted_prediction(self) -> Floats:
        prediction = self.learnt_.prediction
        if prediction is None:  # `_prediction` raised before this could happen
            raise OrthocalError("`prediction` must be given.")
        return prediction

    def _prediction(self, X: Any, prediction: Any) -> Floats:
        if prediction is not None:
            return as_numbers(prediction, "prediction")
        if self.estimator is None:
            raise OrthocalError(
                "`prediction` must be given, or an `estimator` to ask for it; both are None. "
                "Pass the effect model's predictions on rows it was not trained on."
            )
        warn_if_trained_on(self.estimator, X)
        return prediction_of(self.estimator, X)

    def _require_fitted(self) -> Self:
        if not hasattr(self, "map_") and not hasattr(self, "learnt_"):
            raise OrthocalError(
                "This CausalCalibrator must be fitted first. Call fit(X, y, treatment=..., prediction=...)."
            )
        return self

    def _require_same_columns(self, X: Any) -> None:
        if column_names(X) != self.columns_ or np.shape(X)[1] != self.n_features_in_:
            seen = self.columns_ or f"{self.n_features_in_} columns"
            now = column_names(X) or f"{np.shape(X)[1]} columns"
            raise OrthocalError(
                f"`X` must have the columns it had in fit, {seen}; it has {now}. Select and order them alike."
            )


def fit_map(method: str | Calibrator, prediction: Floats, loss: Loss, refinements: int = 2) -> Map:
    """Return the map fitted at the level it predicts: fit, rebuild the loss at the calibrated prediction, fit again.

    A universally orthogonal loss is its own rebuild, so its first fit is final.
    """
    fitted = new_calibrator(method).fit(prediction, loss).map_
    for _ in range(refinements):
        rebuilt = loss.at(fitted.predict(prediction))
        if rebuilt is loss:
            break
        fitted = new_calibrator(method).fit(prediction, rebuilt).map_
    return fitted
