"""The recommendation of a policy in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from orthocal.assessment.parts import Coefficient
from orthocal.decisions.records import Rule
from orthocal.formats import between, estimate, number


def recommendation_of(rules: Mapping[str, Rule], best_blanket: str) -> str:
    """Return which rule to use: that by the best prediction where it clearly beats the best blanket rule, or that one."""
    best, gain = best_prediction(rules)
    if gain.interval[0] > 0:
        more = estimate(gain.value, gain.interval)
        rival = best_blanket if rules[best_blanket].share_treated > 0 else "treating no one"
        return f"{in_short(rules, best_blanket)}: it gains {more} more per person than {rival}, the best blanket rule."
    return f"{in_short(rules, best_blanket)}: choosing by {best.name} gains {_more_or_less(gain)} per person."


def in_short(rules: Mapping[str, Rule], best_blanket: str) -> str:
    """Return which rule to use in a few words."""
    best, gain = best_prediction(rules)
    return f"Choose by {best.name}" if gain.interval[0] > 0 else _order(rules[best_blanket])


def best_prediction(rules: Mapping[str, Rule]) -> tuple[Rule, Coefficient]:
    """Return the rule by prediction that is worth most, and what it gains over the best blanket rule."""
    rivals = [(rule, rule.over_blanket) for rule in rules.values() if rule.over_blanket is not None]
    return max(rivals, key=lambda one: one[0].value.value)


def _more_or_less(gain: Coefficient) -> str:
    if gain.value >= 0:
        return f"{estimate(gain.value, gain.interval)} more"
    return f"{number(-gain.value)} ({between((-gain.interval[1], -gain.interval[0]))}) less"


def _order(rule: Rule) -> str:
    """Return a blanket rule as an order."""
    if rule.share_treated == 0:
        return "Treat no one"
    arm, share = max(rule.shares.items(), key=lambda one: one[1])
    whom = "everyone" if share == 1 else f"{share:.0%} of people at random"
    return f"Treat {whom}" if len(rule.shares) == 1 else f"Treat {whom} with {arm}"
