"""The page of a policy: which rule to use, what every rule is worth, and what it gains over the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from orthocal.decisions.records import BudgetCurve, Policy, Rule
from orthocal.decisions.sentences import best_prediction, in_short
from orthocal.formats import between, estimate, number, percent
from orthocal.mapfile import write_text
from orthocal.reporting.page.document import Cards, Facts, Page, Picture, Pictures, Section
from orthocal.reporting.page.policy_pictures import budget_picture, shares_picture, values_picture
from orthocal.reporting.page.render import render
from orthocal.reporting.page.sections import checks_sections, foot
from orthocal.reporting.page.tables import shown_figures
from orthocal.reporting.page.top import Card, capital, checks_cards, checks_marks
from orthocal.reporting.policies import policy_figures

TITLE = "Whom to treat, and what that is worth"
UNSETTLED = "Do not decide by it yet"


def policy_report(policy: Policy, path: str | Path, title: str | None, how: Mapping[str, str] | None) -> None:
    """Write the page of a policy."""
    write_text(Path(path), render(policy_page(policy, TITLE if title is None else title, how or {})))


def policy_page(policy: Policy, title: str, how: Mapping[str, str]) -> Page:
    """Return the page: the recommendation, rules side by side, gains over the budget, and people from the top down."""
    failed = any(check.result == "failed" for check in policy.checks)
    _, gain = best_prediction(policy.values)
    is_decided = gain.interval[0] > 0 or gain.interval[1] < 0
    return Page(
        title=title,
        mark=UNSETTLED if failed else in_short(policy.values, policy.best_blanket),
        tone="bad" if failed else "good" if is_decided else "open",
        lead=capital(policy.recommendation.removeprefix(f"{in_short(policy.values, policy.best_blanket)}: ")),
        top=(Cards((*_cards(policy), *checks_cards(policy.checks))), *checks_marks(policy.checks)),
        sections=(
            Section("What each rule is worth", (values_picture(policy),)),
            *_budget_sections(policy.curve, policy),
            Section("People from the most promising down", (_shares(policy),)),
            *checks_sections(policy.checks),
            Section("Figures", (shown_figures("Figures of the policy", policy_figures(policy)),), folded=True),
            Section("How it was computed", (_how(policy, how),), folded=True),
        ),
        foot=foot(),
    )


def _cards(policy: Policy) -> Iterator[Card]:
    """Yield the best rule by prediction, the best blanket rule, their difference, who is treated, and the budget."""
    best, gain = best_prediction(policy.values)
    blanket = policy.values[policy.best_blanket]
    tone = "good" if gain.interval[0] > 0 else "bad" if gain.interval[1] < 0 else "open"
    yield (tone, "Best prediction", best.name, f"worth {_worth(best)} per person")
    yield ("plain", "Best blanket rule", blanket.name, f"worth {_worth(blanket)} per person")
    yield (
        tone,
        "Gain over it, per person",
        number(gain.value),
        f"{percent(policy.level)} interval {between(gain.interval)}",
    )
    shares = ", ".join(f"{share:.0%} {arm}" for arm, share in best.shares.items()) if len(best.shares) > 1 else ""
    yield ("plain", "Treated by it", f"{best.share_treated:.0%}", shares or f"of {policy.rows:,} rows judged")
    spent = f"mean cost per person; {best.name} spends {number(best.cost)}"
    if policy.budget is None:
        yield ("plain", "Mean cost per person", number(best.cost), "taken off the gain")
    else:
        yield ("plain", "Budget", number(policy.budget), spent)


def _worth(rule: Rule) -> str:
    return estimate(rule.value.value, rule.value.interval if rule.value.standard_error > 0 else None)


def _budget_sections(curve: BudgetCurve | None, policy: Policy) -> list[Section]:
    """Gains over the budget, where there is one."""
    return [] if curve is None else [Section("Gains over the budget", (budget_picture(policy, curve),))]


def _shares(policy: Policy) -> Picture | Pictures:
    """Predicted and estimated gains from the most promising people down, of each prediction."""
    drawn = tuple(shares_picture(policy, rule, f"shares-{place}") for place, rule in enumerate(policy.predictions))
    return drawn[0] if len(drawn) == 1 else Pictures(drawn, drawn[0].caption)


def _how(policy: Policy, how: Mapping[str, str]) -> Facts:
    known = {
        "rows judged": f"{policy.rows:,}, which no map saw" if policy.checks else f"{policy.rows:,}",
        "arms": ", ".join(policy.arms),
        "predictions": ", ".join(policy.predictions),
        "confidence level": percent(policy.level),
    }
    return Facts("So that another person can repeat it", tuple({**known, **how}.items()))
