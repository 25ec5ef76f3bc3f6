"""Sensitivity to unmeasured confounding: what could be true if something that matters was not measured."""

from orthocal.sensitivity.records import Benchmark, MarginalBounds, Sensitivity

__all__ = ["Benchmark", "MarginalBounds", "Sensitivity"]
