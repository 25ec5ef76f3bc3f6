"""Calibrators: classes of one-dimensional maps and the fit over them.

Every calibrator has ``fit(prediction, loss)``, ``predict(prediction)`` and, once fitted, ``map_``. A new one is one file
here and one entry in ``CALIBRATORS``; the contract tests pick it up from there.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, cast

from sklearn.base import clone

from orthocal.arrays import Floats
from orthocal.calibrators.auto import Auto
from orthocal.calibrators.histogram import Histogram
from orthocal.calibrators.isotonic import Isotonic
from orthocal.calibrators.lines import Constant, Identity, Linear, Shift
from orthocal.calibrators.platt import Platt
from orthocal.calibrators.spline import Spline
from orthocal.errors import OrthocalError, require_one_of
from orthocal.formats import shown
from orthocal.losses import Loss
from orthocal.maps import Map

__all__ = [
    "CALIBRATORS",
    "Auto",
    "Calibrator",
    "Constant",
    "Histogram",
    "Identity",
    "Isotonic",
    "Linear",
    "Platt",
    "Shift",
    "Spline",
    "new_calibrator",
]


class Calibrator(Protocol):
    """What a calibrator offers."""

    map_: Map

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Learn the map that minimises the summed loss."""
        ...

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        ...


CALIBRATORS: dict[str, type[Any]] = {
    "identity": Identity,
    "constant": Constant,
    "shift": Shift,
    "linear": Linear,
    "isotonic": Isotonic,
    "histogram": Histogram,
    "spline": Spline,
    "platt": Platt,
    "auto": Auto,
}


def new_calibrator(method: str | Calibrator) -> Calibrator:
    """Return an unfitted calibrator, by name or as a copy of the one given."""
    if isinstance(method, str):
        require_one_of(method, CALIBRATORS, "method")
        return cast("Calibrator", CALIBRATORS[method]())
    if isinstance(method, type) or not (hasattr(method, "fit") and hasattr(method, "get_params")):
        raise OrthocalError(
            f"`method` must be a name or a calibrator such as Isotonic(); it is {shown(method)}. Pass an instance."
        )
    return cast("Calibrator", clone(method))
