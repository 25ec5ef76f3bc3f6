"""Skewness of means of cells, taken out of their t statistics: without this, cells of skewed residuals seem off too often."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.calibrators.cells import CellMoments, Residuals

FEW_UNITS = 100
"""Effective number of rows or clusters whose skewness is believed by half: that of fewer is mostly chance."""
LEAST_SKEW = 1e-6
"""Skewness below which a statistic is left as it is."""
CLEAR = 3.0
"""Standard errors from 0 at which skewness is taken to be real."""
DRAWN = 30
"""Units of all rows that the variance of a cell is drawn to, where residuals are skewed."""


class Skewed(NamedTuple):
    """Variance and skewness of a unit, of all rows together, where residuals are clearly skewed.

    A cell in which the few large residuals are missing seems to be sure of its mean, which is then far from that of other cells:
    so its variance is drawn to that of all rows where it is smaller, and skewness is that of all rows.
    """

    variance: float
    skewness: float

    def errors(self, found: CellMoments) -> Floats:
        """Return the standard errors of mean residuals."""
        own = found.variance * found.units / found.mass**2
        drawn = (found.units * own + DRAWN * self.variance) / (found.units + DRAWN)
        return np.asarray(np.sqrt(np.maximum(own, drawn) / found.units))

    def without(self, t: Floats, units: Floats) -> Floats:
        """Return the size of t statistics without skewness."""
        return np.abs(unskewed_all(t, self.skewness / np.sqrt(units)))


def clearly_skewed(rows: Residuals) -> Skewed | None:
    """Return variance and skewness of all rows together where the latter is more than chance, by its own standard error.

    With heavy tails the standard error is large too, so that a few large rows are not taken for skewness.
    """
    residual, mass = rows.by_unit()
    noise = residual - residual.sum() / mass.sum() * mass if mass.sum() > 0 else np.zeros(0)
    if not noise.size or not noise.std() > 0:
        return None
    z = (noise - noise.mean()) / noise.std()
    skewness = float((z**3).mean())
    influence = z**3 - 3 * z - skewness - 1.5 * skewness * (z**2 - 1)
    if not abs(skewness) > CLEAR * influence.std() / np.sqrt(len(z)):
        return None
    units = float(mass.sum() ** 2 / (mass**2).sum())
    third = (noise**3).sum() / (noise**2).sum() ** 1.5 * np.sqrt(units)
    return Skewed(float((noise**2).sum() * units / mass.sum() ** 2), float(third))


def believed_skewness(cubes: Floats, squares: Floats, units: Floats) -> Floats:
    """Return the skewness of each cell's sum; that of few units is mostly chance, and is drawn to the mean of all cells.

    Parameters
    ----------
    cubes, squares : array of shape (cells,)
        Sums over the units of a cell of the third and second power of what is summed, less its mean.
    units : array of shape (cells,)
        Effective number of rows (clusters).
    """
    own = cubes / squares**1.5 * np.sqrt(units)
    believed = units / (units + FEW_UNITS)
    return np.asarray((believed * own + (1 - believed) * np.average(own, weights=units)) / np.sqrt(units))


def unskewed_all(t: Floats, skewness: Floats) -> Floats:
    """Return t statistics without the skewness of what they are sums of: Hall's (1992) transformation, as in the linear test."""
    return np.asarray(t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6)


def skewed_all(value: Floats, skewness: Floats) -> Floats:
    """Return the t statistics whose transformation has these values."""
    safe = np.where(np.abs(skewness) < LEAST_SKEW, 1.0, skewness)
    back = 3 / safe * (np.cbrt(1 + safe * (value - safe / 6)) - 1)
    return np.where(np.abs(skewness) < LEAST_SKEW, value, back)


def cautious(t: Floats, skewness: Floats) -> Floats:
    """Return the smaller of |t| with and without skewness: with heavy tails, what looks like skewness is a few large rows."""
    return np.minimum(np.abs(t), np.abs(unskewed_all(t, skewness)))
