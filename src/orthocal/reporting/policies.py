"""What a policy shows: one list of figures, printed as text and in JSON."""

from __future__ import annotations

from orthocal.decisions.records import Policy, Ratio, Rule
from orthocal.formats import estimate, number, percent
from orthocal.reporting.calibrations import checks_in_words
from orthocal.reporting.figures import Figure, as_text


def policy_summary(policy: Policy) -> str:
    """Return the recommendation of a policy and the figures behind it as text."""
    checks = f"\n\n{checks_in_words(policy.checks)}" if policy.checks else ""
    return f"{policy.recommendation}\n\n{as_text(policy_figures(policy))}{checks}"


def policy_figures(policy: Policy) -> list[Figure]:
    """Return the figures of a policy, rule by rule."""
    arms = "one arm" if len(policy.arms) == 1 else f"{len(policy.arms)} arms"
    baseline = estimate(policy.baseline.value, policy.baseline.interval)
    return [
        Figure("rows judged", f"{policy.rows:,}, {arms}", f"{percent(policy.level)} intervals in brackets"),
        *([] if policy.budget is None else [Figure("budget", number(policy.budget), _of_budget(policy))]),
        Figure("outcome if no one is treated", baseline, "mean of all rows"),
        *(figure for rule in policy.values.values() for figure in _rule_figures(rule, policy)),
    ]


def _of_budget(policy: Policy) -> str:
    return "; ".join(filter(None, ["mean cost per person", policy.note]))


def _rule_figures(rule: Rule, policy: Policy) -> list[Figure]:
    unit = "gain per person, less the cost" if policy.budget is None else "gain per person within the budget"
    value = estimate(rule.value.value, rule.value.interval if rule.value.standard_error > 0 else None)
    first = Figure(rule.name, value, f"{unit}{_treated(rule)}")
    return [first, *_prediction_figures(rule, policy), *_ratio_figures(rule)]


def _treated(rule: Rule) -> str:
    if len(rule.shares) == 1 or rule.over_blanket is None:
        return f"; {rule.share_treated:.0%} treated"
    return "; " + ", ".join(f"{share:.0%} {arm}" for arm, share in rule.shares.items())


def _prediction_figures(rule: Rule, policy: Policy) -> list[Figure]:
    if rule.over_blanket is None or rule.excess is None:
        return []
    over, excess = rule.over_blanket, rule.excess
    others = f"; {', '.join(rule.blankets[1:])} may be as good" if rule.blankets[1:] else ""
    return [
        Figure("  over best blanket rule", estimate(over.value, over.interval), f"{policy.best_blanket}{others}"),
        Figure("  predicted gain", number(rule.promised), "mean predicted gain per person, before costs"),
        Figure(
            "  predicted - estimated",
            estimate(excess.value, excess.interval),
            "above 0: it overpromises (winner's curse)",
        ),
    ]


def _ratio_figures(rule: Rule) -> list[Figure]:
    named = {"  gain per unit spent": rule.return_on_spend, "  spent per unit gained": rule.cost_per_gain}
    return [_ratio_figure(name, ratio) for name, ratio in named.items() if ratio is not None]


def _ratio_figure(name: str, ratio: Ratio) -> Figure:
    return Figure(name, estimate(ratio.value, ratio.interval), ratio.note)
