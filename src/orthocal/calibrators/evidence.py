"""How far lines and the truth are from the best line, by score tests: no curvature and no validation is needed."""

from __future__ import annotations

from functools import singledispatch
from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from orthocal.arrays import Floats, Integers, group_sums, is_constant, step_of
from orthocal.calibrators.histogram import filled, uniform_mass_edges
from orthocal.calibrators.lines import Constant, Shift, Tilt, middle_of
from orthocal.losses import Loss, is_ratio
from orthocal.losses.summed import SummedQuadraticLoss
from orthocal.losses.units import units_of
from orthocal.solvers import constants
from orthocal.solvers.spline import roughness, spline_design, spline_knots

BOTH, AVERAGE, SLOPE = [0, 1], [0], [1]
"""Directions in which a map may differ from the best line."""
BINS = 10
HANDFUL, HARDEST = 15.0, 0.005
"""Rows that decide the slope, below which lines are also compared without the share of rows that pull it hardest."""
PIECES, RIDGE = 8, 1e-7
"""Of the spline whose smoothest bends are tested; and what is added to its moments, for those of few predictions are singular."""
KINK = 1e-7
"""How far aside of a map the sides of a kink are looked at, in deviations of the outcome."""


class Evidence(NamedTuple):
    """What can be said without validation.

    Half the score statistic of each line against the best line; the slope of the best line, and the largest drop of the effect
    from one bin of the predictions to a later one, in standard errors.
    """

    lines: dict[str, float]
    slope: float
    drop: float


def line_evidence(prediction: Floats, loss: Loss) -> Evidence:
    """Return how far each line is behind the best line.

    A line that leaves a direction free has no evidence against it there: the shift is tested for its slope, a slope about the
    average for its height, the original prediction for both (scores at the line, variances robust to heteroskedastic noise and
    clusters). The direction of the slope is orthogonal to that of the average.
    """
    lines, slope = _lines(prediction, loss)
    return Evidence(lines, slope, largest_drop(prediction, loss))


def _lines(prediction: Floats, loss: Loss) -> tuple[dict[str, float], float]:
    """Return half the score statistic of each line, and the slope of the best line in standard errors."""
    centred = prediction - middle_of(prediction, loss)
    centred /= np.sqrt(np.mean(centred**2))  # whatever the unit of the prediction
    constant, shift, tilt = (
        method.fit(prediction, loss).predict(prediction) for method in (Constant(), Shift(), Tilt())
    )
    slope = score_moments(loss, constant, centred).in_errors(SLOPE)
    lines = {
        "identity": score_moments(loss, prediction, centred).half_statistic(BOTH),
        "constant": slope**2 / 2,
        "shift": score_moments(loss, shift, centred).half_statistic(SLOPE),
        "slope": score_moments(loss, tilt, centred).half_statistic(AVERAGE),
        "linear": 0.0,
    }
    return lines, slope


def with_hardest_left_out(evidence: Evidence, prediction: Floats, loss: Loss) -> Evidence:
    r"""Return the evidence; where a handful of rows decides the slope, lines must also fit the rows without the hardest pulls.

    A statistic is measured in its own noise, so that one wild row makes all of them small and hides what the others say. With
    m < 15 deciding rows, evidence E against a line becomes :math:`E + (1 - m / 15) \max(0, E' - E)`, where E' is that of the
    rows that remain without the half percent (at least one row or cluster) that pull hardest.
    """
    share = 1 - deciding_rows(prediction, loss) / HANDFUL
    if share <= 0:
        return evidence
    rest = without_hardest(prediction, loss)
    prediction, loss = prediction[rest], loss[rest]
    if not _has_line(prediction, loss):
        return evidence
    others, _ = _lines(prediction, loss)
    return evidence._replace(
        lines={name: value + share * max(0.0, others[name] - value) for name, value in evidence.lines.items()}
    )


