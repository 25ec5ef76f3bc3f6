"""Linear calibration."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.losses import Loss, rows_that_count
from orthocal.maps import AffineMap
from orthocal.observations import as_numbers
from orthocal.solvers import affine


class Linear(BaseEstimator):  # type: ignore[misc]
    r"""Fit :math:`\nu = a + b\,\theta` by minimising the summed loss (paper, Table 2).

    Enforces two moments, mean loss derivative 0 overall and against the prediction; calibrates exactly only when the
    truth is affine in the prediction (mathematics 4.4, 12.14). The steadiest choice on small data.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> loss = QuadraticLoss(np.array([1.0, 3.0, 5.0]), np.ones(3))
    >>> Linear().fit(np.array([0.0, 1.0, 2.0]), loss).map_
    AffineMap(intercept=1.0, slope=2.0)
    """

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn intercept and slope."""
        prediction, loss = rows_that_count(as_numbers(prediction, "prediction", len(loss)), loss)
        self.map_ = AffineMap(*affine(loss, prediction))
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)
