"""Checks of a prediction, and of what a verdict found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.bins_test import MOST_SKEW
from orthocal.assessment.parts import Check
from orthocal.assessment.status import BACKWARDS, RANKS
from orthocal.formats import estimate, number
from orthocal.study.checks.evidence import FAILED, WARNING, StudyEvidence, passed
from orthocal.study.checks.leakage import SAME
from orthocal.study.checks.sums import PredictionSums, correlation_of

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition


class Predicted(NamedTuple):
    """A prediction: of the rows at hand, and what is known of it in all."""

    values: Floats
    name: str
    sums: PredictionSums


def predicted_by(evidence: StudyEvidence, values: Floats, name: str, sums: PredictionSums | None = None) -> Predicted:
    """Return a prediction with what is known of it; of the rows at hand where no more is."""
    if sums is None:
        sums = PredictionSums.of(evidence.rows, values, assumed_range(evidence.study, evidence.effect))
    return Predicted(values, name, sums)


def outcome_as_prediction(evidence: StudyEvidence, predicted: Predicted) -> Check:
    """The prediction is one of effects, not the outcome itself."""
    del evidence
    found = correlation_of(predicted.sums.likeness)
    title, figure = "outcome as prediction", f"correlation {found:.3f}"
    if found <= SAME:
        return passed(title, figure, "The prediction is not the outcome.")
    return Check(title, FAILED, figure, f"{predicted.name} is the outcome itself.", "Pass predicted effects.")


def prediction_among_covariates(evidence: StudyEvidence, predicted: Predicted) -> Check | None:
    """The prediction is not among the covariates."""
    if not evidence.names:
        return None
    place, title = predicted.sums.same, "prediction among covariates"
    if place is None:
        return passed(title, f"{len(evidence.names)} columns", "No covariate is the prediction.")
    same = evidence.names[place]
    return Check(title, WARNING, same, f"{same} is {predicted.name} itself.", "Leave it out of the covariates.")


def possible(evidence: StudyEvidence, predicted: Predicted) -> Check | None:
    """No prediction lies beyond what the limits of the outcome allow."""
    study, sums = evidence.study, predicted.sums
    ends, outside = assumed_range(study, evidence.effect), sums.outside
    known = sums.is_binary or study.limits is not None or getattr(evidence.effect, "possible_range", None) is not None
    if ends is None or outside is None or not known:
        return None
    figure = f"{outside.rows:,} of {sums.rows:,} outside {number(ends[0])} to {number(ends[1])}"
    if outside.rows == 0:
        return passed("possible values", figure, "Every prediction is possible.")
    sentence = (
        f"Some values of {predicted.name} are impossible, such as {number(outside.worst)}: the outcome has limits."
    )
    advice = "Use method 'platt', which keeps to limits." if study.arms is None else ""
    return Check("possible values", WARNING, figure, sentence, advice)


def assumed_range(study: StudyDefinition, effect: Any) -> tuple[float, float] | None:
    """Return between which numbers an effect lies, if the outcome has the study's limits, or those of a binary one."""
    own: tuple[float, float] | None = getattr(effect, "possible_range", None)
    if own is not None:
        return own
    rule = getattr(effect, "equivariance", None)
    if rule is None or rule.power != 1 or study.instrument is not None:
        return None
    low, high = (0.0, 1.0) if study.limits is None else study.limits
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
