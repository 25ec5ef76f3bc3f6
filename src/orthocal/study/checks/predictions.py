"""Checks of a prediction, and of what a verdict found."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.bins_test import MOST_SKEW
from orthocal.assessment.parts import Check
from orthocal.assessment.status import BACKWARDS, RANKS
from orthocal.formats import estimate, number
from orthocal.study.checks.evidence import FAILED, WARNING, StudyEvidence, largest_correlation, passed, same_column
from orthocal.study.checks.leakage import SAME


def outcome_as_prediction(evidence: StudyEvidence, prediction: Floats, name: str) -> Check:
    """The prediction is one of effects, not the outcome itself."""
    _, found = largest_correlation(prediction[:, None], evidence.rows.outcome)
    title, figure = "outcome as prediction", f"correlation {found:.3f}"
    if found <= SAME:
        return passed(title, figure, "The prediction is not the outcome.")
    return Check(title, FAILED, figure, f"{name} is the outcome itself.", "Pass predicted effects.")


def prediction_among_covariates(evidence: StudyEvidence, prediction: Floats, name: str) -> Check | None:
    """The prediction is not among the covariates."""
    if not evidence.names:
        return None
    place, title = same_column(evidence.rows.covariates, prediction), "prediction among covariates"
    if place is None:
        return passed(title, f"{len(evidence.names)} columns", "No covariate is the prediction.")
    same = evidence.names[place]
    return Check(title, WARNING, same, f"{same} is {name} itself.", "Leave it out of the covariates.")


def possible(evidence: StudyEvidence, prediction: Floats, name: str) -> Check | None:
    """No prediction lies beyond what the limits of the outcome allow."""
    ends = _possible_range(evidence)
    if ends is None:
        return None
    low, high = ends
    outside = int(((prediction < low) | (prediction > high)).sum())
    figure = f"{outside:,} of {len(prediction):,} outside {number(low)} to {number(high)}"
    if outside == 0:
        return passed("possible values", figure, "Every prediction is possible.")
    worst = prediction[np.argmax(np.maximum(low - prediction, prediction - high))]
    sentence = f"Some values of {name} are impossible, such as {number(float(worst))}: the outcome has limits."
    advice = "Use method 'platt', which keeps to limits." if evidence.study.arms is None else ""
    return Check("possible values", WARNING, figure, sentence, advice)


def _possible_range(evidence: StudyEvidence) -> tuple[float, float] | None:
    """Return between which numbers an effect lies, from the limits of the outcome; None where these are not known."""
    own: tuple[float, float] | None = getattr(evidence.effect, "possible_range", None)
    if own is not None:
        return own
    limits, rule = evidence.study.limits, getattr(evidence.effect, "equivariance", None)
    if limits is None and np.isin(evidence.rows.outcome, (0.0, 1.0)).all():
        limits = (0.0, 1.0)
    if limits is None or rule is None or rule.power != 1 or evidence.rows.instrument is not None:
        return None
    low, high = limits
    return (low, high) if rule.moves == 1 else (low - high, high - low) if rule.moves == 0 else None


def ranking(verdict: Assessment) -> Check | None:
    """Those predicted to gain more do gain more, or at least not less."""
    if verdict.rate is None:
        return None
    figure = f"AUTOC {estimate(verdict.rate.autoc.value, verdict.rate.autoc.interval)}"
    if verdict.ranking == BACKWARDS:
        sentence = "The prediction ranks backwards: those predicted to gain most gain least."
        return Check("ranking", FAILED, figure, sentence, "Look for a flipped sign or swapped treatment labels.")
    words = "ranks" if verdict.ranking == RANKS else "does not rank backwards"
    return passed("ranking", figure, f"The prediction {words}.")


def skewness(verdict: Assessment) -> Check | None:
    """Residuals are not too skewed for the number of rows in a bin."""
    if verdict.is_constant:
        return None
    figure = f"{verdict.skewness:.2f}"
    if verdict.skewness <= MOST_SKEW:
        return passed("skewness", figure, "Residuals are not too skewed for the rows of a bin.")
    sentence = f"Residuals are strongly skewed for the rows of a bin (above {MOST_SKEW}): tests that need less of it are skipped."
    return Check("skewness", WARNING, figure, sentence, "Use fewer bins or more rows, or judge a bounded outcome.")
