"""What to do with predictions of several arms: the first rule that applies to all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orthocal.assessment import Comparison
from orthocal.assessment.parts import Check
from orthocal.assessment.status import BACKWARDS, CALIBRATED, MISCALIBRATED, is_within
from orthocal.formats import estimate, number
from orthocal.study.arms_assessment import ArmsAssessment, contrast_name
from orthocal.study.recommendation import (
    COLLECT,
    DO_NOT_USE,
    HOLD_OUT,
    USE_AVERAGE,
    USE_CALIBRATED,
    USE_PREDICTION,
    Recommendation,
    gain_that_matters,
    less_or_more,
)


class ArmsFound(NamedTuple):
    """All that a recommendation for several arms rests on; None where no rows were held out."""

    checks: Sequence[Check]
    before: ArmsAssessment
    after: ArmsAssessment | None = None
    comparison: Comparison | None = None
    prediction_over_average: Comparison | None = None
    calibrated_over_average: Comparison | None = None


def recommend_for_arms(found: ArmsFound) -> Recommendation:
    """Return the first recommendation that applies to all arms together."""
    return next(one for one in _rules(found) if one is not None)


def _rules(found: ArmsFound) -> Iterator[Recommendation | None]:
    yield _do_not_use(found)
    if found.before.status == CALIBRATED:
        yield Recommendation(USE_PREDICTION, (_largest_error(found.before, "Every contrast"),))
    if found.after is None:
        yield Recommendation(HOLD_OUT, ("Nothing can be said about the map without rows that it never saw.",))
    yield _use_calibrated(found)
    yield _use_average(found)
    yield _collect(found)


def _do_not_use(found: ArmsFound) -> Recommendation | None:
    failed = [f"{check.sentence} {check.advice}".strip() for check in found.checks if check.result == "failed"]
    control = found.before.arms[0]
    for arm in found.before.arms[1:]:
        verdict = found.before.of(arm)
        if verdict.ranking == BACKWARDS and verdict.rate is not None:
            autoc = estimate(verdict.rate.autoc.value, verdict.rate.autoc.interval)
            name = contrast_name(arm, control)
            failed.append(f"{name} ranks backwards, AUTOC {autoc}: those predicted to gain most gain least.")
    return Recommendation(DO_NOT_USE, tuple(dict.fromkeys(failed))) if failed else None


def _use_calibrated(found: ArmsFound) -> Recommendation | None:
    after, change, gain = found.after, found.comparison, found.calibrated_over_average
    if after is None or change is None or gain is None:
        return None
    within = after.status == CALIBRATED or all(is_within(vars(one)) for one in after.contrasts.values())
    best = after.status != MISCALIBRATED and change.verdict == "improved"
    if change.verdict == "harmed" or not gain.interval[1] < 0 or not (within or best):
        return None
    first = (
        _largest_error(after, "After calibration every contrast")
        if within
        else _largest_error(after, "After calibration no contrast", "shows an error")
    )
    return Recommendation(
        USE_CALIBRATED,
        (first, f"It beats the average effect of each arm for everyone: the mean loss is {less_or_more(gain)}."),
    )


def _use_average(found: ArmsFound) -> Recommendation | None:
    gains = [gain for gain in (found.prediction_over_average, found.calibrated_over_average) if gain is not None]
    least = [gain_that_matters(found.before.of(arm)) for arm in found.before.arms[1:]]
    matters = sum(one for one in least if one is not None)
    if not gains or any(gain.interval[1] < 0 or gain.interval[0] < -matters for gain in gains):
        return None
    best = min(gains, key=lambda gain: gain.risk_difference)
    why = (
        "Neither the predictions nor their calibration beat the average effect of each arm for everyone: the mean loss is "
        f"{less_or_more(best)}, and a gain of {number(matters)} (half the squared tolerances) is ruled out."
    )
    return Recommendation(USE_AVERAGE, (why,))


def _collect(found: ArmsFound) -> Recommendation:
    last = found.after or found.before
    needed = [one.rows_needed for one in last.contrasts.values() if one.rows_needed is not None]
    subject = "Every contrast" if last.status == CALIBRATED else "Not every contrast"
    gain = found.calibrated_over_average
    more = (
        []
        if gain is None
        else [f"Against the average effect of each arm for everyone, the mean loss is {less_or_more(gain)}."]
    )
    return Recommendation(COLLECT, (_largest_error(last, subject), *more), max(needed, default=None))


def _largest_error(
    verdict: ArmsAssessment, subject: str, predicate: str = "is shown to be within its tolerance"
) -> str:
    """Say how all contrasts stand, by the one whose error is largest beside its tolerance."""
    worst = verdict.contrasts[verdict.worst]
    error = f"an error of {estimate(worst.error, worst.interval)} beside a tolerance of {number(worst.tolerance)}"
    return f"{subject} {predicate}: the largest for its tolerance is {verdict.worst}, with {error}."
