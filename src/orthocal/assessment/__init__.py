"""Assessment: the verdict on one prediction under one loss, and on two."""

from orthocal.assessment.assess import assess
from orthocal.assessment.compare import compare
from orthocal.assessment.records import Assessment, Average, Comparison, TestResult

__all__ = ["Assessment", "Average", "Comparison", "TestResult", "assess", "compare"]
