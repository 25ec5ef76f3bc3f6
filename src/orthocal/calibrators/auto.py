"""Automatic choice of the method by cross-validated loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import group_sums
from orthocal.calibrators.histogram import Histogram
from orthocal.calibrators.identity import Identity
from orthocal.calibrators.isotonic import Isotonic
from orthocal.calibrators.linear import Linear
from orthocal.calibrators.platt import Platt
from orthocal.calibrators.spline import Spline
from orthocal.calibrators.validation import by_value, validation_folds
from orthocal.errors import OrthocalError
from orthocal.losses import rows_that_count
from orthocal.losses.units import Units, restated, units_of
from orthocal.observations import as_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.arrays import Floats
    from orthocal.losses import Loss
    from orthocal.maps import Map

CANDIDATES: dict[str, Any] = {
    "identity": Identity(),
    "linear": Linear(),
    "platt": Platt(),
    "spline": Spline(),
    "histogram": Histogram(bins=10),
    "isotonic": Isotonic(min_samples=20),
    "isotonic-100": Isotonic(min_samples=100),
}
"""From the simplest to the most flexible."""


@dataclass(frozen=True)
class Trial:
    """One candidate's cross-validated loss, relative to the best.

    Parameters
    ----------
    name : str
    excess : float
        Mean loss above the best candidate's.
    standard_error : float
        Of that difference, paired over rows or clusters.
    note : str
        Why it could not be fitted, if so.
    """

    name: str
    excess: float
    standard_error: float
    note: str = ""


class Auto(BaseEstimator):  # type: ignore[misc]
    """Choose the method: the simplest whose cross-validated loss is about as good as the best.

    Leaving the model alone counts as good within one standard error of the best, a method that changes it within half of one:
    the first is kept 97% of the time when the model was right, the second loses little when the truth is slightly curved.

    When the model was right all along, the choice costs little: benchmarks/auto.md has the measurements.

    Parameters
    ----------
    candidates : mapping of str to calibrator, optional
        From the simplest to the most flexible; identity, linear, platt, spline, histogram, isotonic by default.
    errors : float, default 1.0
        How many standard errors of the paired difference count as equal for the first candidate; half as many for the others.
    folds : int, default 5
    random_state : int, default 0

    Attributes
    ----------
    choice_ : str
    trials_ : tuple of Trial
    reason_ : str

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> rng = np.random.default_rng(0)
    >>> prediction = rng.standard_normal(2000)
    >>> loss = QuadraticLoss(1 + 2 * prediction + rng.standard_normal(2000), np.ones(2000))
    >>> chosen = Auto().fit(prediction, loss)
    >>> chosen.choice_ != "identity", [round(value, 1) for value in chosen.predict([0.0, 1.0]).tolist()]
    (True, [1.0, 3.0])
    """

    def __init__(
        self, candidates: Mapping[str, Any] | None = None, errors: float = 1.0, folds: int = 5, random_state: Any = 0
    ) -> None:
        self.candidates = candidates
        self.errors = errors
        self.folds = folds
        self.random_state = random_state

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Choose, then fit the choice on all rows."""
        prediction, loss = by_value(*rows_that_count(as_numbers(prediction, "prediction", len(loss)), loss))
        candidates = dict(CANDIDATES if self.candidates is None else self.candidates)
        self.trials_ = self._tried(candidates, prediction, loss)
        chosen = self._choice()
        self.calibrator_ = clone(candidates[chosen]).fit(prediction, loss)
        self.map_: Map = self.calibrator_.map_
        return self

    def choose(self, prediction: Floats, loss: Loss) -> Any:
        """Return the chosen calibrator, unfitted, to be fitted to other losses of the same rows."""
        candidates = dict(CANDIDATES if self.candidates is None else self.candidates)
        self.trials_ = self._tried(candidates, *by_value(prediction, loss))
        return clone(candidates[self._choice()])

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)

    def _choice(self) -> str:
        able = [trial for trial in self.trials_ if not trial.note]
        best = min(able, key=lambda trial: trial.excess)
        # The simplest of all, leaving the model alone, is given the whole allowance; methods that change it half of it.
        allowed = [self.errors if t is self.trials_[0] else self.errors / 2 for t in able]
        chosen, near = next(
            (t, a) for t, a in zip(able, allowed, strict=True) if t.excess <= a * t.standard_error or t is best
        )
        self.choice_ = chosen.name
        self.reason_ = f"{chosen.name} has the least loss on rows left out, and no simpler method is close to it."
        if chosen is not best:
            size = f"mean loss above it {chosen.excess:.3g}, standard error {chosen.standard_error:.3g}"
            self.reason_ = (
                f"{chosen.name} is the simplest within {near:g} standard error of the best, {best.name} ({size})."
            )
        return self.choice_

    def _tried(self, candidates: Mapping[str, Any], prediction: Floats, loss: Loss) -> tuple[Trial, ...]:
        """Loss of every candidate on rows left out, in units whose sum is the total."""
        folds = min(self.folds, len(loss))
        fold = validation_folds(loss, folds, self.random_state)
        losses: dict[str, Floats] = {}
        notes: dict[str, str] = {}
        for name, candidate in candidates.items():
            try:
                losses[name] = _left_out(candidate, prediction, loss, fold, folds)
            except OrthocalError as reason:
                notes[name] = str(reason)
        if not losses:
            raise OrthocalError(f"No candidate could be fitted; the first said: {next(iter(notes.values()))}")
        best = min(losses, key=lambda name: float(losses[name].sum()))
        trials = []
        for name in candidates:
            gap = losses[name] - losses[best] if name in losses else np.zeros(1)
            total = float(loss.weight.sum())
            error = float(np.sqrt(len(gap) * gap.var())) / total
            trials.append(Trial(name, float(gap.sum()) / total, error, notes.get(name, "")))
        return tuple(trials)


def _left_out(candidate: Any, prediction: Floats, loss: Loss, fold: Any, folds: int) -> Floats:
    """Loss of each row, or cluster, under a map fitted without its fold."""
    value = np.empty(len(loss))
    units = Units(
        units_of(loss).centre, 1.0
    )  # far from 0 the loss is large, and differences of it are lost in rounding
    centred = restated(loss, units)
    for k in range(folds):
        rest, own = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        fitted = clone(candidate).fit(prediction[rest], loss[rest])
        value[own] = centred[own].value(units.standard(fitted.predict(prediction[own])))
    if loss.groups is None:
        return value
    codes, index = np.unique(loss.groups, return_inverse=True)
    return group_sums(index, value, len(codes))
