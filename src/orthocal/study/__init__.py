"""The front door: a study binds a table, the part of each column, an effect, and nuisances learnt once."""

from orthocal.assessment.parts import Check
from orthocal.study.arms_assessment import ArmsAssessment
from orthocal.study.arms_calibration import ArmsCalibration
from orthocal.study.calibration import Calibration
from orthocal.study.choice import Choice
from orthocal.study.recommendation import Recommendation
from orthocal.study.study import Study

__all__ = [
    "ArmsAssessment",
    "ArmsCalibration",
    "Calibration",
    "Check",
    "Choice",
    "Recommendation",
    "Study",
]
