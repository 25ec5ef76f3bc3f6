r"""Ratio effects (mathematics 9): what is measured against the mass of all rows, and where a bin's own ratio can be shown.

A ratio effect is a mean of numerators over a mean of masses. A bin's mean mass is noisy and can be 0 or less, so nothing that
is judged divides by it. With :math:`\bar m` the mean mass of all rows per unit of sample weight w, a row's residual r counts as
that of a squared loss with mass :math:`w \bar m`: a bin's mean is :math:`\sum r / (\bar m \sum w)`, its share is that of the
weights, and a test of mean 0 is the Anderson-Rubin test, whose size does not depend on how far the masses are from 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Integers
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import Question, Rows, Stage, T, cluster_sums, merged
from orthocal.errors import require_positive_mass
from orthocal.losses import QuadraticLoss, is_ratio


class MeanMass(NamedTuple):
    """The mean mass of all rows per unit of sample weight, its standard error, the weight, and the number of rows or clusters."""

    value: float
    standard_error: float
    weight: float
    units: int

    @property
    def relative_variance(self) -> float:
        """Summed squares of what each row or cluster adds to its relative error."""
        return (self.standard_error / self.value) ** 2 * (self.units - 1) / self.units

    def is_clear(self, level: float) -> bool:
        """Whether it is away from 0, so that Fieller's interval of a ratio over it is bounded."""
        return self.value > float(t_distribution.ppf((1 + level) / 2, self.units - 1)) * self.standard_error


def mean_mass(rows: Rows) -> Stage[MeanMass | None]:
    """Return the mean mass of a ratio effect; None where masses are sample weights, and need no mean."""
    if not is_ratio(rows.like):
        return None
    if rows.like.groups is None:
        sums = np.sum((yield _mass_moments), axis=0)
    else:
        _, (mass, weight) = merged((yield _cluster_masses))
        sums = _moments(mass, weight)
    units, total, held, square, cross, weights = sums.tolist()
    mean = total / held
    squares = max(square - 2 * mean * cross + mean**2 * weights, 0.0)
    return MeanMass(mean, float(np.sqrt(squares * units / max(units - 1, 1))) / held, held, int(units))


def _moments(mass: Floats, weight: Floats) -> Floats:
    return np.array([len(mass), mass.sum(), weight.sum(), mass @ mass, mass @ weight, weight @ weight])


def _mass_moments(piece: Piece) -> Floats:
    mass, weight = piece.loss.mass, piece.loss.weight
    products = [piece.dot(one, other) for one, other in ((mass, mass), (mass, weight), (weight, weight))]
    return np.array([piece.rows, piece.sum(mass), piece.sum(weight), *products])


def _cluster_masses(piece: Piece) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [piece.loss.mass, piece.loss.weight])


def against_all(stage: Stage[T], mean: MeanMass | None) -> Stage[T]:
    """Ask a stage's questions of rows whose mass is their weight times the mean mass of all; of the rows as they are if None."""
    if mean is None:
        return (yield from stage)
    require_positive_mass(mean.value * mean.weight)
    answers: Any = None
    while True:
        try:
            question = stage.send(answers)
        except StopIteration as done:
            result: T = done.value
            return result
        answers = yield partial(_asked, question=question, mean=mean.value)


def _asked(piece: Piece, question: Question, mean: float) -> Any:
    mass = piece.loss.weight * mean
    loss = QuadraticLoss(piece.residual + mass * piece.prediction, mass, mass, piece.loss.groups)
    return question(replace(piece, loss=loss))


class Shown(NamedTuple):
    r"""What a bin's gap :math:`\bar r / \bar m` and its intervals are made of.

    Parameters
    ----------
    residual, mass : array
        Means of each bin; where masses are sample weights the mass is 1.
    squares : array of shape (3, bins)
        Their variances and covariance: of the residual, of both, of the mass.
    """

    residual: Floats
    mass: Floats
    squares: Floats

    def interval(self, critical: Floats | float) -> tuple[Floats, Floats]:
        r"""Return the ends of Fieller's interval, NaN where it is not bounded: the mass is not away from 0.

        All gaps :math:`\delta` with :math:`|\bar r - \delta\bar m| \le c\,\mathrm{se}(\bar r - \delta\bar m)`.
        """
        r, m, (rr, rm, mm) = self.residual, self.mass, self.squares
        square = np.asarray(critical) ** 2
        leading = m**2 - square * mm
        bounded = (leading > 0) & (m > 0)
        spread = square * (rr * m**2 - 2 * r * m * rm + r**2 * mm) + square**2 * (rm**2 - rr * mm)
        leading, reach = np.where(bounded, leading, np.nan), np.sqrt(np.maximum(spread, 0.0))
        middle = r * m - square * rm
        return (middle - reach) / leading, (middle + reach) / leading

    def gap(self, critical: Floats) -> tuple[Floats, Floats]:
        """Return each bin's gap and its standard error, NaN where Fieller's interval is not bounded."""
        is_shown = np.isfinite(self.interval(critical)[0])
        mass, (rr, rm, mm) = np.where(is_shown, self.mass, np.nan), self.squares
        gap = self.residual / mass
        return gap, np.sqrt(np.maximum(rr - 2 * gap * rm + gap**2 * mm, 0.0)) / mass
