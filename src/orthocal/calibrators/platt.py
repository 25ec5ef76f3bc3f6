"""Platt calibration: a sigmoid between two bounds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.calibrators.histogram import Histogram
from orthocal.errors import require_number
from orthocal.losses import Loss, counted_rows
from orthocal.losses.units import restated, units_of
from orthocal.maps import SigmoidMap
from orthocal.solvers import affine, sigmoid
from orthocal.solvers.monotone import positive_runs

BINS_OF_BOUNDS, WIDENED = 20, 0.25
"""Default bounds: hull of the best line's and of a histogram's values, widened by this share on each side."""


class Platt(BaseEstimator):  # type: ignore[misc]
    r"""Fit :math:`\nu = L + (U - L)\,\sigma(a + b\,\theta)` for effects of any size (paper, Table 2; mathematics 4.5).

    Parameters
    ----------
    lower, upper : float, optional
        The bounds L and U. By default the hull of the predictions, brought to the unit of the effect by the best line, and of
        the values of a 20-bin histogram, widened by a quarter on each side; the bounds used are recorded in ``map_``.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> loss = QuadraticLoss(np.array([0.25, 0.5, 0.75]), np.ones(3))
    >>> fitted = Platt(lower=0.0, upper=1.0).fit(np.array([-1.0, 0.0, 1.0]), loss)
    >>> round(fitted.map_.slope, 6) == round(float(np.log(3)), 6)
    True
    """

    def __init__(self, lower: float | None = None, upper: float | None = None) -> None:
        self.lower = lower
        self.upper = upper

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn the bounds where they are not given, then intercept and slope."""
        prediction, loss = counted_rows(prediction, loss)
        low, high = self._bounds(prediction, loss)
        # The bounds are checked by a flat map before the fit divides by their distance.
        SigmoidMap(low, high, 0.0, 0.0)
        units = units_of(loss)
        ends = units.standard(np.array([low, high])).tolist()
        level, convex = positive_runs(loss, prediction)
        self.map_ = SigmoidMap(low, high, *sigmoid(restated(convex, units), level, *ends))
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)

    def _bounds(self, prediction: Floats, loss: Loss) -> tuple[float, float]:
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound is not None:
                require_number(bound, name)
        if self.lower is not None and self.upper is not None:
            return float(self.lower), float(self.upper)
        # A prediction in another unit than the effect has the same map, so its own values are no bounds.
        intercept, slope = affine(loss, prediction)
        line = intercept + slope * np.array([prediction.min(), prediction.max()])
        values = np.concatenate([line, Histogram(BINS_OF_BOUNDS).fit(prediction, loss).map_.values])
        low, high = values.min(), values.max()
        margin = WIDENED * (high - low) if high > low else units_of(loss).scale
        lower = low - margin if self.lower is None else self.lower
        upper = high + margin if self.upper is None else self.upper
        return float(lower), float(np.float64(upper))
