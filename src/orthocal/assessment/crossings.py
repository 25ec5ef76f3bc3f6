"""Where scores cross zero, when each look at them costs a sweep over the rows."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from orthocal.arrays import Floats

Crossing: TypeAlias = "Generator[Floats, Floats, Floats]"

ROUNDS = 8
"""Most looks at the scores."""
NEAR = 0.01
"""Scores, in standard errors, that are taken for 0."""
WIDER = 3.0
"""By how much a step grows that did not cross."""


@dataclass
class Bracket:
    """For each of several functions a point where it is below 0 and one where it is not, as far as they are known.

    Parameters
    ----------
    below, above : array
        The points.
    at_below, at_above : array
        Values of the functions there; NaN where they were not looked at.
    """

    below: Floats
    above: Floats
    at_below: Floats
    at_above: Floats

    @classmethod
    def unknown(cls, low: float, high: float, count: int) -> Bracket:
        """Nothing is known but where to look."""
        return cls(np.full(count, low), np.full(count, high), np.full(count, np.nan), np.full(count, np.nan))


def crossings(first: Floats, step: Floats, bracket: Bracket) -> Crossing:
    """Yield points, be sent the values of the functions there, and return where they cross 0 from below.

    Steps outwards until 0 is crossed, then regula falsi (Illinois variant: an end that stays is made to count for half). A value
    is a score in standard errors, so that one below `NEAR` is as good as 0.
    """
    point, side = first, np.zeros(len(first))
    for _ in range(ROUNDS):
        value = yield point
        found = np.abs(value) <= NEAR
        if found.all():
            return point
        point, side = np.where(found, point, _next(point, value, side, step, bracket)), np.sign(value)
        step = step * WIDER
    return point


def _next(point: Floats, value: Floats, side: Floats, step: Floats, bracket: Bracket) -> Floats:
    """Note what is known of the point in the bracket, and return the next one to look at."""
    low, high = value < 0, value >= 0
    again = np.sign(value) == side
    bracket.at_above = np.where(low & again, bracket.at_above / 2, bracket.at_above)
    bracket.at_below = np.where(high & again, bracket.at_below / 2, bracket.at_below)
    bracket.below, bracket.at_below = np.where(low, point, bracket.below), np.where(low, value, bracket.at_below)
    bracket.above, bracket.at_above = np.where(high, point, bracket.above), np.where(high, value, bracket.at_above)
    width, rise = bracket.above - bracket.below, bracket.at_above - bracket.at_below
    inside = bracket.below - bracket.at_below * np.divide(width, rise, out=np.zeros(len(width)), where=rise > 0)
    outside = np.clip(np.where(low, point + step, point - step), bracket.below, bracket.above)
    return np.asarray(np.where(np.isnan(rise), outside, inside))
