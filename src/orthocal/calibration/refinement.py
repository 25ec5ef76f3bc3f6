"""Refinement: fit a map at the level it predicts.

Conditionally orthogonal losses have a nuisance that depends on the level, so a map is fitted, the loss is rebuilt at the
calibrated prediction, and the map is fitted again (mathematics 5.4). Universally orthogonal losses need one fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.calibrators import Calibrator, Linear, new_calibrator
from orthocal.losses import Loss

if TYPE_CHECKING:
    Folds: TypeAlias = Integers | Callable[[], Integers] | None


def fit_calibrator(
    method: str | Calibrator, prediction: Floats, loss: Loss, refinements: int = 2, fold: Folds = None
) -> Calibrator:
    """Return the calibrator fitted, refined where the loss depends on the level.

    Parameters
    ----------
    method : str or calibrator
        One that chooses among methods chooses once, at the level after one linear fit, and refines its choice.
    refinements : int
        0 fits once, at the level of the prediction (Algorithms 3 and 4 as printed).
    fold : array, or function that gives it, optional
        A row's level comes from a map fitted without its fold; without folds, from one map of all rows. A function is asked
        only where the loss depends on the level, so that folds nobody uses need not be drawn.
    """
    calibrator = new_calibrator(method)
    if loss.at(prediction) is loss or refinements == 0:
        return calibrator.fit(prediction, loss)
    fold = fold() if callable(fold) else fold
    choose = getattr(calibrator, "choose", None)
    frozen = calibrator
    if choose is not None:
        frozen = choose(prediction, loss.at(_levels(Linear(), prediction, loss, fold)))
    for _ in range(refinements):
        loss = loss.at(_levels(frozen, prediction, loss, fold))
    fitted = new_calibrator(frozen).fit(prediction, loss)
    if choose is None:
        return fitted
    return cast("Calibrator", calibrator.adopt(fitted, prediction, loss))  # type: ignore[attr-defined]


def _levels(method: Calibrator, prediction: Floats, loss: Loss, fold: Integers | None) -> Floats:
    """Calibrated prediction of each row, by a map fitted without its fold."""
    if fold is None or len(np.unique(fold)) == 1:
        return new_calibrator(method).fit(prediction, loss).predict(prediction)
    level = np.empty(len(prediction))
    for k in np.unique(fold):
        others, own = np.flatnonzero(fold != k), fold == k
        level[own] = new_calibrator(method).fit(prediction[others], loss[others]).predict(prediction[own])
    return level


def out_of_fold(method: str | Calibrator, prediction: Floats, loss: Loss, refinements: int, fold: Integers) -> Floats:
    """Return each row's calibrated prediction by a map fitted without its fold."""
    honest = np.empty(len(prediction))
    for k in np.unique(fold):
        others = np.flatnonzero(fold != k)
        own = fit_calibrator(method, prediction[others], loss[others], refinements, fold[others])
        honest[fold == k] = own.predict(prediction[fold == k])
    return honest
