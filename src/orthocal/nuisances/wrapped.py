"""What estimators that contain a learner share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

if TYPE_CHECKING:
    from orthocal.arrays import Floats


def fit_weighted(learner: Any, X: Floats, y: Any, weight: Floats | None) -> Any:
    """Return the learner fitted, with weights where it takes them."""
    if weight is not None and has_fit_parameter(learner, "sample_weight"):
        return learner.fit(X, y, sample_weight=weight)
    return learner.fit(X, y)


def monotone_in_last(learner: Any, columns: int) -> Any:
    """Return a copy that rises in its last feature, where the learner knows how to."""
    copy = clone(learner)
    if "monotonic_cst" in copy.get_params() and copy.get_params()["monotonic_cst"] is None:
        copy.set_params(monotonic_cst=[0] * (columns - 1) + [1])
    return copy