def without_hardest(prediction: Floats, loss: Loss) -> Integers:
    """Return the rows that remain without the half percent (at least one; of clusters, if any) that pull the slope hardest."""
    strength = np.abs(slope_scores(prediction, loss))
    hardest = np.argsort(-strength, kind="stable")[: ceil(HARDEST * len(strength))]
    unit = np.arange(len(loss)) if loss.groups is None else np.unique(loss.groups, return_inverse=True)[1]
    return np.flatnonzero(~np.isin(unit, hardest))


def _has_line(prediction: Floats, loss: Loss) -> bool:
    """Return whether predictions differ and have mass: that of a ratio effect can be 0 or negative by chance."""
    if len(prediction) == 0 or is_constant(prediction) or not loss.mass.sum() > 0:
        return False
    return bool(loss.mass @ (prediction - middle_of(prediction, loss)) ** 2 > 0)


def slope_scores(prediction: Floats, loss: Loss) -> Floats:
    """Return each row's (cluster's) score in the slope, at the best constant."""
    constant = Constant().fit(prediction, loss).predict(prediction)
    return by_unit(loss, pull_of(loss, constant) * (prediction - middle_of(prediction, loss)))


def deciding_rows(prediction: Floats, loss: Loss) -> float:
    r"""Return how many rows (clusters) decide the slope: Kish's effective sample size of their squared scores.

    :math:`(\sum s_i^2)^2 / \sum s_i^4`, with s a row's score in the slope at the best constant: n rows that pull equally hard
    are n, and 1 where one pulls harder than all others together. Normal noise and predictions give a ninth of the rows (both
    have kurtosis 3); far predictions of noisy outcomes a handful, and half squared statistics of those are no normal evidence.
    """
    scores = slope_scores(prediction, loss)
    most = float(np.abs(scores).max())
    if not most > 0:  # nothing pulls anywhere
        return float(len(scores))
    squares = (scores / most) ** 2  # fourth powers of large numbers overflow
    return float(squares.sum() ** 2 / (squares @ squares))


def bend_evidence(prediction: Floats, loss: Loss, line: Floats, most: int) -> Floats:
    """Return half the score statistic of the 0, 1, ..., `most` smoothest bends against the best line."""
    pull = pull_of(loss, line)
    found = [by_unit(loss, pull * bend) for bend in bends(prediction, loss.weight)[:most]]
    if not found:  # few distinct predictions have none
        return np.zeros(most + 1)
    rows = np.array(found)
    return np.array([half_statistic(rows[:count]) for count in range(most + 1)])


def bends(prediction: Floats, weight: Floats) -> Floats:
    """Return the splines orthogonal to every line, the smoothest first (Demmler and Reinsch 1975), one a row.

    The first two are much like a parabola and a cubic. Few distinct predictions have few: the others are 0 on every row.
    """
    if is_constant(prediction):
        return np.empty((0, len(prediction)))
    place = (prediction - prediction.min()) / np.ptp(prediction)  # whatever the unit of the prediction
    knots = spline_knots(place, PIECES)
    design = spline_design(place, knots)
    moments = (design * weight[:, None]).T @ design / weight.sum()
    smoothest_first = eigh(roughness(knots), moments + RIDGE * np.eye(len(moments)))[1]
    found = (design @ smoothest_first[:, len(BOTH) :]).T
    return np.asarray(found[found**2 @ weight > weight.sum() / 2])


def largest_drop(prediction: Floats, loss: Loss) -> float:
    """Return by how many standard errors the best constant of a bin lies above that of a later one, at most."""
    edges = uniform_mass_edges(prediction, loss.weight, BINS)
    bins = step_of(prediction, edges)
    if is_ratio(loss):
        edges = edges[filled(group_sums(bins, loss.mass, len(edges) + 1))]
        bins = step_of(prediction, edges)
    value = constants(loss, bins, len(edges) + 1)
    error = np.array(
        [
            standard_error(loss[rows], np.full(len(rows), one))
            for one, rows in zip(value, rows_of(bins, len(value)), strict=True)
        ]
    )
    gap = value[:, None] - value[None, :]
    error_of_gap = np.maximum(np.hypot(error[:, None], error[None, :]), np.finfo(float).tiny)
    with np.errstate(over="ignore"):  # bins without noise, as those of one row
        return float(np.max(np.triu(gap / error_of_gap, 1)))


