"""The reliability curve as a nondecreasing one."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression

from orthocal.assessment.parts import Curve
from orthocal.losses import Loss, QuadraticLoss

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.arrays import Floats


@singledispatch
def monotone_curve(loss: Loss, bins: Mapping[str, Floats], band: float) -> Curve | None:
    """Return None: residuals of this loss are not in the units of the target."""
    del loss, bins, band
    return None


@monotone_curve.register(QuadraticLoss)
def _(loss: QuadraticLoss, bins: Mapping[str, Floats], band: float) -> Curve | None:
    """Return the isotonic fit to the bins, with the simultaneous band made monotone.

    Where the true curve does not decrease, raising the lower edge to its running maximum and lowering the upper edge to its
    running minimum from the right keeps the coverage and narrows the band.
    """
    del loss
    weight = np.maximum(bins["mass"], 1e-300)
    fitted = np.asarray(isotonic_regression(bins["target"], weights=weight).x)
    reach = band * bins["standard_error"]
    lower = np.maximum.accumulate(bins["target"] - reach)
    upper = np.minimum.accumulate((bins["target"] + reach)[::-1])[::-1]
    return Curve(bins["prediction"], fitted, np.minimum(lower, fitted), np.maximum(upper, fitted))
