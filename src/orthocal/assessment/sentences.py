"""A verdict in words, never saying more than its numbers support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from orthocal.arrays import Booleans
from orthocal.assessment.records import Assessment, Comparison
from orthocal.assessment.status import CALIBRATED, INCONCLUSIVE, SHARE, is_rejected, rejected_subgroups, rejections
from orthocal.formats import between, number, off_by, percent, whole

MISSED = {
    "effect": "they miss the average effect of people with similar predictions by {}",
    "ratio": "they miss the ratio among people with similar predictions by {}",
    "probability": "the share of outcomes below them misses what it should be by {}",
    "score": "their mean score misses 0 by {}",
}
"""What an error means, by the unit of the residuals."""
IN_UNITS = {"probability": " in probability", "score": " in score"}
"""How sizes are followed up where they are not in units of the effect."""
NAMED = 5
"""Subgroups that are named before the rest is only counted."""


def verdict(numbers: Mapping[str, Any]) -> str:
    """Return the verdict in a few sentences, from the numbers of an assessment."""
    return " ".join(filter(None, [*_same_for_everyone(numbers), *_by_status(numbers)]))


def _by_status(numbers: Mapping[str, Any]) -> list[str]:
    size = f"{number(numbers['error'])} ({percent(numbers['level'])} interval {between(numbers['interval'])})"
    tolerance = f"the tolerance of {number(numbers['tolerance'])}{IN_UNITS.get(numbers['unit'], '')}"
    if numbers["status"] == CALIBRATED:
        return [_calibrated(numbers, size, tolerance), *_in_subgroups(numbers)]
    if numbers["status"] == INCONCLUSIVE:
        return [_inconclusive(numbers, tolerance), *_in_subgroups(numbers)]
    words = [_miscalibrated(numbers, size)]
    if numbers["interval"][1] <= numbers["tolerance"]:
        words.append(f"That is within {tolerance}.")
    if numbers["interval"][0] > 0 or rejections(numbers):
        words += [_in_the_large(numbers), *_where(numbers), *_in_subgroups(numbers)]
    return words


def _same_for_everyone(numbers: Mapping[str, Any]) -> list[str]:
    if not numbers["is_constant"]:
        return []
    average = numbers["average"]
    effect = f"the average effect is {number(average.effect)} (interval {between(average.interval)})"
    return [f"The prediction is the same for everyone, {number(average.prediction)}; {effect}."]


def _calibrated(numbers: Mapping[str, Any], size: str, tolerance: str) -> str:
    if not is_rejected(numbers):
        return f"The predictions are calibrated within {tolerance}: the error is {size}."
    seen = f"an error was detected, {size}, but it is less than a tenth of {tolerance}"
    return f"The predictions are calibrated in practice: {seen}."


def _miscalibrated(numbers: Mapping[str, Any], size: str) -> str:
    if numbers["interval"][0] > 0:
        return f"The predictions are miscalibrated: {MISSED.get(numbers['unit'], MISSED['score']).format(size)}."
    rejecting = rejections(numbers)
    if rejecting:
        name, p_value = min(rejecting.items(), key=lambda pair: pair[1])
        return f"The predictions are miscalibrated ({name} test, p = {p_value:.2g}); the error's size is less certain: {size}."
    return f"The predictions are miscalibrated in {_named(numbers)}. Over all rows no error was detected: {size}."


def _inconclusive(numbers: Mapping[str, Any], tolerance: str) -> str:
    unseen = f"an error up to {number(numbers['interval'][1])} could have gone unnoticed, more than {tolerance}"
    rows = numbers["rows_needed"]
    more = "" if rows is None else f" If there is no error, about {whole(rows)} rows would show it."
    return f"Inconclusive: no miscalibration was detected, but {unseen}.{more}"


def _in_subgroups(numbers: Mapping[str, Any]) -> list[str]:
    tested = [group for group in numbers["subgroups"] if group.p_value_adjusted is not None]
    if not tested:
        return []
    if rejected_subgroups(numbers):
        within = numbers["status"] == CALIBRATED
        named = _named(numbers)
        return [f"In {named} an error was detected, within the tolerance." if within else f"Miscalibrated in {named}."]
    where = "the subgroup" if len(tested) == 1 else f"any of {len(tested)} subgroups"
    return [
        f"No miscalibration was detected in {where} (adjusted p-values of {SHARE * (1 - numbers['level']):.2g} or more)."
    ]


def _named(numbers: Mapping[str, Any]) -> str:
    """Name the subgroups that are miscalibrated, and say of how many."""
    wrong = rejected_subgroups(numbers)
    tested = [group for group in numbers["subgroups"] if group.p_value_adjusted is not None]
    names = ", ".join(f"{group.column} = {group.value}" for group in wrong[:NAMED])
    more = f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    return f"{len(wrong)} of {len(tested)} subgroups ({names}{more})"


def _in_the_large(numbers: Mapping[str, Any]) -> str:
    average = numbers["average"]
    low, high = average.excess_interval
    found = off_by(average.excess, average.excess_interval, IN_UNITS.get(numbers["unit"], ""))
    if low <= 0 <= high:
        return (
            ""
            if numbers["is_constant"]
            else f"On average no error was detected: {found}. The error is in how they vary."
        )
    return f"On average they are {found}."


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


def story(before: Assessment, after: Assessment, comparison: Comparison) -> str:
    """Return what calibration did, in a sentence or two."""
    first = f"Calibration: {comparison.verdict}. On rows the map never saw {_moved(before, after)}."
    return " ".join([first, *decision_in_words(comparison)])


def _moved(before: Assessment, after: Assessment) -> str:
    """Say how the error moved, as far as it can be told from 0."""
    end = f"({percent(after.level)} interval {between(after.interval)})"
    if before.error == after.error == 0:
        return f"the error is not distinguishable from 0, before and after {end}"
    if after.error == 0:
        return f"the error falls from {number(before.error)} to a value not distinguishable from 0 {end}"
    if before.error == 0:
        return f"the error, not distinguishable from 0 before, is {number(after.error)} after {end}"
    if after.error == before.error:
        return f"the error stays {number(after.error)} {end}"
    moved = "falls" if after.error < before.error else "rises"
    return f"the error {moved} from {number(before.error)} to {number(after.error)} {end}"


def decision_in_words(comparison: Comparison) -> list[str]:
    """Say what a change of predictions changes at a cost, if there is one."""
    if comparison.decision is None:
        return []
    d = comparison.decision
    changed = f"At cost {number(d.cost)} it changes the decision for {d.share_flipped:.1%} of rows"
    if d.share_flipped == 0:
        return [f"At cost {number(d.cost)} it changes no decision."]
    low, high = d.interval
    verb, ends = ("gaining", (low, high)) if d.gain >= 0 else ("losing", (-high, -low))
    return [f"{changed}, {verb} {number(abs(d.gain))} per row (interval {between(ends)})."]
