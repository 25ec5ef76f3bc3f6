"""Skewness of means of cells, taken out of their t statistics: without this, cells of skewed residuals seem off too often."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Floats

FEW_UNITS = 100
"""Effective number of rows or clusters whose skewness is believed by half: that of fewer is mostly chance."""
LEAST_SKEW = 1e-6
"""Skewness below which a statistic is left as it is."""


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


CLEAR = 3.0
"""Standard errors from 0 at which skewness is taken to be real."""


def is_clearly_skewed(noise: Floats) -> bool:
    """Return whether the skewness of all units together is more than chance, by its own standard error.

    With heavy tails the standard error is large too, so that a few large rows are not taken for skewness.
    """
    if not noise.size or not noise.std() > 0:
        return False
    z = (noise - noise.mean()) / noise.std()
    skewness = (z**3).mean()
    influence = z**3 - 3 * z - skewness - 1.5 * skewness * (z**2 - 1)
    return bool(abs(skewness) > CLEAR * influence.std() / np.sqrt(len(z)))
