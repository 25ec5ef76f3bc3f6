"""What stands on top of a report: the few figures that matter most, and what was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orthocal.assessment import Assessment
from orthocal.assessment.parts import Check
from orthocal.assessment.status import BACKWARDS, CALIBRATED, INCONCLUSIVE, MISCALIBRATED, RANKS, UNRANKED
from orthocal.formats import between, estimate, number, percent
from orthocal.reporting.page.document import Cards, Marked
from orthocal.study import ArmsCalibration, Calibration
from orthocal.study.recommendation import (
    COLLECT,
    DO_NOT_USE,
    HOLD_OUT,
    USE_AVERAGE,
    USE_CALIBRATED,
    USE_PREDICTION,
)

TONES = {
    CALIBRATED: "good",
    MISCALIBRATED: "bad",
    INCONCLUSIVE: "open",
    USE_PREDICTION: "good",
    USE_CALIBRATED: "good",
    USE_AVERAGE: "good",
    DO_NOT_USE: "bad",
    COLLECT: "open",
    HOLD_OUT: "open",
    RANKS: "good",
    UNRANKED: "open",
    BACKWARDS: "bad",
    "passed": "good",
    "warning": "open",
    "failed": "bad",
}
"""How statuses, recommendations, rankings and results of checks are coloured."""
RESULTS = ("failed", "warning", "passed")
"""Of checks, those first that matter most."""
Card = tuple[str, str, str, str]
"""Tone, name, figure and what to make of it."""


def capital(text: str) -> str:
    """Return a text that begins with a capital."""
    return f"{text[0].upper()}{text[1:]}"


def verdict_cards(verdict: Assessment) -> Cards:
    """Return the main figures of a verdict."""
    error = (TONES[verdict.status], "Calibration error", number(verdict.error), _interval(verdict))
    average = ("plain", "Average effect", number(verdict.average.effect), f"{between(verdict.average.interval)}")
    return Cards(
        (error, _tolerance(verdict), average, *_ranking(verdict), *_rows(verdict), *checks_cards(verdict.checks))
    )


def calibration_cards(done: Calibration) -> Cards:
    """Return the main figures of a calibration."""
    before, after = done.before, done.after
    cards = [(TONES[before.status], "Before calibration", capital(before.status), _error(before))]
    if after is None:
        cards.append(("open", "After calibration", "Not verified", "no rows were held out"))
    else:
        cards.append((TONES[after.status], "After calibration", capital(after.status), _error(after)))
    return Cards((*cards, _tolerance(before), *_ranking(after or before), *_rows(before), *checks_cards(done.checks)))


def arms_cards(done: ArmsCalibration) -> Cards:
    """Return the main figures of a calibration of several arms: those of all contrasts together."""
    before, after = done.before, done.after
    cards = [(TONES[before.status], "Before calibration", capital(before.status), "all contrasts together")]
    if after is None:
        cards.append(("open", "After calibration", "Not verified", "no rows were held out"))
    else:
        cards.append((TONES[after.status], "After calibration", capital(after.status), "all contrasts together"))
    first = next(iter(before.contrasts.values()))
    return Cards((*cards, *_rows(first), *checks_cards(done.checks)))


def _error(verdict: Assessment) -> str:
    return f"error {estimate(verdict.error, verdict.interval)}"


def _interval(verdict: Assessment) -> str:
    return f"{percent(verdict.level)} interval {between(verdict.interval)}"


def _tolerance(verdict: Assessment) -> Card:
    return ("plain", "Tolerance", number(verdict.tolerance), "an error this large would matter")


def _ranking(verdict: Assessment) -> Iterator[Card]:
    if verdict.rate is not None and verdict.ranking is not None:
        autoc = estimate(verdict.rate.autoc.value, verdict.rate.autoc.interval)
        yield (TONES[verdict.ranking], "Ranking", RANKING_IN_SHORT[verdict.ranking], f"AUTOC {autoc}")


RANKING_IN_SHORT = {RANKS: "Ranks", UNRANKED: "No evidence", BACKWARDS: "Backwards"}


def _rows(verdict: Assessment) -> Iterator[Card]:
    yield ("plain", "Rows judged", f"{verdict.rows:,}", f"{percent(verdict.level)} intervals in brackets")


def checks_cards(checks: Sequence[Check]) -> Iterator[Card]:
    """Yield how many checks had which result, where there were any."""
    if checks:
        counts = Counter(check.result for check in checks)
        worst = next(result for result in RESULTS if counts[result])
        others = ", ".join(f"{counts[result]} {result}" for result in RESULTS if counts[result] and result != worst)
        yield (TONES[worst], "Checks", f"{counts[worst]} {worst}", others)


def checks_marks(checks: Sequence[Check]) -> list[Marked]:
    """Return the checks that did not pass, in words."""
    found = sorted((check for check in checks if check.result != "passed"), key=lambda one: RESULTS.index(one.result))
    marks = tuple((TONES[one.result], f"{capital(one.result)}: {one.name}.", _in_words(one)) for one in found)
    return [Marked(marks)] if marks else []


def _in_words(check: Check) -> str:
    return " ".join(filter(None, [check.sentence, check.advice]))
