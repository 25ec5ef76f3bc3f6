"""Lines: the prediction as it is, a constant, a shift, the best line, and lines that may not fall."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import Floats
from orthocal.losses import Loss, counted_rows
from orthocal.maps import AffineMap, IdentityMap, Map, StepMap
from orthocal.solvers import affine, constants, shift


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
        prediction, loss = counted_rows(prediction, loss)
        loss.at(prediction)
        self.map_ = IdentityMap()
        return self

    def predict(self, prediction: Any) -> Floats:
        """Return the prediction itself."""
        return self.map_.predict(prediction)


class Constant(BaseEstimator):  # type: ignore[misc]
    """Predict the same for everyone: the average effect, or the quantile or expectile of all outcomes together.

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
        prediction, loss = counted_rows(prediction, loss)
        self.map_ = StepMap(np.empty(0), constants(loss, np.zeros(len(loss), dtype=np.int64), 1))
        return self

    def predict(self, prediction: Any) -> Floats:
        """Return the number for each prediction."""
        return self.map_.predict(prediction)


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
        prediction, loss = counted_rows(prediction, loss)
        self.map_ = AffineMap(shift(loss, prediction), 1.0)
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)


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
        prediction, loss = counted_rows(prediction, loss)
        self.map_ = AffineMap(*affine(loss, prediction))
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)


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
