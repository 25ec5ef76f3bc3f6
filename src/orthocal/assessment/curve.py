"""The reliability curve as a nondecreasing one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

import numpy as np
from scipy.optimize import isotonic_regression

from orthocal.arrays import Floats
from orthocal.assessment.parts import Curve
from orthocal.losses import Loss, QuadraticLoss


@singledispatch
def monotone_curve(loss: Loss, bins: Mapping[str, Floats]) -> Curve | None:
    """Return None: residuals of this loss are not in the units of the target."""
    del loss, bins
    return None


@monotone_curve.register(QuadraticLoss)
def _(loss: QuadraticLoss, bins: Mapping[str, Floats]) -> Curve | None:
    """Return the isotonic fit to the bins, with the simultaneous band made monotone.

    Where the true curve does not decrease, raising the lower edge to its running maximum and lowering the upper edge to its
    running minimum from the right keeps the coverage and narrows the band. Bins without a bounded band are left out.
    """
    del loss
    rows = np.flatnonzero(np.isfinite(bins["band_lower"]))
    prediction, target, residual, mass, low, high = (
        bins[name][rows] for name in ("prediction", "target", "residual", "mass", "band_lower", "band_upper")
    )
    if not len(rows):
        return Curve(prediction, target, low, high)
    fitted = np.asarray(isotonic_regression(target, weights=np.maximum(mass, 1e-300)).x)
    lower = np.maximum.accumulate(target + (low - residual))
    upper = np.minimum.accumulate((target + (high - residual))[::-1])[::-1]
    return Curve(prediction, fitted, np.minimum(lower, fitted), np.maximum(upper, fitted))
