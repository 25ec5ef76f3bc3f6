"""Calibration: from rows and an effect to a map, by scheme; and models trained, calibrated and asked for their predictions."""

from orthocal.calibration.causal_calibrator import CausalCalibrator
from orthocal.calibration.cross_calibrated_model import CrossCalibratedModel

__all__ = ["CausalCalibrator", "CrossCalibratedModel"]