def rows_of(group: Integers, count: int) -> list[Integers]:
    """Return the rows of each group."""
    return [np.flatnonzero(group == number) for number in range(count)]


class ScoreMoments(NamedTuple):
    """Sums of scores in some directions, and of their products over rows (clusters)."""

    total: Floats
    products: Floats

    @classmethod
    def of(cls, scores: Floats) -> ScoreMoments:
        """Of the scores of rows (clusters), a direction in each row of the table."""
        return cls(scores.sum(axis=1), scores @ scores.T)

    def half_statistic(self, directions: list[int]) -> float:
        """Return half the squared length of summed scores in some directions, in units of their own variance."""
        total, products = self.total[directions], self.products[np.ix_(directions, directions)]
        if not products.any():  # nothing pulls anywhere
            return 0.0
        return float(total @ np.linalg.pinv(products, hermitian=True) @ total) / 2

    def in_errors(self, direction: list[int]) -> float:
        """Return a sum in standard errors of it."""
        ((variance,),) = self.products[np.ix_(direction, direction)].tolist()
        return float(self.total[direction][0] / np.sqrt(max(variance, np.finfo(float).tiny)))


def half_statistic(scores: Floats) -> float:
    """Return half the squared length of summed scores, in units of their own variance."""
    return ScoreMoments.of(scores).half_statistic(list(range(len(scores)))) if scores.any() else 0.0


@singledispatch
def score_moments(loss: Loss, value: Floats, centred: Floats) -> ScoreMoments:
    """Return the moments of minus the derivative of each row's (cluster's) loss, in the average and in the slope."""
    pull = pull_of(loss, value)
    return ScoreMoments.of(np.array([by_unit(loss, pull), by_unit(loss, pull * centred)]))


@score_moments.register
def _(loss: SummedQuadraticLoss, value: Floats, centred: Floats) -> ScoreMoments:
    """From the squares that were summed up with the rows."""
    pull, squares = -loss.derivative(value), loss.squared_scores(value)
    average, cross, slope = float(squares.sum()), float(squares @ centred), float((squares * centred) @ centred)
    return ScoreMoments(np.array([pull.sum(), pull @ centred]), np.array([[average, cross], [cross, slope]]))


def pull_of(loss: Loss, value: Floats) -> Floats:
    """Return minus the derivative of each row's loss; at a kink the mean of both sides.

    The best line of a quantile goes through outcomes, and rounding would decide on which side of them it passes.
    """
    aside = KINK * units_of(loss).scale
    return np.asarray(-(loss.derivative(value + aside) + loss.derivative(value - aside)) / 2)


def by_unit(loss: Loss, values: Floats) -> Floats:
    """Return the sums of values over clusters; without clusters, the values."""
    if loss.groups is None:
        return values
    codes, index = np.unique(loss.groups, return_inverse=True)
    return group_sums(index, values, len(codes))


def rank_statistic(prediction: Floats, loss: Loss) -> float:
    """Return by how many standard errors the effect rises with the rank of the prediction."""
    ranks = np.unique(prediction, return_inverse=True)[1].astype(float)
    constant = Constant().fit(prediction, loss).predict(prediction)
    return score_moments(loss, constant, ranks - middle_of(ranks, loss)).in_errors(SLOPE)


def standard_error(loss: Loss, value: Floats) -> float:
    """Return the standard error of the average of a map: the scores' deviation over their slope."""
    squares, slope = score_noise(loss, value)
    return float(np.sqrt(squares)) / slope if slope > 0 else 0.0


def score_noise(loss: Loss, value: Floats) -> tuple[float, float]:
    """Return the summed squares of the scores of rows (clusters) at a map, and the slope of their sum.

    The slope is a difference over a bandwidth, for the scores of quantiles jump; those of a mean are straight.
    """
    width = units_of(loss).scale * len(value) ** -0.2
    slope = float((loss.derivative(value + width) - loss.derivative(value - width)).sum()) / (2 * width)
    return float(score_moments(loss, value, np.zeros(len(value))).products[0, 0]), slope
