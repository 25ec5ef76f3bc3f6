"""Spline calibration: smooth and nondecreasing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats, Integers
from orthocal.calibrators.left_out import by_value, validation_folds
from orthocal.errors import require_whole
from orthocal.losses import Loss, counted_rows
from orthocal.losses.counting import MOST_BINS
from orthocal.losses.units import restated, units_of
from orthocal.maps import SplineMap, StepMap
from orthocal.solvers import constants, spline
from orthocal.solvers.monotone import positive_runs
from orthocal.solvers.spline import roughness, spline_design, spline_knots

SMOOTHINGS = (100.0, 1.0, 0.1, 0.01, 0.001, 1e-4, 1e-6)
"""Candidates, from nearly a line to hardly smoothed, relative to the mean curvature of the loss."""


class Spline(BaseEstimator):  # type: ignore[misc]
    """Fit a smooth nondecreasing curve: a cubic spline with rising coefficients, smoothed by cross-validated loss.

    Parameters
    ----------
    pieces : int, default 8
        Pieces between knots, which sit at quantiles of the prediction.
    smoothings : sequence of float, optional
        Candidates for the weight of the roughness.
    folds : int, default 5
        Folds of the cross-validation; clusters are kept whole.
    random_state : int, default 0

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> prediction = np.linspace(-1, 1, 200)
    >>> fitted = Spline().fit(prediction, QuadraticLoss(prediction**3, np.ones(200)))
    >>> np.round(fitted.predict([-0.5, 0.5]), 1)
    array([-0.1,  0.1])
    """

    def __init__(
        self, pieces: int = 8, smoothings: Sequence[float] | None = None, folds: int = 5, random_state: Any = 0
    ) -> None:
        self.pieces = pieces
        self.smoothings = smoothings
        self.folds = folds
        self.random_state = random_state

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn knots, smoothing and coefficients."""
        require_whole(self.pieces, 1, "pieces", MOST_BINS)
        prediction, loss = by_value(*counted_rows(prediction, loss))
        if prediction.min() == prediction.max():
            self.map_: SplineMap | StepMap = StepMap(
                np.empty(0), constants(loss, np.zeros(len(loss), dtype=np.int64), 1)
            )
            return self
        units = units_of(loss)
        loss = restated(loss, units)
        knots = spline_knots(prediction, self.pieces)
        rows = _Basis(prediction, knots, spline_design(prediction, knots))
        penalty = roughness(knots)
        self.smoothing_ = self._chosen(rows, penalty, loss)
        design, convex = rows.convex(np.arange(len(loss)), loss)
        # The basis adds up to 1 everywhere, so coefficients move with the units like any other value.
        self.map_ = SplineMap(knots, units.original(spline(convex, design, self.smoothing_ * penalty)))
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)

    def _chosen(self, rows: _Basis, penalty: Floats, loss: Loss) -> float:
        """The smoothing with the least loss on held-out rows."""
        candidates = tuple(SMOOTHINGS if self.smoothings is None else self.smoothings)
        if len(candidates) == 1 or len(loss) < 2 * self.folds:
            return float(candidates[0])
        fold = validation_folds(loss, self.folds, self.random_state)
        risk = np.zeros(len(candidates))
        for k in range(self.folds):
            design, rest = rows.convex(np.flatnonzero(fold != k), loss)
            own, left_out, start = loss[np.flatnonzero(fold == k)], rows.design[fold == k], None
            for j, candidate in enumerate(candidates):
                start = spline(rest, design, candidate * penalty, start)
                risk[j] += float(own.value(left_out @ start).sum())
        return float(candidates[int(np.argmin(risk))])


class _Basis(NamedTuple):
    """The basis at each prediction."""

    prediction: Floats
    knots: Floats
    design: Floats

    def convex(self, some: Integers, loss: Loss) -> tuple[Floats, Loss]:
        """Return basis and loss of some rows, pooled where negative masses would make their summed loss concave."""
        own = loss[some]
        level, pooled = positive_runs(own, self.prediction[some])
        return (self.design[some] if pooled is own else spline_design(level, self.knots)), pooled
