"""The verdict in words and in one word: what an assessment shows, never saying more than it supports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from orthocal.arrays import Booleans
from orthocal.assessment.parts import Sensitivity
from orthocal.assessment.records import Assessment, Comparison
from orthocal.formats import between, number, percent

MISSED = {
    "effect": "they miss the average effect of people with similar predictions by {}",
    "ratio": "they miss the ratio among people with similar predictions by {}",
    "probability": "the share of outcomes below them misses what it should be by {}",
    "score": "their mean score misses 0 by {}",
}
"""What an error means, by the unit of the residuals."""
SHARE = 0.25
"""Of 1 - level, that each test has beside the interval of the error, which has half. They overlap so much that together they
reject a calibrated prediction at most in 1 - level of all samples: measured in `tests/statistics/test_verdict.py`."""
IN_UNITS = {"probability": " in probability", "score": " in score"}
"""How sizes are followed up where they are not in units of the effect."""


def verdict(numbers: Mapping[str, Any]) -> str:
    """Return the verdict in two or three sentences, from the numbers of an assessment."""
    rejecting = rejections(numbers)
    error, interval = number(numbers["error"]), f"{percent(numbers['level'])} interval {between(numbers['interval'])}"
    if numbers["interval"][0] > 0:
        missed = MISSED.get(numbers["unit"], MISSED["score"]).format(error)
        first = f"The predictions are miscalibrated: {missed} ({interval})."
        return " ".join([first, _in_the_large(numbers), *_where(numbers), *_in_groups(numbers)])
    if rejecting:
        name, p_value = min(rejecting.items(), key=lambda pair: pair[1])
        first = f"There is evidence of miscalibration ({name} test, p = {p_value:.2g}), though the error may be small: {error}"
        return " ".join([f"{first} ({interval}).", _in_the_large(numbers), *_where(numbers), *_in_groups(numbers)])
    detectable = number(numbers["minimum_detectable_error"])
    first = (
        f"No miscalibration was detected: an error of {detectable} or more would have been seen with probability 0.8"
    )
    return " ".join([f"{first} (error {error}, {interval}).", *_in_groups(numbers)])


def is_detected(assessment: Assessment) -> bool:
    """Return whether an assessment shows miscalibration: by the interval of the error, or by one of the tests."""
    return assessment.interval[0] > 0 or bool(rejections(vars(assessment)))


def rejections(numbers: Mapping[str, Any]) -> dict[str, float]:
    """Return the p-values of the tests that reject at their share of the level."""
    alpha = SHARE * (1 - numbers["level"])
    return {name: t.p_value for name, t in numbers["tests"].items() if t.p_value is not None and t.p_value < alpha}


def sensitivity(interval: tuple[float, float]) -> Sensitivity:
    """Return how strong unmeasured confounding would have to be to overturn the verdict.

    A bias b(X) in the estimated effects moves every bin's mean by the mean of b there, hence the error by at most the root mean
    square of b given the prediction (mathematics 10.6).
    """
    low, high = interval
    if low > 0:
        shift = f"shifts the estimated effects by {number(low)} (root mean square)"
        text = f"Unmeasured confounding that {shift} could explain all of this error."
    else:
        hidden = f"if it shifts them by {number(high)}, an error of {number(2 * high)} would fit the data"
        text = f"Unmeasured confounding of the estimated effects could hide an error: {hidden}."
    return Sensitivity(low if low > 0 else high, text)


def story(before: Assessment, after: Assessment, comparison: Comparison) -> str:
    """Return what calibration did, in a sentence or two."""
    moved = "falls" if after.error < before.error else "does not fall"
    first = (
        f"Calibration: {comparison.verdict}. On rows the map never saw the error {moved} from {number(before.error)} to "
        f"{number(after.error)} ({percent(after.level)} interval {between(after.interval)})."
    )
    return " ".join([first, *_decision(comparison)])


def _where(numbers: Mapping[str, Any]) -> list[str]:
    """Name the end of the predictions where the simultaneous band leaves the diagonal."""
    bins = numbers["bins"]
    beyond = (bins["band_lower"] > 0) | (bins["band_upper"] < 0)
    if beyond.all() or not beyond.any():
        return []
    sign = np.sign(bins["residual"])
    words = {-1.0: "too high", 1.0: "too low"}
    found = []
    top = _run(beyond[::-1] & (sign[::-1] == sign[-1]))
    if top:
        gap = float(np.average(bins["residual"][-top:], weights=bins["mass"][-top:]))
        found.append(f"those above {number(bins['lower'][-top])} are {words[sign[-1]]} by {number(abs(gap))}")
    bottom = _run(beyond & (sign == sign[0]))
    if bottom:
        gap = float(np.average(bins["residual"][:bottom], weights=bins["mass"][:bottom]))
        found.append(f"those up to {number(bins['upper'][bottom - 1])} are {words[sign[0]]} by {number(abs(gap))}")
    text = " and ".join(found) + IN_UNITS.get(numbers["unit"], "")
    return [f"{text[0].upper()}{text[1:]}."] if found else []


def _run(flags: Booleans) -> int:
    """How many flags are set before the first that is not."""
    return int(np.argmin(flags)) if not flags.all() else len(flags)


def _in_groups(numbers: Mapping[str, Any]) -> list[str]:
    groups = [group for group in numbers["groups"] if group.p_value_adjusted is not None]
    if not groups:
        return []
    wrong = [g for g in groups if g.p_value_adjusted < 1 - numbers["level"]]
    if not wrong:
        return [f"In none of the {len(groups)} groups was miscalibration detected."]
    names = ", ".join(f"{g.column} = {g.level}" for g in wrong[:5])
    return [f"Miscalibrated in {len(wrong)} of {len(groups)} groups: {names}."]


def _decision(comparison: Comparison) -> list[str]:
    if comparison.decision is None:
        return []
    d = comparison.decision
    changed = f"At cost {number(d.cost)} it changes the decision for {d.share_flipped:.1%} of rows"
    return [f"{changed}, gaining {number(d.gain)} per row (interval {between(d.interval)})."]


def _in_the_large(numbers: Mapping[str, Any]) -> str:
    average = numbers["average"]
    low, high = average.excess_interval
    if low <= 0 <= high:
        return "On average they are right: the error lies in how they vary."
    word, ends = ("too high", (low, high)) if low > 0 else ("too low", (-high, -low))
    size = f"{number(abs(average.excess))}{IN_UNITS.get(numbers['unit'], '')}"
    return f"On average they are {word} by {size} (interval {between(ends)})."


GOOD, BAD, OPEN = "good", "bad", "open"
COARSE = {"probability": 0.1}
"""Errors larger than this must be visible, by unit, before silence means anything; else the predictions' own spread."""

