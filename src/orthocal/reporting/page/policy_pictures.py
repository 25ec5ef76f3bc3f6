"""Pictures of a policy, with what they show in words, in hints, and in the table behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from orthocal.decisions.records import BudgetCurve, Policy
from orthocal.formats import between, estimate, number, percent
from orthocal.reporting.page.blocks import axes_for_page, hints, picture_of
from orthocal.reporting.page.document import Picture, Slider, Table, csv_of, csv_of_columns
from orthocal.reporting.page.render import TIP
from orthocal.reporting.page.tables import file_of

STRIDE = 4
"""Of the budgets at which curves are known, every so many are in the table and on the slider."""


def values_picture(policy: Policy) -> Picture:
    """Draw what each rule is worth."""
    from orthocal import plots

    rules = list(policy.values.values())
    tips = [
        f"{rule.name}: worth {number(rule.value.value)} per person ({between(rule.value.interval)}), "
        f"{rule.share_treated:.0%} treated."
        for rule in rules
    ]
    ax = plots.policy_values(policy, axes_for_page(1.0 + 0.34 * len(rules)), beside=False)
    ax.set_xlabel("gain per person")
    hints(ax, [rule.value.value for rule in rules], list(range(len(rules)))[::-1])
    caption = (
        f"What each rule is worth per person over treating no one, with {percent(policy.level)} intervals: blanket rules black, "
        f"rules by prediction blue. Dashed: the best blanket rule, {policy.best_blanket}."
    )
    return picture_of(ax, " ".join(tips), caption, "values", tips=tips, table=rules_table(policy))


def rules_table(policy: Policy) -> Table:
    """Return rules and arms side by side: what a rule is worth, who gets which arm, what it costs and what it promised."""
    header = ("rule", "worth per person", "over the best blanket rule", *(f"get {arm}" for arm in policy.arms))
    header = (*header, "mean cost", "promised gain", "estimated gain")
    rows = tuple(
        (
            rule.name,
            estimate(rule.value.value, rule.value.interval),
            "" if rule.over_blanket is None else estimate(rule.over_blanket.value, rule.over_blanket.interval),
            *(f"{rule.shares[arm]:.0%}" for arm in policy.arms),
            number(rule.cost),
            "" if rule.promised is None else number(rule.promised),
            estimate(rule.gain.value, rule.gain.interval),
        )
        for rule in policy.values.values()
    )
    return Table("Rules and arms side by side", header, rows, file="rules.csv")


class _Gain(NamedTuple):
    """What a rule gains at a budget, with its band (or interval) and what it treats; blanket rules have neither."""

    rule: str
    value: float
    ends: tuple[float, float] | None = None
    treated: float | None = None

    def __str__(self) -> str:
        treated = "" if self.treated is None else f", {self.treated:.0%} treated"
        return f"{self.rule}: {estimate(self.value, self.ends)}{treated}"


def budget_picture(policy: Policy, curve: BudgetCurve) -> Picture:
    """Draw gains over the budget, with a slider over budgets; every figure of the slider is in the table."""
    from orthocal import plots

    steps = _steps(policy, curve)
    ax = plots.budget_curve(policy, axes_for_page(4.2))
    for place, (budget, _) in enumerate(steps):
        ax.axvline(budget, linewidth=7, alpha=0, zorder=9, gid=f"{TIP}{place}")
    texts = tuple(_in_words(budget, gains) for budget, gains in steps)
    places = tuple(f"budget {number(budget)}" for budget, _ in steps)
    start = [budget == policy.budget for budget, _ in steps].index(True)
    slider = Slider("What if the budget were larger, or smaller?", places, texts, start)
    caption = (
        f"Gain per person of each rule over the budget, with {percent(policy.level)} bands that hold at all budgets at once (at "
        "the budget that was given: its interval). Grey: the best single arm, for as many people at random as the budget allows."
    )
    table = _budget_table(steps)
    return picture_of(ax, texts[start].replace("\n", " "), caption, "budget", tips=texts, table=table, slider=slider)


def _steps(policy: Policy, curve: BudgetCurve) -> list[tuple[float, list[_Gain]]]:
    """Return budgets with the gains of all rules: some points of the curves, and the budget that was given."""
    budget: Any = policy.budget
    given = [
        _Gain(f"by {rule.name}", rule.gain.value, rule.gain.interval, rule.share_treated)
        for rule in policy.values.values()
        if rule.over_blanket is not None
    ]
    given += [_Gain(name, policy.values[name].gain.value) for name in curve.blankets]
    drawn = {float(curve.budget[k]): list(_gains(curve, k)) for k in range(0, len(curve.budget), STRIDE)}
    return sorted(({**drawn, budget: given}).items())


def _gains(curve: BudgetCurve, place: int) -> Iterator[_Gain]:
    for name, columns in curve.rules.items():
        gain, low, high, treated = (
            float(columns[column][place]) for column in ("gain", "band_lower", "band_upper", "share_treated")
        )
        yield _Gain(f"by {name}", gain, (low, high), treated)
    for name, gains in curve.blankets.items():
        yield _Gain(name, float(gains[place]))


def _in_words(budget: float, gains: list[_Gain]) -> str:
    """Say line by line what each rule gains within a budget, and which gains most."""
    best = max([_Gain("treating no one", 0.0), *gains], key=lambda one: one.value)
    lines = [f"Within a budget of {number(budget)} per person, gain per person:", *map(str, gains)]
    return "\n".join([*lines, f"Largest: {best.rule}."])


def _budget_table(steps: list[tuple[float, list[_Gain]]]) -> Table:
    """Return what each rule gains over budgets."""
    rules = [gain.rule for gain in steps[0][1]]
    rows = tuple((number(budget), *(estimate(gain.value, gain.ends) for gain in gains)) for budget, gains in steps)
    header = ["budget"]
    for gain in steps[0][1]:
        header += [gain.rule, *([f"{gain.rule}, {end}" for end in ("lower", "upper", "treated")] if gain.ends else [])]
    figures = [
        [budget, *(cell for gain in gains for cell in (gain.value, *((*gain.ends, gain.treated) if gain.ends else ())))]
        for budget, gains in steps
    ]
    caption = "Gain per person over budgets"
    return Table(caption, ("budget", *rules), rows, file="budgets.csv", figures=csv_of(header, figures))


def shares_picture(policy: Policy, rule: str, name: str) -> Picture:
    """Draw predicted and estimated gains of people from the most promising down."""
    from orthocal import plots
    from orthocal.drawing import plain, short_name

    table = policy.table(rule)
    ax = plots.top_shares(policy, rule, axes_for_page(3.9))
    tips = [
        f"Up to {share:.0%}: predicted {number(predicted)}, estimated {estimate(estimated, (low, high))}, {n:,.0f} rows."
        for share, predicted, estimated, low, high, n in zip(
            *(table[column] for column in ("share", "predicted", "estimated", "lower", "upper", "n")), strict=True
        )
    ]
    hints(ax, range(len(tips)), table["estimated"])
    ax.set(title=plain(short_name(rule)), xlabel="people, the most promising first")
    for label in ax.get_xticklabels()[1::2]:
        label.set_visible(False)
    caption = (
        "Bars: estimated gain of people from the most promising down, with intervals. Diamonds: what was predicted; above its "
        "bar it promises too much."
    )
    words = f"By {rule}. {' '.join(tips)}"
    return picture_of(ax, words, caption, name, tips=tips, table=_shares_table(rule, table))


def _shares_table(rule: str, table: dict[str, Any]) -> Table:
    rows = tuple(
        (f"{share:.0%}", f"{n:,.0f}", number(predicted), estimate(estimated, (low, high)), number(gain), number(cost))
        for share, n, predicted, estimated, low, high, gain, cost in zip(
            *(table[column] for column in SHARES_COLUMNS), strict=True
        )
    )
    header = ("people up to", "rows", "predicted", "estimated (interval)", "gain so far", "cost so far")
    caption = f"People from the most promising down, by {rule}"
    return Table(caption, header, rows, file=file_of("shares", rule), figures=csv_of_columns(table))


SHARES_COLUMNS = ("share", "n", "predicted", "estimated", "lower", "upper", "cumulative_gain", "cumulative_cost")
