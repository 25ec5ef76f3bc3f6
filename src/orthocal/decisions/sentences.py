"""The recommendation of a policy in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from orthocal.assessment.parts import Coefficient
from orthocal.decisions.records import Rule
from orthocal.formats import between, estimate, listed, number, whole

MOST_ROWS = 1e9
"""Beyond so many it is not said how many rows would decide."""


UNDECIDED = "Undecided"


def recommendation_of(rules: Mapping[str, Rule], best_blanket: str, rows: int) -> str:
    """Return which rule to use: by the best prediction or the best blanket rule, or that the rows do not decide between them."""
    best, gain = best_prediction(rules)
    short, rival = in_short(rules, best_blanket), f"{_rival(rules[best_blanket])}, the best blanket rule"
    if gain.interval[0] > 0:
        return f"{short}: it gains {estimate(gain.value, gain.interval)} more per person than {rival}."
    if gain.value == gain.standard_error == 0:
        return f"{short}: choosing by {best.name} comes to the same{_as_good(rules, best)}."
    if short != UNDECIDED:
        return f"{short}: choosing by {best.name} gains {_more_or_less(gain)} per person{_as_good(rules, best)}."
    return f"{short}: choosing by {best.name} gains {_more_or_less(gain)} per person than {rival}.{_enough(gain, rows)}"


def in_short(rules: Mapping[str, Rule], best_blanket: str) -> str:
    """Return which rule to use in a few words."""
    best, gain = best_prediction(rules)
    if gain.interval[0] > 0:
        return f"Choose by {best.name}"
    return _order(rules[best_blanket]) if gain.interval[1] <= 0 else UNDECIDED


def _as_good(rules: Mapping[str, Rule], best: Rule) -> str:
    """Say which other blanket rules may be as good as the best of them."""
    others = [_rival(rules[name]) for name in best.blankets[1:]]
    return f"; {listed(others)} may be as good" if others else ""


def _rival(blanket: Rule) -> str:
    return blanket.name if blanket.share_treated > 0 else "treating no one"


def _enough(gain: Coefficient, rows: int) -> str:
    """Say at how many judged rows a gain of this size would be clear; nothing where it is not above 0."""
    if gain.value <= 0:
        return ""
    needed = rows * ((gain.value - gain.interval[0]) / gain.value) ** 2
    return (
        f" A gain of this size would be clear from about {whole(int(needed))} judged rows on."
        if needed < MOST_ROWS
        else ""
    )


def best_prediction(rules: Mapping[str, Rule]) -> tuple[Rule, Coefficient]:
    """Return the rule by prediction that is worth most, and what it gains over the best blanket rule."""
    rivals = [(rule, rule.over_blanket) for rule in rules.values() if rule.over_blanket is not None]
    return max(rivals, key=lambda one: one[0].value.value)


def _more_or_less(gain: Coefficient) -> str:
    if gain.value >= 0:
        return f"{estimate(gain.value, gain.interval)} more"
    low, high = gain.interval
    return f"{number(-gain.value)} ({between((0.0 - high, 0.0 - low))}) less"  # an end of 0 is no -0


def _order(rule: Rule) -> str:
    """Return a blanket rule as an order."""
    if rule.share_treated == 0:
        return "Treat no one"
    arm, share = max(rule.shares.items(), key=lambda one: one[1])
    whom = "everyone" if share == 1 else f"{share:.0%} of people at random"
    return f"Treat {whom}" if len(rule.shares) == 1 else f"Treat {whom} with {arm}"
