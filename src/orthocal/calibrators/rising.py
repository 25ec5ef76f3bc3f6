"""Variants of calibrators that only the automatic choice uses."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import Floats
from orthocal.calibrators.lines import Constant
from orthocal.losses import Loss
from orthocal.maps import AffineMap, Map
from orthocal.solvers import affine


class Rising(BaseEstimator):  # type: ignore[misc]
    """A calibrator whose map rises or falls as a whole, and the constant where it falls.

    Parameters
    ----------
    calibrator : calibrator
    """

    def __init__(self, calibrator: Any) -> None:
        self.calibrator = calibrator

    def fit(self, prediction: Floats, loss: Loss) -> Self:
        """Fit the calibrator, and the constant if need be."""
        fitted = clone(self.calibrator).fit(prediction, loss)
        first, last = fitted.predict(np.array([prediction.min(), prediction.max()]))
        self.map_: Map = fitted.map_ if last >= first else Constant().fit(prediction, loss).map_
        return self

    def predict(self, prediction: Floats) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)


class Tilt(BaseEstimator):  # type: ignore[misc]
    r"""The map :math:`m + b(\theta - m)`: the average prediction m is kept, distances from it are stretched."""

    def fit(self, prediction: Floats, loss: Loss) -> Self:
        """Take the slope of the best line."""
        middle, slope = middle_of(prediction, loss), max(affine(loss, prediction)[1], 0.0)
        self.map_ = AffineMap(middle * (1 - slope), slope)
        return self

    def predict(self, prediction: Floats) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)


def middle_of(prediction: Floats, loss: Loss) -> float:
    """Return the average prediction, by the masses of the rows."""
    return float(loss.mass @ prediction / loss.mass.sum())
