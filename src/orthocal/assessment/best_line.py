"""The best line through a quantile or an expectile given the prediction, in units of the outcome (mathematics 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Integers
from orthocal.assessment.parts import Average, Coefficient, LinearPredictor
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Rows, Stage, cluster_sums, count_effective, merged
from orthocal.losses import score_at

STEPS = 3
"""Most Newton steps from the line through the bins; from so near a start one would do (Bickel 1975)."""
BANDWIDTH = 2.0
"""Over which the slope of the score is taken: about Hall and Sheather's for a median."""
SETTLED, LOST = 0.05, 1.0
"""Steps, in standard errors: below the one the line has been found, and above the other it has not."""


class BestLine(NamedTuple):
    """A line in the scaled prediction (prediction - middle) / width."""

    middle: float
    width: float
    intercept: float
    slope: float

    def design(self, prediction: Floats) -> Floats:
        """One and the scaled prediction."""
        return np.array([np.ones(len(prediction)), (prediction - self.middle) / self.width])

    def moved(self, step: Floats) -> BestLine:
        """The line with a step added to its coefficients."""
        return self._replace(intercept=self.intercept + float(step[0]), slope=self.slope + float(step[1]))


def best_line(rows: Rows, bins: Mapping[str, Floats], average: Average, level: float) -> Stage[LinearPredictor | None]:
    r"""Return the line whose scores, the loss taken at the line itself, are orthogonal to (1, prediction).

    Newton's steps for :math:`\sum_i z_i\, \partial\ell_i(b'z_i) = 0` from the line through the bins, with a sandwich error. The
    slope of the scores is a difference over a bandwidth, for a quantile's score jumps. None where fewer than two bins, or no
    line, were found, and for losses whose residuals are in units of the effect: those have `linear_test`'s.
    """
    if not np.isfinite(rows.like.bounds).all() or len(bins["n"]) < 2:
        return None
    units, effective = yield from count_effective(rows)
    reach = float(t_distribution.ppf((1 + level) / 2, effective - 1))
    if not reach > 0:  # a confidence level of nearly 0, whose interval is a point
        return None
    error = (average.interval[1] - average.interval[0]) / (2 * reach)
    if not error > 0:
        return None
    line, bandwidth = _through(bins), BANDWIDTH * error * units ** (1 / 6)
    best: tuple[float, BestLine, Floats] | None = None
    for _ in range(STEPS):
        found = yield from _newton(rows, line, bandwidth, units)
        if found is None:
            break
        step, covariance = found
        size, line = float(np.sqrt(step @ np.linalg.solve(covariance, step))), line.moved(step)
        if best is None or size < best[0]:  # a quantile's scores jump, so that later steps need not be shorter ones
            best = size, line, covariance
        if size <= SETTLED:
            break
    return None if best is None or best[0] > LOST else _predictor(best[1], best[2], reach)


def _through(bins: Mapping[str, Floats]) -> BestLine:
    """Least squares through the bins' targets."""
    prediction, target, mass = bins["prediction"], bins["target"], bins["mass"]
    middle, width = float(np.average(prediction, weights=mass)), float(bins["upper"][-1] - bins["lower"][0])
    x = (prediction - middle) / width
    centre = float(np.average(target, weights=mass))
    return BestLine(middle, width, centre, float((mass * x) @ (target - centre) / ((mass * x) @ x)))


def _newton(rows: Rows, line: BestLine, bandwidth: float, units: int) -> Stage[tuple[Floats, Floats] | None]:
    """Return Newton's step and the sandwich covariance; None where the scores do not rise with the line."""
    if rows.like.groups is None:
        slopes, scores, meat = (
            np.sum(part, axis=0) for part in zip(*(yield partial(_sums, line=line, bandwidth=bandwidth)), strict=True)
        )
    else:
        answers = yield partial(_cluster_sums, line=line, bandwidth=bandwidth)
        _, by_cluster = merged([own for _, own in answers])
        slopes, scores, meat = sum(slope for slope, _ in answers), by_cluster.sum(axis=1), by_cluster @ by_cluster.T
    if not (np.linalg.eigvalsh(slopes)[0] > 0 and np.linalg.eigvalsh(meat)[0] > 0):
        return None
    inverse = np.linalg.inv(slopes)
    return -inverse @ scores, inverse @ meat @ inverse * (units / (units - 1))


def _rows(piece: Piece, line: BestLine, bandwidth: float) -> tuple[Floats, Floats]:
    """Return (slopes of the summed scores, each row's score times its design)."""
    z = line.design(piece.prediction)
    at = np.array([line.intercept, line.slope]) @ z
    score, above, below = (score_at(piece.loss, v) for v in (at, at + bandwidth, at - bandwidth))
    return (z * ((above - below) / (2 * bandwidth))) @ z.T, z * score


def _sums(piece: Piece, line: BestLine, bandwidth: float) -> tuple[Floats, Floats, Floats]:
    slopes, scores = _rows(piece, line, bandwidth)
    return slopes, scores.sum(axis=1), scores @ scores.T


def _cluster_sums(piece: Piece, line: BestLine, bandwidth: float) -> tuple[Floats, tuple[Integers, Floats]]:
    assert piece.loss.groups is not None  # noqa: S101
    slopes, scores = _rows(piece, line, bandwidth)
    return slopes, cluster_sums(piece.loss.groups, list(scores))


def _predictor(line: BestLine, covariance: Floats, reach: float) -> LinearPredictor:
    """Turn coefficients of the scaled prediction into intercept and slope."""
    turn = np.array([[1.0, -line.middle / line.width], [0.0, 1.0 / line.width]])
    values = turn @ [line.intercept, line.slope]
    errors = np.sqrt(np.diag(turn @ covariance @ turn.T))
    one, two = (
        Coefficient(value, error, (value - reach * error, value + reach * error))
        for value, error in zip(values.tolist(), errors.tolist(), strict=True)
    )
    return LinearPredictor(one, two)
