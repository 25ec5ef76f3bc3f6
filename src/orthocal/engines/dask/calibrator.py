"""CausalCalibrator and assess for a dask.dataframe: columns by name, the rest as in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.records import Settings
from orthocal.calibration.effect_models import prediction_of
from orthocal.calibration.sklearn_api import EffectParameter, UnfittedError, alike, effect_parameter, parameters_of
from orthocal.calibrators import Calibrator
from orthocal.effects import Effect, new_effect
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.preparation import chosen, covariates_of, prepared, with_sums
from orthocal.engines.partitioned.source import Source
from orthocal.engines.partitioned.verdict import calibrated_values, compared, judged
from orthocal.errors import OrthocalError
from orthocal.mapfile import save
from orthocal.maps import IdentityMap, Map
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles

if TYPE_CHECKING:
    import os


PREDICTED = "prediction of the estimator"
"""Column that an effect model's own predictions get."""


class CausalCalibrator(BaseEstimator):  # type: ignore[misc]
    """Calibrate predictions of causal effects that are too many for memory.

    As `orthocal.CausalCalibrator`, with columns of a ``dask.dataframe`` in place of arrays. Folds come from a seeded hash of a
    row's key, so that they do not depend on the partitions. Every pass over the data returns sums; only exact isotonic
    calibration and verdicts move rows, by ranges of the prediction. What a lost worker did is done again by Dask.

    Parameters
    ----------
    effect, folds, refinements, learners, clip, random_state
        As in memory. `learners` take Dask arrays (those of ``lightgbm.dask``, by default), unless `sample` is given.
    method : {"isotonic", "linear", "histogram", "identity"} or such a calibrator
    estimator : object, optional
        A fitted effect model, which is asked for predictions partition by partition.
    scheme : {"cross"}
        Nuisances cross-fitted, one map on all rows.
    sample : int, optional
        Learn nuisances on about this many rows, drawn by a seeded hash and gathered in one place, by any scikit-learn learner.
    exact : bool, default False
        Isotonic maps: False fits on a grid of 65,536 cells of the prediction, in one pass and without moving rows; see `bound_`.
        True gives the map that fitting all rows at once would. Verdicts likewise, see `assess`.

    Attributes
    ----------
    map_ : Map
    calibrator_ : calibrator
    bound_ : float
        Of an isotonic map on the grid with ``min_samples=1``: over any run of predictions that holds a share s of the mass, the
        mean of the map is within ``2 * bound_ / s`` of the exact map's; the mean up to any prediction, within ``bound_`` of
        the whole mass. 0 where the map is exact.
    rows_ : int
        How many rows it was fitted on.

    Examples
    --------
    >>> from dask import dataframe as dd
    >>> import pandas as pd
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=2000, random_state=0)
    >>> table = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])])
    >>> table = table.assign(y=data.y, a=data.treatment, tau=1 + 2 * data.effect, **data.nuisances)
    >>> calibrator = CausalCalibrator(method="linear", random_state=0).fit(
    ...     dd.from_pandas(table, npartitions=4), outcome="y", treatment="a", prediction="tau",
    ...     nuisances={name: name for name in data.nuisances})
    >>> calibrator.calibrate([1.0, 3.0]).round(1) + 0.0
    array([0., 1.])
    """

    effect, get_params = EffectParameter(), parameters_of

    def __init__(
        self,
        effect: str | Effect = "cate",
        method: str | Calibrator = "isotonic",
        *,
        estimator: Any = None,
        scheme: str = "cross",
        folds: int = 5,
        refinements: int = 2,
        learners: Mapping[str, Any] | None = None,
        clip: float = 0.01,
        random_state: int | None = None,
        sample: int | None = None,
        exact: bool = False,
    ) -> None:
        self.effect = effect
        self.method = method
        self.estimator = estimator
        self.scheme = scheme
        self.folds = folds
        self.refinements = refinements
        self.learners = learners
        self.clip = clip
        self.random_state = random_state
        self.sample = sample
        self.exact = exact

    def fit(
        self,
        frame: Any,
        *,
        outcome: str,
        treatment: str,
        prediction: str | None = None,
        covariates: Sequence[str] | None = None,
        instrument: str | None = None,
        event: str | None = None,
        sample_weight: str | None = None,
        groups: str | None = None,
        key: str | None = None,
        nuisances: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn the nuisances and the calibration map.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
        outcome, treatment, prediction, instrument, event, sample_weight, groups : str
            Columns. `prediction` is asked of `estimator` when left out.
        covariates : sequence of str, optional
            All columns without another role, by default.
        key : str, optional
            Column that identifies rows, whose hash gives folds and sample; covariates, treatment and instrument by default.
        nuisances : mapping of str to (column name, number or callable), optional
            Known nuisances. Where all are known nothing is learnt, and no covariate is read.
        """
        roles = Roles(
            outcome=outcome,
            treatment=treatment,
            prediction=prediction or PREDICTED,
            instrument=instrument,
            event=event,
            sample_weight=sample_weight,
            groups=groups,
            key=key,
            covariates=tuple(covariates or ()),
            nuisances=dict(nuisances or {}),
        )
        source = self._source(frame, roles, covariates is None)
        calibrator = fitted(self.method, source, exact=self.exact, refinements=self.refinements)
        self.calibrator_: Calibrator = calibrator
        self.map_: Map = calibrator.map_
        self.rows_: int = calibrator.rows_  # type: ignore[attr-defined]
        self.bound_: float = getattr(calibrator, "bound_", 0.0)
        self.job_ = source.job
        return self

    def calibrate(self, prediction: Any) -> Any:
        """Return the calibrated prediction for each prediction: of a Dask column a Dask column, else as in memory."""
        map_ = self._require_fitted().map_
        if hasattr(prediction, "map_partitions"):
            return calibrated_column(map_, prediction)
        return alike(map_.predict(prediction), prediction)

    def predict(self, frame: Any) -> Any:
        """Return the calibrated effect of each row, asking `estimator` for its prediction."""
        self._require_fitted()
        if self.estimator is None:
            raise OrthocalError("`predict` must have an effect model; `estimator` is None. Use calibrate(prediction).")
        effect = new_effect(effect_parameter(self))
        seen = frame[list(self.asked_)]
        return seen.map_partitions(_predicted, self.estimator, effect, self.map_, meta=("effect", "f8"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map as JSON, as `orthocal.save` does."""
        save(self._require_fitted().map_, path)

    def assess(
        self,
        frame: Any,
        *,
        calibrated: bool = True,
        bins: int = 10,
        level: float = 0.95,
        cost: float | None = None,
        by: Sequence[str] = (),
        draws: int = 1000,
        random_state: Any = None,
    ) -> Assessment:
        """Judge the calibrated prediction, or the one before it, on the rows of a frame with the columns of `fit`.

        **Judge on rows the map has not seen.** Nuisances that were learnt in `fit` are asked of the same models.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
        calibrated : bool, default True
            False judges the prediction as it was.
        by : sequence of str
            Columns of subgroups, of at most 12 values each.
        bins, level, cost, draws, random_state
            As in `orthocal.assess`.
        """
        source = judged_source(self, frame, tuple(by), calibrated=calibrated)
        settings = Settings(bins=bins, level=level, cost=cost, draws=draws, random_state=random_state)
        return judged(source, settings, exact=self.exact)

    def compare(self, frame: Any, *, level: float = 0.95, cost: float | None = None) -> Comparison:
        """Say whether calibration did good or harm on the rows of a frame with the columns of `fit`, in one pass.

        The numbers of `orthocal.compare`. **Compare on rows the map has not seen.**

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
        level, cost
            As in `orthocal.compare`.
        """
        return compared(judged_source(self, frame, calibrated=False), IdentityMap(), self.map_, level=level, cost=cost)

    def _source(self, frame: Any, roles: Roles, all_covariates: bool) -> Source:
        effect = new_effect(effect_parameter(self))
        if self.scheme != "cross":
            raise OrthocalError(f"`scheme` must be 'cross' on Dask; it is {self.scheme!r}. Split the frame yourself.")
        self.asked_ = roles.covariates or covariates_of(DaskTable(frame), roles)
        if roles.prediction == PREDICTED:
            if self.estimator is None:
                raise OrthocalError(
                    "`prediction` must be given, or an `estimator` that predicts it; both are left out."
                )
            frame = _with_predicted(frame, self.estimator, effect, self.asked_)
        recipe = Recipe(self.learners, self.clip, self.random_state, sample=self.sample)
        return prepared(DaskTable(frame), roles, effect, self.folds, recipe, all_covariates=all_covariates)

    def _require_fitted(self) -> Self:
        if "map_" not in self.__dict__:
            raise UnfittedError(
                "This CausalCalibrator must be fitted first. Call fit(frame, outcome=..., treatment=...)."
            )
        return self


def judged_source(calibrator: Any, frame: Any, by: tuple[str, ...] = (), *, calibrated: bool) -> Source:
    """Return the rows of a frame with the nuisances that a calibrator learnt in `fit`, after its map or before it."""
    job = calibrator._require_fitted().job_
    if calibrator.estimator is not None and job.roles.prediction == PREDICTED:
        frame = _with_predicted(frame, calibrator.estimator, job.effect, calibrator.asked_)
    job = replace(job, roles=replace(job.roles, by=by), sums={}, bounds=None)
    return with_sums(Source(chosen(DaskTable(frame), job.roles), job, map=calibrator.map_ if calibrated else None))


def calibrated_column(map_: Map, prediction: Any) -> Any:
    """Return a Dask column of calibrated predictions."""
    return prediction.map_partitions(calibrated_values, map_, meta=(prediction.name, "f8"))


def _with_predicted(frame: Any, estimator: Any, effect: Effect, covariates: Sequence[str]) -> Any:
    """Add the predictions of an effect model, partition by partition; it sees the covariates only."""
    asked = frame[list(covariates)].map_partitions(_predicted, estimator, effect, None, meta=(PREDICTED, "f8"))
    return frame.assign(**{PREDICTED: asked})


def _predicted(part: Any, estimator: Any, effect: Effect, map_: Map | None) -> Any:
    import pandas as pd

    values = prediction_of(estimator, part, effect) if len(part) else np.empty(0)
    return pd.Series(values if map_ is None else map_.predict(values), part.index, name="effect", dtype=float)
