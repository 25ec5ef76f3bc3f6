"""orthocal: can this model of causal effects be believed, and if not, can it be fixed?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orthocal.assessment import Assessment, Comparison, assess, compare
    from orthocal.calibration import CausalCalibrator
    from orthocal.calibrators import Histogram, Identity, Isotonic, Linear, Platt
    from orthocal.effects import CATE
    from orthocal.errors import HonestyWarning, OrthocalError, OverlapWarning
    from orthocal.losses import Loss, QuadraticLoss
    from orthocal.mapfile import load, save
    from orthocal.orthogonal import orthogonal_loss

__version__ = "0.1.0"

_HOMES = {
    "Assessment": "assessment",
    "CATE": "effects",
    "CausalCalibrator": "calibration",
    "Comparison": "assessment",
    "Histogram": "calibrators",
    "HonestyWarning": "errors",
    "Identity": "calibrators",
    "Isotonic": "calibrators",
    "Linear": "calibrators",
    "Loss": "losses",
    "OrthocalError": "errors",
    "OverlapWarning": "errors",
    "Platt": "calibrators",
    "QuadraticLoss": "losses",
    "assess": "assessment",
    "compare": "assessment",
    "load": "mapfile",
    "orthogonal_loss": "orthogonal",
    "save": "mapfile",
}

__all__ = [
    "CATE",
    "Assessment",
    "CausalCalibrator",
    "Comparison",
    "Histogram",
    "HonestyWarning",
    "Identity",
    "Isotonic",
    "Linear",
    "Loss",
    "OrthocalError",
    "OverlapWarning",
    "Platt",
    "QuadraticLoss",
    "assess",
    "compare",
    "load",
    "orthogonal_loss",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'orthocal' has no attribute {name!r}")
    return getattr(import_module(f"orthocal.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
