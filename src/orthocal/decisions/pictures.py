"""Pictures of policies: what rules are worth, gains over the budget, and the table of top shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.decisions.records import Policy, Rule
from orthocal.drawing import ACCENT, GREY, INK, axes_or_new
from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (ACCENT, "#c2571a", "#2f7d4f", "#7b4fa3", "#a3324b")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1.5, 2)), (0, (1, 1.2)))


def policy_values(policy: Policy, ax: Axes | None = None) -> Axes:
    """Draw what each rule is worth with its interval: blanket rules grey, rules by prediction in colour.

    The line is at the value of the best blanket rule; what a prediction gains over it is written beside it.
    """
    rules = list(policy.values.values())
    ax = axes_or_new(ax, (6.8, 1.1 + 0.42 * len(rules)))
    ax.axvline(policy.values[policy.best_blanket].value.value, color=GREY, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    for place, rule in enumerate(reversed(rules)):
        colour = INK if rule.over_blanket is None else ACCENT
        ax.plot(rule.value.interval, [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        ax.plot([rule.value.value], [place], marker="o", markersize=6.5, color=colour)
    ax.set_yticks(range(len(rules)), [_named(rule) for rule in reversed(rules)])
    ax.set_ylim(-0.6, len(rules) - 0.4)
    within = "less the cost" if policy.budget is None else f"within a budget of {policy.budget:.4g}"
    ax.set_xlabel(f"gain per person over treating no one, {within}")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _named(rule: Rule) -> str:
    return rule.name if rule.over_blanket is None else f"by {rule.name} ({rule.share_treated:.0%} treated)"


def budget_curve(policy: Policy, ax: Axes | None = None) -> Axes:
    """Draw what each rule gains over the budget, with simultaneous bands, and giving one arm to people at random (grey)."""
    if policy.curve is None:
        raise OrthocalError("A curve over budgets must have a budget; give one to policy(..., budget=...).")
    ax, curve = axes_or_new(ax, (6.4, 4.4)), policy.curve
    for colour, dash, (name, columns) in zip(COLOURS * 9, DASHES * 9, curve.rules.items(), strict=False):
        ax.fill_between(
            curve.budget, columns["band_lower"], columns["band_upper"], color=colour, alpha=0.14, linewidth=0
        )
        ax.plot(curve.budget, columns["gain"], color=colour, linestyle=dash, linewidth=2, label=f"by {name}")
    for (name, gain), dash in zip(curve.blankets.items(), DASHES[1:] * 9, strict=False):
        ax.plot(curve.budget, gain, color=GREY, linestyle=dash, linewidth=1.3, label=name)
    ax.axvline(policy.budget or 0.0, color=INK, linewidth=0.8)
    ax.set(xlabel="budget: mean cost per person", ylabel="gain per person over treating no one")
    ax.margins(x=0)
    ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def top_shares(policy: Policy, rule: str, ax: Axes | None = None, *, bins: int = 10) -> Axes:
    """Draw the estimated gain of people from the most promising down, bin by bin, with intervals, and what was predicted."""
    table = policy.table(rule, bins)
    ax, place = axes_or_new(ax, (6.8, 4.2)), np.arange(len(table["share"]))
    reach = np.nan_to_num([table["estimated"] - table["lower"], table["upper"] - table["estimated"]])
    ax.bar(place, table["estimated"], width=0.72, color=ACCENT, alpha=0.45, label="estimated")
    ax.errorbar(place, table["estimated"], yerr=reach, linestyle="none", color=INK, elinewidth=1.3)
    ax.plot(place, table["predicted"], linestyle="none", marker="D", markersize=6, color="#c2571a", label="predicted")
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_xticks(place, [f"{share:.0%}" for share in table["share"]])
    ax.set(xlabel=f"share of people, highest by {rule} first", ylabel="gain per person of the bin, before costs")
    ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
