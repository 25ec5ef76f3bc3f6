"""Verdicts as text."""

from __future__ import annotations

from orthocal.assessment.records import Assessment
from orthocal.reporting.figures import Figure, figures_of

WIDEST = 32
"""Characters of a column, beyond which one line may stick out."""


def summary(assessment: Assessment) -> str:
    """Return the verdict and the figures behind it as text."""
    return f"{assessment.verdict}\n\n{as_text(figures_of(assessment))}"


def as_text(figures: list[Figure]) -> str:
    """Return figures as lines, in aligned columns."""
    names, numbers = (max(len(line[k]) for line in figures if len(line[k]) <= WIDEST) for k in (0, 1))
    return "\n".join(f"{line.name:<{names}}  {line.figure:<{numbers}}  {line.meaning}".rstrip() for line in figures)
