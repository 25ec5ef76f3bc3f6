"""Rows held out: the ones a map never sees, on which it is judged."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Integers
from orthocal.effects import Effect
from orthocal.errors import OrthocalError
from orthocal.folds import HOLDOUT, split_rows
from orthocal.observations import Observations


def hold_out(holdout: float, effect: Effect, observations: Observations, seed: int) -> tuple[Integers, Integers]:
    """Return the rows the map is fitted on and the rows it is judged on: all for both where nothing is held out."""
    require_share(holdout)
    fitted = judged = np.arange(len(observations))
    if holdout > 0:
        part = split_rows(1 - holdout, effect.strata(observations), observations, seed, HOLDOUT)
        fitted, judged = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    require_both_sides(holdout, len(observations), len(fitted), len(judged))
    return fitted, judged


def require_both_sides(holdout: float, rows: int, fitted: int, judged: int) -> None:
    """There are rows to fit a map on, and rows to judge it on."""
    if judged < 2 or fitted < 2:
        raise OrthocalError(f"`holdout`={holdout} leaves too few of the {rows} rows on one side. Use more data.")


def require_share(holdout: float) -> None:
    """A share of the rows is held out, or none."""
    if not 0 <= holdout < 1:
        raise OrthocalError(
            f"`holdout` must lie in [0, 1); it is {holdout}. 0.3 keeps three rows of ten for the verdict."
        )
