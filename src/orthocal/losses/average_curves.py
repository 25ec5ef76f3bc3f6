"""Survival curves of the arms: the chance of no event over time, had everyone got each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from orthocal.arrays import Floats


@dataclass(frozen=True, eq=False)
class AverageCurves:
    """Average survival curves with standard errors, one pair per arm.

    Parameters
    ----------
    times : array of shape (times,)
    arms : dict of str to (array, array)
        By arm: the chance of no event by each time, averaged over all rows, and its standard error.
    """

    times: Floats
    arms: dict[str, tuple[Floats, Floats]]

    def band(self, arm: str, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of an arm's curve at each time, between 0 and 1."""
        mean, error = self.arms[arm]
        reach = float(ndtri((1 + level) / 2)) * error
        return np.clip(mean - reach, 0, 1), np.clip(mean + reach, 0, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the curves as plain numbers."""
        curves = {
            name: {"survival": mean.tolist(), "standard_error": error.tolist()}
            for name, (mean, error) in self.arms.items()
        }
        return {"times": self.times.tolist(), **curves}
