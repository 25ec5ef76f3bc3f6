"""What to do with a prediction: the first rule that applies, each with the figures it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.audit_records import Audit
from orthocal.assessment.parts import Average, Check
from orthocal.assessment.sentences import IN_UNITS
from orthocal.assessment.status import BACKWARDS, CALIBRATED, MISCALIBRATED, RANKS, is_within
from orthocal.formats import between, estimate, number, whole

DO_NOT_USE = "do not use it"
USE_PREDICTION = "use the prediction"
USE_CALIBRATED = "use the calibrated prediction"
USE_AVERAGE = "use the average effect"
COLLECT = "collect more data"
HOLD_OUT = "hold rows out"
WORTH_HALF_A_SQUARE = ("effect", "ratio")
"""Units in which a mean loss is half a mean square, so that a tolerance says what gain of it would matter."""


@dataclass(frozen=True)
class Recommendation:
    """What to do with a prediction, and why.

    Parameters
    ----------
    action : str
        "use the prediction", "use the calibrated prediction", "use the average effect", "do not use it", "collect more data" or
        "hold rows out".
    reasons : tuple of str
        Sentences, each with its figure.
    rows_needed : int or None
        About how many rows in all should be enough to decide; only where more are recommended.

    Examples
    --------
    >>> print(Recommendation("use the prediction", ("It is calibrated.",)))
    Use the prediction. It is calibrated.
    """

    action: str
    reasons: tuple[str, ...]
    rows_needed: int | None = None

    def __str__(self) -> str:
        return " ".join([f"{self.action[0].upper()}{self.action[1:]}.", *self.reasons])


class Found(NamedTuple):
    """All that a recommendation rests on.

    Comparisons with the average effect, of the prediction and of the calibrated one, are losses minus its loss; None, as `after`
    and `comparison`, where no rows were held out. `share` of the rows were judged. Audits are of subgroups, where some are named.
    """

    checks: Sequence[Check]
    before: Assessment
    after: Assessment | None = None
    comparison: Comparison | None = None
    prediction_over_average: Comparison | None = None
    calibrated_over_average: Comparison | None = None
    average: float = 0.0
    share: float = 1.0
    audit_before: Audit | None = None
    audit_after: Audit | None = None


def recommend(found: Found) -> Recommendation:
    """Return the first recommendation that applies."""
    return next(one for one in _rules(found) if one is not None)


def _rules(found: Found) -> Iterator[Recommendation | None]:
    yield _do_not_use(found)
    yield _use_prediction(found)
    yield _hold_out(found)
    yield _use_calibrated(found)
    yield _use_average(found)
    yield _collect(found)


def _do_not_use(found: Found) -> Recommendation | None:
    failed = [check for check in found.checks if check.result == "failed"]
    reasons = [f"{check.sentence} {check.advice}".strip() for check in failed]
    rate = found.before.rate
    if found.before.ranking == BACKWARDS and rate is not None and not any(check.name == "ranking" for check in failed):
        autoc = estimate(rate.autoc.value, rate.autoc.interval)
        reasons.append(f"It ranks backwards, AUTOC {autoc}: those predicted to gain most gain least.")
    return Recommendation(DO_NOT_USE, tuple(dict.fromkeys(reasons))) if reasons else None


def _use_prediction(found: Found) -> Recommendation | None:
    if found.before.status != CALIBRATED or (found.audit_before is not None and found.audit_before.found):
        return None
    return Recommendation(USE_PREDICTION, (_within(found.before, "It"), *_in_groups(found.audit_before, "")))


def _hold_out(found: Found) -> Recommendation | None:
    if found.after is not None:
        return None
    return Recommendation(HOLD_OUT, ("Nothing can be said about the map without rows that it never saw.",))


def _use_calibrated(found: Found) -> Recommendation | None:
    after, change, gain = found.after, found.comparison, found.calibrated_over_average
    if after is None or change is None or gain is None or after.is_constant:
        return None
    within = after.status == CALIBRATED or is_within(vars(after))  # what is detected need not matter
    best = after.status != MISCALIBRATED and change.verdict == "improved"  # nor need what cannot be ruled out
    if change.verdict == "harmed" or not gain.interval[1] < 0 or not (within or best):
        return None
    first = _within(after, "After calibration it") if within else _undetected(after, change)
    groups = (*_in_groups(found.audit_before, "Before, "), *_in_groups(found.audit_after, "After, "))
    return Recommendation(USE_CALIBRATED, (first, _beats(gain, found.average), *groups))


def _use_average(found: Found) -> Recommendation | None:
    gains = _gains_over_average(found)
    least = gain_that_matters(found.before)
    if (
        found.after is None
        or least is None
        or any(gain.interval[1] < 0 or gain.interval[0] < -least for gain in gains.values())
    ):
        return None
    best = min(gains.values(), key=lambda gain: gain.risk_difference)
    neither = "Neither the prediction nor its calibration beats" if len(gains) > 1 else "The prediction does not beat"
    whose = "the mean loss of the better one" if len(gains) > 1 else "its mean loss"
    first = (
        f"{neither} a constant effect for everyone ({number(found.average)}, from the rows that maps are fitted on): {whose} is "
        f"{less_or_more(best)}, and a gain of {number(least)} (half the squared tolerance) is ruled out."
    )
    order = ("The prediction still ranks people by how much they gain: use it to rank.",)
    return Recommendation(USE_AVERAGE, (first, *(order if found.before.ranking == RANKS else ())))


def _collect(found: Found) -> Recommendation:
    last = found.after or found.before
    needed = [rows for rows in (last.rows_needed, _rows_to_decide(found)) if rows is not None]
    rows = int(max(needed) / found.share) if needed and max(needed) > last.rows else None
    enough = "" if rows is None else f" About {whole(rows)} rows in all should be enough to decide."
    gain = _gains_over_average(found).get("calibrated")
    reasons = [_open(found) + enough]
    if gain is not None and gain.interval[1] >= 0:
        reasons.append(
            f"Against the average effect for everyone, {number(found.average)}, the mean loss is {less_or_more(gain)}."
        )
    return Recommendation(COLLECT, tuple(reasons), rows)


def _open(found: Found) -> str:
    last, name = found.after or found.before, "calibrated prediction" if found.after else "prediction"
    name = f"{name}, one number for everyone," if last.is_constant else name
    tolerance = number(last.tolerance)
    if last.status == CALIBRATED:
        return (
            f"The {name} is within the tolerance of {tolerance}, but it is not clearly better than the average effect."
        )
    if last.rows_needed is not None or last.is_constant:
        high = number(last.interval[1])
        return f"The {name} may still be off by up to {high}, more than the tolerance of {tolerance}."
    return f"After calibration, miscalibration is still detected. {last.verdict}"


def with_average_of_all(recommendation: Recommendation, average: Average) -> Recommendation:
    """Return a recommendation that says first what the average effect of all rows is."""
    whole = f"Over all rows it is {estimate(average.effect, average.interval)}."
    return replace(recommendation, reasons=(whole, *recommendation.reasons))


def gain_that_matters(before: Assessment) -> float | None:
    """Return the gain in mean loss that a mean squared error of the squared tolerance is; None in other units."""
    return before.mass * before.tolerance**2 / 2 if before.unit in WORTH_HALF_A_SQUARE else None


def _gains_over_average(found: Found) -> dict[str, Comparison]:
    """Return what prediction and calibrated prediction lose beyond the average effect; a constant map is that effect."""
    named = {"prediction": found.prediction_over_average, "calibrated": found.calibrated_over_average}
    if found.after is not None and found.after.is_constant:
        del named["calibrated"]
    return {name: gain for name, gain in named.items() if gain is not None}


def _rows_to_decide(found: Found) -> int | None:
    """Return at how many judged rows the interval of the gain over the average would be as short as a gain that matters."""
    gain, least = found.calibrated_over_average, gain_that_matters(found.before)
    if gain is None or least is None or not least > 0:
        return None
    reach = gain.interval[1] - gain.risk_difference
    return int(found.before.rows * max((reach / least) ** 2, 1.0))


def _within(assessment: Assessment, name: str) -> str:
    size = estimate(assessment.error, assessment.interval)
    tolerance = f"{number(assessment.tolerance)}{IN_UNITS.get(assessment.unit, '')}"
    if assessment.status == CALIBRATED:
        return f"{name} is calibrated within the tolerance of {tolerance}: the error is {size}."
    return f"{name} is off by {size}, which was detected but lies within the tolerance of {tolerance}."


def _in_groups(audit: Audit | None, when: str) -> tuple[str, ...]:
    """Say what an audit of subgroups found, and the most surprising of it; nothing where none was made."""
    if audit is None:
        return ()
    sentence = f"{when}{audit.headline[0].lower()}{audit.headline[1:]}" if when else audit.headline
    return (sentence, *(f"The clearest: {cell}." for cell in audit.found[:1]))


def _beats(gain: Comparison, average: float) -> str:
    return f"It beats the average effect for everyone, {number(average)}: the mean loss is {less_or_more(gain)}."


def _undetected(after: Assessment, change: Comparison) -> str:
    size = estimate(after.error, after.interval)
    return (
        f"After calibration no miscalibration was detected in it: the error is {size}, beside a tolerance of "
        f"{number(after.tolerance)}. The mean loss is {less_or_more(change)} than before."
    )


def less_or_more(gain: Comparison) -> str:
    """Say how much less or more is lost, with its interval."""
    low, high = gain.interval
    if gain.risk_difference < 0:
        return f"{number(-gain.risk_difference)} less (interval {between((-high, -low))})"
    return f"{number(gain.risk_difference)} more (interval {between((low, high))})"
