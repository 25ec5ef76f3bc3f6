"""The calibrator that changes nothing."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.losses import Loss
from orthocal.maps import IdentityMap


class Identity(BaseEstimator):  # type: ignore[misc]
    """Leave predictions as they are: the yardstick every other method must beat.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> Identity().fit(np.array([1.0]), QuadraticLoss(np.array([3.0]), np.array([1.0]))).predict([1.0, 2.0])
    array([1., 2.])
    """

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn nothing."""
        loss.at(prediction)
        self.map_ = IdentityMap()
        return self

    def predict(self, prediction: Any) -> Floats:
        """Return the prediction itself."""
        return self.map_.predict(prediction)
