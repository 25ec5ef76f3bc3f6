"""What two losses say, one of the smallest effect that is possible and one of the largest (mathematics 10.6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats
from orthocal.assessment.average import average_effect
from orthocal.assessment.bins import Binned, binned
from orthocal.assessment.error import error_interval
from orthocal.assessment.sweeps import SortedRows, answer
from orthocal.assessment.value import decision_value
from orthocal.losses import QuadraticLoss


@dataclass(frozen=True)
class Bounds:
    """What something can be under unmeasured confounding of a stated strength.

    Parameters
    ----------
    lower, upper : float
        Estimated bounds.
    interval : (float, float)
        Bounds that allow for chance, too, at the confidence level.
    """

    lower: float
    upper: float
    interval: tuple[float, float]


class LossPair(NamedTuple):
    """Losses of the smallest and of the largest effect, of rows sorted by prediction."""

    prediction: Floats
    lower: QuadraticLoss
    upper: QuadraticLoss

    def average(self, level: float) -> Bounds:
        """Return bounds of the average effect."""
        rows = [SortedRows(self.prediction, loss) for loss in (self.lower, self.upper)]
        low, high = (answer(one, average_effect(one, level)) for one in rows)
        return Bounds(low.effect, high.effect, (low.interval[0], high.interval[1]))

    def value(self, cost: float, level: float) -> Bounds:
        """Return bounds of the value of treating those predicted above a cost."""
        rows = [SortedRows(self.prediction, loss) for loss in (self.lower, self.upper)]
        low, high = (answer(one, decision_value(one, cost, level)) for one in rows)
        return Bounds(low.value, high.value, (low.interval[0], high.interval[1]))

    def error(self, bins: int, level: float) -> Bounds:
        """Return bounds of the calibration error: the distance of predictions from the nearest and the farthest possible effect.

        In a bin whose mean prediction is below the smallest possible effect the error is at least the distance from that, and
        likewise above the largest; what lies between is no error. A mean residual of that size or less is what chance gives with
        the true effect in its place, so that the lower end of the usual interval is that of an interval of the error.
        """
        below, above = (binned(self.prediction, loss, bins) for loss in (self.lower, self.upper))
        too_low, too_high = below.residual > 0, above.residual < 0
        near = self._of_bins(too_low, below, bins)
        inside = ~(too_low | too_high)
        near = replace(
            near,
            residual=np.where(inside, 0.0, near.residual),
            pairs=near.pairs - np.where(inside, near.residual**2, 0.0),
        )
        far = self._of_bins(-below.residual > above.residual, below, bins)
        ends = [float(np.sqrt(max(float(found.share @ found.pairs), 0.0))) for found in (near, far)]
        return Bounds(ends[0], ends[1], (error_interval(near, level)[0], error_interval(far, level)[1]))

    def bins(self, bins: int) -> dict[str, Floats]:
        """Return the smallest and the largest possible mean effect of each bin, beside its mean prediction."""
        below, above = (binned(self.prediction, loss, bins) for loss in (self.lower, self.upper))
        still = replace(self.lower, numerator=0.0 * self.lower.numerator)
        prediction = -binned(self.prediction, still, bins).residual
        return {"prediction": prediction, "lower": prediction + below.residual, "upper": prediction + above.residual}

    def _of_bins(self, takes_lower: Booleans, like: Binned, bins: int) -> Binned:
        """Return the moments of bins of which some take the lower loss, the others the upper."""
        cell = np.searchsorted(like.edges, self.prediction, side="left")
        numerator = np.where(takes_lower[cell], self.lower.numerator, self.upper.numerator)
        return binned(self.prediction, replace(self.lower, numerator=numerator), bins)
