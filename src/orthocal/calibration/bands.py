"""What a fitted calibrator says beside its map: the band of the calibrated effect, and where the loss's bounds are active."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from orthocal.assessment.effect_band import EffectBand, bins_of, effect_band
from orthocal.calibration.sklearn_api import alike


def _band(estimator: Any) -> EffectBand:
    """The band for the average effect of people with the same prediction, never for a person's own effect; made on first use."""
    loss, bins = estimator.loss_, bins_of(estimator.calibrator_, estimator.map_)
    return effect_band(estimator.prediction_, loss, bins=bins)


fitted_band = cached_property(_band)
"""`band_` of a calibrator."""


def interval_of(estimator: Any, prediction: Any) -> tuple[Any, Any]:
    """Return lower and upper ends for the average effect of people with each prediction, as the kind of column it came in.

    They hold for all predictions at once (level 0.95), for the average effect of people with that prediction, never for a
    person's own effect. An end is NaN where it is open: below and above all rows that could tell. The effect must not decrease
    in the prediction, except with a histogram, whose bins have an interval each; see `orthocal.assessment.effect_band`.
    """
    low, high = estimator.band_.interval(prediction)
    return alike(low, prediction), alike(high, prediction)


def _boxed(estimator: Any) -> float:
    """Share of the fitted rows whose calibrated prediction sits on a bound of the loss."""
    (low, high), after = estimator.loss_.bounds, estimator.map_.predict(estimator.prediction_)
    return float(np.mean((after <= low) | (after >= high)))


boxed_share = property(_boxed)
"""`boxed_` of a calibrator."""
