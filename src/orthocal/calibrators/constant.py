"""Calibration by one number."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.losses import Loss, rows_that_count
from orthocal.maps import StepMap
from orthocal.observations import as_numbers
from orthocal.solvers import constants


class Constant(BaseEstimator):  # type: ignore[misc]
    """Predict the same for everybody: the average effect, or the quantile or expectile of all outcomes together.

    Calibrated, and without any ranking: right where predictions carry no information about who gains more.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> Constant().fit(np.array([0.0, 1.0]), QuadraticLoss(np.array([1.0, 3.0]), np.ones(2))).predict([0.0, 9.0])
    array([2., 2.])
    """

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn the number."""
        prediction, loss = rows_that_count(as_numbers(prediction, "prediction", len(loss)), loss)
        self.map_ = StepMap(np.empty(0), constants(loss, np.zeros(len(loss), dtype=np.int64), 1))
        return self

    def predict(self, prediction: Any) -> Floats:
        """Return the number for each prediction."""
        return self.map_.predict(prediction)