Mark = tuple[str, str, str]
"""Tone, the word, and the sentences that go with it."""


def mark_of(assessment: Assessment) -> Mark:
    """Return the mark of one verdict."""
    if is_detected(assessment):
        return BAD, "Not believable", assessment.verdict
    if not can_tell(assessment):
        return OPEN, "Cannot tell", _too_small(assessment)
    return GOOD, "Believable", assessment.verdict


def mark_of_change(before: Assessment, after: Assessment | None, comparison: Comparison | None) -> Mark:
    """Return the mark of a calibration: of what was found before it, and on rows the map never saw after it.

    A map is fitted on few rows, so a sharp test may see how it misses; it is called fixed if it helped and what is left may be 0.
    """
    if after is None or comparison is None:
        tone, word, sentences = mark_of(before)
        return tone, word, f"{sentences} The calibrated prediction is not verified on unseen rows."
    change = story(before, after, comparison)
    harmed = comparison.verdict == "harmed"
    if not is_detected(before):
        tone, word, sentences = mark_of(before)
        return tone, word, f"{sentences}\n{change}{' Leave the predictions as they are.' if harmed else ''}"
    if harmed:
        return BAD, "Made worse: do not use the map", f"{change}\nAfter: {after.verdict}"
    helped = comparison.verdict == "improved" and after.interval[0] == 0
    if not helped and is_detected(after):
        return BAD, "Still wrong", f"{change}\nAfter: {after.verdict}"
    if not helped and not can_tell(after):
        return OPEN, "Cannot tell whether it is fixed", f"{_too_small(after)}\n{change}"
    return GOOD, "Fixed", f"Before: {before.verdict}\n{change}\nAfter: {after.verdict}"


def can_tell(assessment: Assessment) -> bool:
    """Return whether an error that matters would have been seen: else silence means nothing."""
    return assessment.minimum_detectable_error <= error_that_matters(assessment)


def error_that_matters(assessment: Assessment) -> float:
    """Return the spread of the predictions: an error as large leaves nothing of them. Some units have a size of their own.

    Predictions that do not vary are compared with their own size, and if that is 0 with the effects the data allow.
    """
    spread = float(np.std(assessment.predictions)) or float(np.abs(assessment.predictions).mean())
    return COARSE.get(assessment.unit, spread or max(abs(end) for end in assessment.average.interval))


def _too_small(assessment: Assessment) -> str:
    return (
        f"{assessment.rows:,} rows are too few: an error up to {number(assessment.minimum_detectable_error)} could have gone "
        f"unnoticed, and one of {number(error_that_matters(assessment))} would already matter. {assessment.verdict}"
    )
