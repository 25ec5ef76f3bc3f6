"""Calibration by a shift."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.losses import Loss, rows_that_count
from orthocal.maps import AffineMap
from orthocal.observations import as_numbers
from orthocal.solvers import shift


class Shift(BaseEstimator):  # type: ignore[misc]
    r"""Fit :math:`\nu = a + \theta` by minimising the summed loss: differences between predictions are kept.

    Right where a model is wrong about the average only, as when a trial's model is used on another population.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> loss = QuadraticLoss(np.array([1.0, 3.0, 5.0]), np.ones(3))
    >>> Shift().fit(np.array([0.0, 1.0, 2.0]), loss).map_
    AffineMap(intercept=2.0, slope=1.0)
    """

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn the shift."""
        prediction, loss = rows_that_count(as_numbers(prediction, "prediction", len(loss)), loss)
        self.map_ = AffineMap(shift(loss, prediction), 1.0)
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)
