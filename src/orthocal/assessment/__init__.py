"""Assessment: the verdict on one prediction under one loss, and on two."""

from orthocal.assessment.assess import assess
from orthocal.assessment.compare import compare
from orthocal.assessment.parts import Average, TestResult
from orthocal.assessment.records import Assessment, Comparison

__all__ = ["Assessment", "Average", "Comparison", "TestResult", "assess", "compare"]
