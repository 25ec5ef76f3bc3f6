"""Pictures of policies: what rules are worth, gains over the budget, and the table of top shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.decisions.records import Policy, Rule
from orthocal.drawing import ACCENT, GREY, INK, SMALL, axes_or_new, legend_above, marked_at, plain, short_name
from orthocal.errors import OrthocalError
from orthocal.formats import estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (ACCENT, "#c2571a", "#2f7d4f", "#7b4fa3", "#a3324b")
MOST_LABELS = 13
"""Labels under the bins that do not overlap."""
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1.5, 2)), (0, (1, 1.2)))


def policy_values(policy: Policy, ax: Axes | None = None, *, beside: bool = True) -> Axes:
    """Draw what each rule is worth with its interval: blanket rules black, rules by prediction in colour.

    The dashed line is at the best blanket rule; what a prediction gains over it, with its paired interval, is on the right,
    unless `beside` is False.
    """
    rules = list(policy.values.values())
    ax = axes_or_new(ax, (7.6, 1.2 + 0.42 * len(rules)))
    ax.axvline(policy.values[policy.best_blanket].value.value, color=GREY, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    for place, rule in enumerate(reversed(rules)):
        colour = INK if rule.over_blanket is None else ACCENT
        ax.plot(rule.value.interval, [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        ax.plot([rule.value.value], [place], marker="o", markersize=6.5, color=colour)
        if beside and rule.over_blanket is not None:
            _beside(ax, place, estimate(rule.over_blanket.value, rule.over_blanket.interval))
    if beside:
        _beside(ax, sum(rule.over_blanket is not None for rule in rules), "over the best blanket rule:")
    ax.set_yticks(range(len(rules)), [plain(_named(rule)) for rule in reversed(rules)])
    ax.set_ylim(-0.6, len(rules) - 0.4)
    within = "less the cost" if policy.budget is None else f"within a budget of {policy.budget:.4g}"
    ax.set_xlabel(f"gain per person over treating no one, {within}")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _beside(ax: Axes, place: int, text: str) -> None:
    """Write on the right of the axes."""
    ax.text(1.02, place, text, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL, color=INK)


def _named(rule: Rule) -> str:
    name = short_name(rule.name)
    return name if rule.over_blanket is None else f"by {name} ({rule.share_treated:.0%} treated)"


def budget_curve(policy: Policy, ax: Axes | None = None) -> Axes:
    """Draw what each rule gains over the budget, with simultaneous bands.

    Grey is the best single arm at each budget, for everyone or for as many people, drawn at random, as the budget allows.
    """
    if policy.curve is None:
        raise OrthocalError("A curve over budgets must have a budget; give one to policy(..., budget=...).")
    ax, curve = axes_or_new(ax, (6.4, 4.6)), policy.curve
    for colour, dash, (name, columns) in zip(COLOURS * 9, DASHES * 9, curve.rules.items(), strict=False):
        ax.fill_between(
            curve.budget, columns["band_lower"], columns["band_upper"], color=colour, alpha=0.14, linewidth=0
        )
        label = plain(f"by {short_name(name)}")
        ax.plot(curve.budget, columns["gain"], color=colour, linestyle=dash, linewidth=2, label=label)
    single = np.max([np.zeros(len(curve.budget)), *curve.blankets.values()], axis=0)
    label = "at random" if len(curve.blankets) == 1 else "best single arm"
    ax.plot(curve.budget, single, color=GREY, linestyle=(0, (5, 3)), linewidth=1.4, label=label)
    ax.set(xlabel="budget: mean cost per person", ylabel="gain per person over treating no one")
    ax.margins(x=0)
    marked_at(ax, policy.budget or 0.0, "budget")
    legend_above(ax, len(curve.rules) + 1)
    return ax


def top_shares(policy: Policy, rule: str, ax: Axes | None = None, *, bins: int = 10) -> Axes:
    """Draw the estimated gain of people from the most promising down, bin by bin, with intervals, and what was predicted."""
    table = policy.table(rule, bins)
    ax, place = axes_or_new(ax, (6.8, 4.4)), np.arange(len(table["share"]))
    reach = np.nan_to_num([table["estimated"] - table["lower"], table["upper"] - table["estimated"]])
    ax.bar(place, table["estimated"], width=0.72, color=ACCENT, alpha=0.45, label="estimated, with interval")
    ax.errorbar(place, table["estimated"], yerr=reach, linestyle="none", color=INK, elinewidth=1.3)
    ax.plot(place, table["predicted"], linestyle="none", marker="D", markersize=6, color=COLOURS[1], label="predicted")
    ax.axhline(0, color=INK, linewidth=0.8)
    shown = place[:: -1 - len(place) // MOST_LABELS]
    ax.set_xticks(shown, [f"{table['share'][k]:.0%}" for k in shown])
    order = "predicted gain per cost" if policy.people is not None and policy.people.has_cost else "predicted gain"
    ax.set_xlabel(f"share of people, the highest {order} first ({plain(short_name(rule))})")
    ax.set_ylabel("gain per person of the bin, before costs")
    legend_above(ax, 2)
    return ax
