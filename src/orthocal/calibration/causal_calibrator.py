"""CausalCalibrator: observations and predictions in, a calibrated prediction out (Algorithms 1-4 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self, cast

from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.calibration.bands import boxed_share, fitted_band, interval_of
from orthocal.calibration.effect_models import given_or_asked, prediction_of
from orthocal.calibration.guarantee import Guarantee, Outcomes, guarantee_of
from orthocal.calibration.schemes import SCHEMES, Plan, out_of_fold
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
from orthocal.errors import OrthocalError, require_one_of
from orthocal.formats import shown
from orthocal.losses import Loss, Overlap
from orthocal.maps import Map, StepMap
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe
from orthocal.orthogonal import Orthogonal, orthogonal_loss


class CausalCalibrator(BaseEstimator):  # type: ignore[misc]
    r"""Calibrate a model of causal effects: among people predicted :math:`v`, make the average effect :math:`v`.

    **The predictions must come from a model that was not trained on the rows given to** `fit`: in-sample
    predictions look better than they are, and the map would learn that. Valid under the assumptions of the effect (for the CATE:
    treatment as good as random given the covariates, and overlap).

    Parameters
    ----------
    effect : str or Effect, default "cate"
        What the predictions are predictions of: a name, or an instance such as ``CATE(arm="drug", control="placebo")``.
    method : str or calibrator, default "auto"
        ``"identity" "constant" "shift" "linear" "isotonic" "histogram" "spline" "platt" "auto"``, or an instance such as
        ``Histogram(bins=10)``.
    estimator : object, optional
        A fitted effect model of EconML, CausalML, metalearners, DoubleML (``cate(basis)``) or scikit-learn, or any callable;
        then `prediction` need not be passed. Of a model with several arms, the arm of `effect` is meant. Where this
        calibrator is cloned (grid search), wrap a scikit-learn model in ``sklearn.frozen.FrozenEstimator`` to keep it fitted.
    scheme : {"cross", "split", "three-way"}, default "cross"
        ``"cross"``: nuisances cross-fitted, one map on all rows (Algorithms 2 and 4). ``"split"``: nuisances from a share
        `split` of the rows, map on the rest (Algorithms 1 and 3). ``"three-way"``: bins, nuisances and values from a third of
        the rows each (Algorithm 6); histogram only, with a `guarantee`.
    folds : int or array, default 5
        Of the cross-fitting: how many, or the fold of each row.
    split : float, default 0.5
        Share of the rows that the nuisances come from (scheme ``"split"``).
    refinements : int, default 2
        Rounds of re-estimation for effects whose nuisances depend on the prediction (quantile, expectile); 0 is Algorithm 4 as
        printed. Without meaning for the others.
    learners, clip, random_state, n_jobs
        As in `orthogonal_loss`.

    Attributes
    ----------
    map_ : Map
        The calibration map; ``orthocal.save(map_, path)`` keeps it.
    calibrator_ : calibrator
        The fitted calibrator; of ``"auto"``, its ``choice_``, ``weights_``, ``reason_`` and ``trials_``.
    band_ : EffectBand
        Of the average effect of people with the same prediction, never of a person's own effect; `interval` reads it.
    boxed_ : float
        Share of the fitted rows whose calibrated prediction sits on a bound of the loss (quantiles and expectiles).
    loss_ : Loss
        The orthogonal loss of the rows in `rows_`.
    nuisances_ : dict of str to array
        The nuisances of those rows; of scheme "cross", they can be passed back to `fit`.
    overlap_ : Overlap
    rows_ : array
        The rows the map was fitted on.
    prediction_ : array
        The predictions of those rows, before calibration.
    honest_prediction_ : array
        Scheme "cross" only: each row's calibrated prediction by a map fitted without its fold; maps are fitted on
        first use. For `compare` and pictures; not to be judged by `assess` with the same loss, whose residuals it
        pulls towards zero.

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

    effect, get_params = EffectParameter(), parameters_of
    __sklearn_tags__, _repr_html_, _repr_mimebundle_ = tags_of, html_of, mime_bundle_of
    band_, interval, boxed_ = fitted_band, interval_of, boxed_share

    def __init__(
        self,
        effect: str | Effect = "cate",
        method: str | Calibrator = "auto",
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
        event: Any = None,
        prediction: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        nuisances: Mapping[str, Any] | None = None,
        key: Any = None,
    ) -> Self:
        """Learn the nuisances and the calibration map.

        Parameters
        ----------
        X, y, treatment, instrument, event, sample_weight, groups, nuisances, key
            As in `orthogonal_loss`.
        prediction : array of shape (rows,), optional
            The effect model's predictions, made without these rows; by `estimator` when left out.
        """
        require_one_of(self.scheme, SCHEMES, "scheme")
        observations = observe(
            X,
            y,
            treatment=treatment,
            instrument=instrument,
            event=event,
            prediction=given_or_asked(prediction, self.estimator, X, self._chosen_effect),
            sample_weight=sample_weight,
            groups=groups,
            key=key,
        )
        recipe = Recipe(self.learners, self.clip, self.random_state, self.n_jobs)
        settings = {name: getattr(self, name) for name in ("method", "folds", "split", "refinements")}
        plan = Plan(effect=self._chosen_effect, recipe=recipe, **settings)
        learnt, calibrator = SCHEMES[self.scheme](plan, observations, X, nuisances)
        # Nothing is kept of a fit that failed, and nothing is left of the fit before.
        for made in ("honest_prediction_", "band_"):
            self.__dict__.pop(made, None)
        self.learnt_: Orthogonal = learnt
        self.calibrator_: Calibrator = calibrator
        self.map_: Map = calibrator.map_
        self.fitted_effect_, self.fitted_method_, self.fitted_scheme_ = plan.effect, self.method, self.scheme
        self.outcomes_ = Outcomes.of(observations.outcome)
        self.fitted_refinements_ = self.refinements
        remember_columns(self, X)
        return self

    def calibrate(self, prediction: Any) -> Any:
        """Return the calibrated prediction for each prediction, as the kind of column it came in."""
        return alike(self._require_fitted().map_.predict(prediction), prediction)

    def predict(self, X: Any) -> Any:
        """Return the calibrated effect of each row, predicted by `estimator`.

        The answer is a column of the kind of `X`: a pandas Series with its index, a polars Series, a pyarrow array, else numpy.
        """
        self._require_fitted()
        if self.estimator is None:
            raise OrthocalError(
                "`predict` must have an effect model; `estimator` is None. Use calibrate(prediction), or "
                "CausalCalibrator(estimator=model)."
            )
        require_columns_of(self, X)
        return alike(self.map_.predict(prediction_of(self.estimator, X, self._chosen_effect)), X)

    def score(
        self,
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
        key: Any = None,
    ) -> float:
        """Return minus the mean orthogonal loss of the calibrated prediction on these rows; larger is better.

        Nuisances are cross-fitted on these rows. Only differences between scores on the same rows have a meaning.
        """
        before = given_or_asked(prediction, self.estimator, X, self._chosen_effect)
        after = self._require_fitted().map_.predict(before)
        loss = orthogonal_loss(
            self._chosen_effect,
            X,
            y,
            treatment=treatment,
            instrument=instrument,
            event=event,
            prediction=before,
            sample_weight=sample_weight,
            groups=groups,
            nuisances=nuisances,
            key=key,
            **{name: getattr(self, name) for name in ("learners", "folds", "clip", "random_state", "n_jobs")},
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
        """How well treatment arms overlap."""
        return self.loss_.overlap

    @property
    def rows_(self) -> Any:
        """The rows the map was fitted on."""
        return self._require_fitted().learnt_.rows

    @property
    def prediction_(self) -> Floats:
        """The predictions of those rows, before calibration."""
        return cast("Floats", self._require_fitted().learnt_.prediction)

    @cached_property
    def honest_prediction_(self) -> Floats:
        """Each row's calibrated prediction by a map fitted without its fold (scheme "cross" only)."""
        scheme = self._require_fitted().fitted_scheme_
        if scheme != "cross":
            raise OrthocalError(
                f"`honest_prediction_` must have scheme='cross'; it is {shown(scheme)}. Judge the map on rows not in `rows_`."
            )
        fold = self._require_fitted().learnt_.map_fold
        return out_of_fold(self.fitted_method_, self.prediction_, self.loss_, self.fitted_refinements_, fold)

    def guarantee(self, delta: float = 0.05, *, outcome_range: tuple[float, float] | None = None) -> Guarantee:
        """Return a bound on the calibration error that holds with probability 1 - `delta` (scheme "three-way" only).

        `outcome_range` is what the outcome cannot leave, a fact about it and not what was observed; 0 to 1 where it is binary.
        """
        scheme = self._require_fitted().fitted_scheme_
        if scheme != "three-way":
            raise OrthocalError(f"`guarantee` must have scheme='three-way'; it is {shown(scheme)}.")
        known, map_ = self.outcomes_.range(outcome_range), cast("StepMap", self.map_)
        return guarantee_of(self.fitted_effect_, self.learnt_, map_, known, delta)

    @property
    def _chosen_effect(self) -> Effect:
        return new_effect(effect_parameter(self))

    def _require_fitted(self) -> Self:
        if "map_" not in self.__dict__:
            raise UnfittedError(
                "This CausalCalibrator must be fitted first. Call fit(X, y, treatment=..., prediction=...)."
            )
        return self
