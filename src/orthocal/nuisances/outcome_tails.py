"""Conditional quantiles and the means beyond them, for several tails at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.folds import generator
from orthocal.nuisances.conditional_distribution import LEAST_SCALE
from orthocal.nuisances.polynomials import fit_in_stages

ROUNDING = 1e-12


class Tail(NamedTuple):
    """A share of the outcomes at one end of their distribution: the largest where `side` is 1, the smallest where it is -1."""

    share: float
    side: int


class OutcomeTails(BaseEstimator):  # type: ignore[misc]
    r"""Learn the quantile at which each of several tails begins, and the mean beyond it.

    Location and scale are learnt, :math:`q_t(x) = m(x) + s(x) z_t` with :math:`z_t` the quantile of standardised residuals and
    :math:`h_t(x) = m(x) + s(x)\,E[z \mid z \text{ beyond } z_t]`: one fit serves every tail. It is done on either half of the
    rows, so that residuals are those of rows that a half had not seen; the mean of both halves is used.

    Parameters
    ----------
    learner : scikit-learn regressor
        Of location and scale, in units of the outcome's standard deviation, beyond what an additive fit says.
    tails : sequence of Tail
    random_state : int, optional
        Of the halves.
    """

    def __init__(self, learner: Any, tails: Sequence[Tail], random_state: Any = None) -> None:
        self.learner = learner
        self.tails = tails
        self.random_state = random_state

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit either half, and the residuals of the other."""
        self.centre_, self.unit_ = float(np.median(y)), float(y.std()) or 1.0
        y = (y - self.centre_) / self.unit_
        half = generator(self.random_state).permutation(len(y)) % 2
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        own = [np.flatnonzero(half == j) for j in np.unique(half)]
        self.halves_ = [
            _location_and_scale(self.learner, X[rows], y[rows], None if sample_weight is None else weight[rows])
            for rows in own
        ]
        residual = np.empty(len(y))
        for rows, model in zip(own, self.halves_[::-1], strict=True):
            location, scale = _parts(model, X[rows])
            residual[rows] = (y[rows] - location) / scale
        self.beyond_ = np.array([tail_of(residual, weight, tail) for tail in self.tails])
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the quantile and the mean beyond it of each tail in turn, two columns each."""
        location, scale = np.mean([_parts(model, X) for model in self.halves_], axis=0)
        standard = location[:, None] + scale[:, None] * self.beyond_.ravel()
        return np.asarray(self.centre_ + self.unit_ * standard)


def tail_of(values: Floats, weight: Floats, tail: Tail) -> tuple[float, float]:
    """Return the quantile at which a tail of weighted values begins, and their mean beyond it."""
    turned = tail.side * values
    order = np.argsort(turned, kind="stable")
    below = np.cumsum(weight[order]) / weight.sum()
    reached = int(np.searchsorted(below[:-1], 1 - tail.share - ROUNDING))  # the last where no other is enough
    quantile = float(turned[order][reached])
    excess = float(np.average(np.maximum(turned - quantile, 0), weights=weight)) / tail.share
    return tail.side * quantile, tail.side * (quantile + excess)


def binary_tail(chance: Floats, tail: Tail) -> tuple[Floats, Floats]:
    r"""Return quantile and tail mean of an outcome that is 0 or 1, from its chance of being 1.

    Of the largest outcomes :math:`\min(1, p/\text{share})` are 1; of the smallest :math:`\min(1, (1-p)/\text{share})` are 0.
    """
    at_end = np.clip((chance if tail.side == 1 else 1 - chance) / tail.share, 0.0, 1.0)
    quantile = (at_end >= 1).astype(float)
    return (quantile, at_end) if tail.side == 1 else (1 - quantile, 1 - at_end)


def _location_and_scale(learner: Any, X: Floats, y: Floats, weight: Floats | None) -> tuple[Any, Any, float]:
    location = fit_in_stages(learner, X, y, weight)
    size = np.abs(y - location.predict(X))
    least = LEAST_SCALE * float(np.average(size, weights=weight)) or 1.0
    return location, fit_in_stages(learner, X, size, weight), least


def _parts(model: tuple[Any, Any, float], X: Floats) -> tuple[Floats, Floats]:
    location, scale, least = model
    return location.predict(X), np.maximum(scale.predict(X), least)
