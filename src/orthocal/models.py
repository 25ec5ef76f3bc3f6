"""How to ask a fitted effect model for its prediction, whichever library it comes from."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError

from orthocal.errors import HonestyWarning, OrthocalError
from orthocal.observations import as_matrix, as_numbers

if TYPE_CHECKING:
    from orthocal.arrays import Floats

REMEMBERED_ROWS = ("X_train_", "X_fit_", "_fit_X")
"""Where scikit-learn's Gaussian processes, kernel machines and neighbours keep their training rows."""


def prediction_of(model: Any, X: Any) -> Floats:
    """Return the model's effect on each row: ``model.effect(X)``, ``model.predict(X)`` or ``model(X)``."""
    for ask in (getattr(model, "effect", None), getattr(model, "predict", None), model):
        if callable(ask):
            try:
                return as_numbers(np.asarray(ask(X)), "prediction", len(X))
            except NotFittedError:
                raise OrthocalError(
                    f"`estimator` must be fitted, on other rows than these; this {type(model).__name__} is not. Fit it first."
                ) from None
    raise OrthocalError(
        f"`estimator` must have .effect(X) or .predict(X), or be callable; it is a {type(model).__name__}. "
        "Pass the predictions themselves as `prediction`."
    )


def warn_if_trained_on(model: Any, X: Any) -> None:
    """Warn when the model remembers its training rows and these are they."""
    for name in REMEMBERED_ROWS:
        remembered = getattr(model, name, None)
        if isinstance(remembered, np.ndarray) and np.array_equal(remembered, as_matrix(X)):
            warnings.warn(
                f"The {type(model).__name__} was trained on exactly these rows, so the verdict would flatter it. "
                "Judge it on rows it never saw, or use predictions made out of fold.",
                HonestyWarning,
                stacklevel=3,
            )
