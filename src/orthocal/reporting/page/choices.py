"""The page of a choice among models: which is best, the leaderboard, and paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from orthocal.formats import between, number, p_value, percent
from orthocal.mapfile import write_text
from orthocal.reporting.choices import HEADINGS, about_losses, choice_cells, choice_columns, with_interval
from orthocal.reporting.page.blocks import axes_for_page, errors_picture, hints, picture_of
from orthocal.reporting.page.document import Cards, Facts, Page, Picture, Section, Table, Text, csv_of_columns
from orthocal.reporting.page.render import render
from orthocal.reporting.page.sections import checks_sections, foot
from orthocal.reporting.page.top import Card, checks_cards, checks_marks
from orthocal.study.choice import Choice

TITLE = "Which model of causal effects to use"


def choice_report(choice: Choice, path: str | Path, title: str | None, how: Mapping[str, str] | None) -> None:
    """Write the page of a choice."""
    write_text(Path(path), render(choice_page(choice, TITLE if title is None else title, how or {})))


def choice_page(choice: Choice, title: str, how: Mapping[str, str]) -> Page:
    """Return the page: the verdict, all rivals side by side, and every two models compared."""
    failed = any(check.result == "failed" for check in choice.checks)
    is_alone = len(choice.confidence_set) == 1
    return Page(
        title=title,
        mark=f"Lowest mean loss: {choice.best}",
        tone="bad" if failed else "good" if is_alone else "open",
        lead=choice.verdict,
        top=(Cards((*_cards(choice), *checks_cards(choice.checks))), *checks_marks(choice.checks)),
        sections=(*_sections(choice), Section("How it was computed", (_how(choice, how),), folded=True)),
        foot=foot(),
    )


def _cards(choice: Choice) -> Iterator[Card]:
    """Yield the best rival, how many cannot be distinguished from it, and what deciding by it is worth."""
    best = choice.rivals[0]
    ends = f"{percent(choice.level)} interval {between(best.relative_loss.interval)}"
    yield (
        "plain",
        "Mean loss, beside the average effect",
        number(best.relative_loss.value),
        f"{ends}; lower is better",
    )
    count = len(choice.confidence_set)
    tone = "good" if count == 1 else "open"
    yield (tone, "Confidence set", f"{count} of {len(choice.rivals)}", "cannot be distinguished from the best")
    if best.value is not None:
        yield (
            "plain",
            f"Worth at cost {number(choice.cost)}",
            number(best.value.value),
            "net gain per row, by the best",
        )
    yield ("plain", "Rows judged", f"{choice.rows:,}", f"maps were fitted on {choice.fitted_rows:,} others")


def _sections(choice: Choice) -> Iterator[Section]:
    """Yield the leaderboard, calibration errors, paired differences, decisions and checks."""
    yield Section("Side by side", (_leaderboard(choice), Text(about_losses(choice))))
    verdicts = {rival.name: rival.assessment for rival in choice.rivals if rival.assessment is not None}
    if verdicts:
        yield Section("Calibration errors", (errors_picture(verdicts),))
    if choice.rules:
        yield Section("What deciding by each is worth", (_values(choice),))
    if choice.comparisons:
        yield Section("Two at a time", (_pairs(choice),))
    yield from checks_sections(choice.checks)


def _leaderboard(choice: Choice) -> Picture:
    """Draw mean losses relative to that of the average effect."""
    from orthocal import plots

    rivals = choice.rivals
    ax = plots.leaderboard(rivals, axes_for_page(1.4 + 0.36 * len(rivals)), level=choice.level)
    ax.set_xlabel("relative mean loss")
    hints(ax, [rival.relative_loss.value for rival in rivals], range(len(rivals)))
    tips = [
        f"{rival.name}: mean loss {with_interval(rival.relative_loss)} beside the average effect." for rival in rivals
    ]
    caption = (
        f"Mean losses minus that of the average effect, with {percent(choice.level)} intervals; lower is better. Filled marks "
        "cannot be distinguished from the best."
    )
    table = Table(
        "Leaderboard",
        HEADINGS,
        tuple(choice_cells(rival) for rival in rivals),
        file="leaderboard.csv",
        figures=csv_of_columns(choice_columns(choice)),
    )
    return picture_of(ax, " ".join(tips), caption, "leaderboard", tips=tips, table=table)


def _values(choice: Choice) -> Table:
    decided = [(one.name, with_interval(one.value), with_interval(one.gain)) for one in choice.rivals]
    rules = [(rule.name, with_interval(rule.value), "") for rule in choice.rules]
    header = ("rule", f"net gain per row at cost {number(choice.cost)}", "over the best rule for everyone")
    return Table("Decisions side by side", header, (*decided, *rules), file="decisions.csv")


def _pairs(choice: Choice) -> Table:
    rows = tuple(
        (
            f"{one.first} - {one.second}",
            with_interval(one.difference),
            p_value(one.p_value),
            p_value(one.p_value_adjusted),
        )
        for one in choice.comparisons
    )
    header = ("mean loss, first - second", "difference", "p-value", "adjusted (Holm)")
    return Table("Paired differences of mean losses", header, rows, file="differences.csv")


def _how(choice: Choice, how: Mapping[str, str]) -> Facts:
    known = {f"method, {name}": reason for name, reason in choice.reasons.items()}
    known |= {"confidence level": percent(choice.level), "draws behind the confidence set": f"{choice.draws:,}"}
    return Facts("So that another person can repeat it", tuple({**how, **known}.items()))
