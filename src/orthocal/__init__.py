"""orthocal: can this model of causal effects be believed, and if not, can it be fixed?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orthocal.assessment import Assessment, Comparison, assess, compare
    from orthocal.calibration import CausalCalibrator
    from orthocal.calibrators import Auto, Constant, Histogram, Identity, Isotonic, Linear, Platt, Shift, Spline
    from orthocal.cross_model import CrossCalibratedModel
    from orthocal.effects import (
        CATE,
        CATT,
        LATE,
        CausalDerivative,
        CVaRUnderTreatment,
        ExpectileUnderTreatment,
        OverlapCATE,
        PseudoOutcome,
        QuantileUnderTreatment,
        RelativeEffect,
    )
    from orthocal.errors import HonestyWarning, OrthocalError, OverlapWarning, SkewWarning
    from orthocal.export import to_python, to_sql
    from orthocal.losses import ExpectileLoss, HingeLoss, Loss, QuadraticLoss
    from orthocal.mapfile import load, save
    from orthocal.orthogonal import orthogonal_loss
    from orthocal.orthogonality import Population, check_orthogonality
    from orthocal.page import report

__version__ = "0.1.0"

_HOMES = {
    "Assessment": "assessment",
    "Auto": "calibrators",
    "CATE": "effects",
    "CATT": "effects",
    "CVaRUnderTreatment": "effects",
    "CausalCalibrator": "calibration",
    "CausalDerivative": "effects",
    "Comparison": "assessment",
    "Constant": "calibrators",
    "CrossCalibratedModel": "cross_model",
    "ExpectileLoss": "losses",
    "ExpectileUnderTreatment": "effects",
    "HingeLoss": "losses",
    "Histogram": "calibrators",
    "HonestyWarning": "errors",
    "Identity": "calibrators",
    "Isotonic": "calibrators",
    "LATE": "effects",
    "Linear": "calibrators",
    "Loss": "losses",
    "OrthocalError": "errors",
    "OverlapCATE": "effects",
    "OverlapWarning": "errors",
    "Platt": "calibrators",
    "Population": "orthogonality",
    "PseudoOutcome": "effects",
    "QuadraticLoss": "losses",
    "QuantileUnderTreatment": "effects",
    "RelativeEffect": "effects",
    "Shift": "calibrators",
    "SkewWarning": "errors",
    "Spline": "calibrators",
    "assess": "assessment",
    "check_orthogonality": "orthogonality",
    "compare": "assessment",
    "load": "mapfile",
    "orthogonal_loss": "orthogonal",
    "report": "page",
    "save": "mapfile",
    "to_python": "export",
    "to_sql": "export",
}

__all__ = [
    "CATE",
    "CATT",
    "LATE",
    "Assessment",
    "Auto",
    "CVaRUnderTreatment",
    "CausalCalibrator",
    "CausalDerivative",
    "Comparison",
    "Constant",
    "CrossCalibratedModel",
    "ExpectileLoss",
    "ExpectileUnderTreatment",
    "HingeLoss",
    "Histogram",
    "HonestyWarning",
    "Identity",
    "Isotonic",
    "Linear",
    "Loss",
    "OrthocalError",
    "OverlapCATE",
    "OverlapWarning",
    "Platt",
    "Population",
    "PseudoOutcome",
    "QuadraticLoss",
    "QuantileUnderTreatment",
    "RelativeEffect",
    "Shift",
    "SkewWarning",
    "Spline",
    "assess",
    "check_orthogonality",
    "compare",
    "load",
    "orthogonal_loss",
    "report",
    "save",
    "to_python",
    "to_sql",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'orthocal' has no attribute {name!r}")
    return getattr(import_module(f"orthocal.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
