"""Calibration in the large: the average effect beside the mean prediction."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import t as t_distribution

from orthocal.assessment.bin_table import minimisers
from orthocal.assessment.bins import at_constant, at_prediction, mean_residual
from orthocal.assessment.crossings import score_interval
from orthocal.assessment.parts import Average
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Rows, Stage


def average_effect(rows: Rows, level: float) -> Stage[Average]:
    """Mean prediction and average effect; the whole data is one bin."""
    pulled, total = np.sum((yield _masses), axis=0)
    effect = float((yield from minimisers(rows, np.empty(0)))[0])
    _, error, units = yield from mean_residual(rows, partial(at_constant, value=effect))
    gap, gap_error, _ = yield from mean_residual(rows, at_prediction)
    critical = float(t_distribution.ppf((1 + level) / 2, units - 1))
    interval = (effect - critical * error, effect + critical * error)
    if np.isfinite(rows.like.bounds).all():  # a minimiser that is searched for: its score is in other units than itself
        interval = yield from score_interval(rows, effect, error, critical)
    return Average(
        prediction=float(pulled / total),
        effect=effect,
        standard_error=error,
        interval=interval,
        excess=gap,
        excess_interval=(gap - critical * gap_error, gap + critical * gap_error),
    )


def _masses(piece: Piece) -> tuple[float, float]:
    return piece.dot(piece.loss.mass, piece.prediction), piece.sum(piece.loss.mass)


def mean_mass_of_rows() -> Stage[float]:
    """Return the mean mass of a row, by sample weight."""
    mass, weight = np.sum((yield _mass_and_weight), axis=0)
    return float(mass / weight)


def _mass_and_weight(piece: Piece) -> tuple[float, float]:
    return piece.sum(piece.loss.mass), piece.sum(piece.loss.weight)
