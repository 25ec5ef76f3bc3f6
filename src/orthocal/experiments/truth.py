"""Errors against a known truth."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.bins import binned
from orthocal.assessment.error import squared_error
from orthocal.losses import QuadraticLoss


def true_calibration_error(prediction: Floats, residual: Floats, bins: int) -> float:
    r"""Return :math:`\sqrt{E[E[r \mid \theta]^2]}` over bins of the prediction, with the bins' sampling noise taken off.

    `residual` is the row's own expected residual, known without noise: :math:`\tau(x) - \theta(x)` for an average effect,
    :math:`Q - F(\theta(x) \mid x)` for a quantile.
    """
    loss = QuadraticLoss(prediction + residual, np.ones(len(prediction)))
    return float(np.sqrt(max(squared_error(binned(prediction, loss, bins))[0], 0.0)))
