"""A choice among models in sentences, each with its figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orthocal.assessment.rivals import Rival
from orthocal.formats import estimate, number, percent, whole

if TYPE_CHECKING:
    from orthocal.study.choice import Choice

AVERAGE, NO_EFFECT = "average effect", "no effect"
"""Names of the rivals that are one number for everyone."""
NAMED = 5
"""Rivals that are named before the rest is only counted."""


def calibrated_name(model: str) -> str:
    """Return the name of a model's calibrated prediction."""
    return f"{model}, calibrated"


def verdict_on(choice: Choice) -> Iterator[str]:
    """Yield which rival is best, which cannot be distinguished from it, what that means, and what decisions by it are worth."""
    best, *others = choice.rivals
    yield _best(best)
    yield _apart([rival for rival in others if rival.is_in_set], percent(choice.level))
    yield from _against_constants(choice)
    yield from _calibration(best)
    yield from _decisions(choice, best)
    failed = ", ".join(check.name for check in choice.checks if check.result == "failed")
    if failed:
        yield f"Do not rely on this before the failed check is resolved: {failed}."


def _best(best: Rival) -> str:
    if best.name == AVERAGE:
        return "The average effect has the lowest mean loss."
    loss = best.relative_loss
    less = estimate(-loss.value, (-loss.interval[1], -loss.interval[0]))
    return f"{_subject(best)} has the lowest mean loss, {less} below that of the average effect."


def _subject(rival: Rival) -> str:
    return f"'{rival.name}'" if rival.model is not None else f"Predicting {rival.name}"


def _apart(others: Sequence[Rival], level: str) -> str:
    if not others:
        return f"It is better than every other rival at the {level} level."
    named = [_with_rows(rival) for rival in others[:NAMED]]
    if len(others) > NAMED:
        named.append(f"{len(others) - NAMED} more")
    return f"At the {level} level it cannot be distinguished from {'; '.join(named)}."


def _with_rows(rival: Rival) -> str:
    if rival.rows_needed is None:
        return f"'{rival.name}' (the losses are the same)"
    return f"'{rival.name}' (about {whole(rival.rows_needed)} rows in all would separate them)"


def _against_constants(choice: Choice) -> Iterator[str]:
    if AVERAGE in choice.confidence_set:
        yield "No model is shown to be better than the average effect."
    if NO_EFFECT in choice.confidence_set and choice.best != NO_EFFECT:
        yield "Predicting no effect for anyone may be as good."


def _calibration(best: Rival) -> Iterator[str]:
    if best.assessment is not None and best.model is not None:
        yield f"Its status is {best.status}, with a calibration error of {estimate(best.error, best.error_interval)}."


def _decisions(choice: Choice, best: Rival) -> Iterator[str]:
    if best.value is None or best.gain is None or choice.cost is None:
        return
    rule = max(choice.rules, key=lambda one: one.value.value)
    value, gain = best.value, best.gain
    low, high = gain.interval
    more = (
        f"{estimate(gain.value, gain.interval)} more"
        if gain.value >= 0
        else f"{estimate(-gain.value, (-high, -low))} less"
    )
    yield (
        f"At a cost of {number(choice.cost)}, decisions by it are worth {estimate(value.value, value.interval)} per row, "
        f"{more} than the best rule that is the same for everyone, '{rule.name}'."
    )
