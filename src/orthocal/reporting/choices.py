"""What a choice among models shows: a leaderboard as text, as columns, as JSON and to the notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orthocal import __version__
from orthocal.arrays import ROUNDING
from orthocal.assessment.parts import Coefficient
from orthocal.assessment.rivals import Rival
from orthocal.formats import estimate, number, p_value, percent
from orthocal.reporting.calibrations import checks_in_words
from orthocal.reporting.figures import Figure
from orthocal.study.recommendation import WORTH_HALF_A_SQUARE

if TYPE_CHECKING:
    from orthocal.study.choice import Choice


def _average_in_words(average: float | Mapping[str, float]) -> str:
    """Return the average effect, or that of each arm."""
    if not isinstance(average, Mapping):
        return number(average)
    return ", ".join(f"{number(value)} ({arm})" for arm, value in average.items())


def about_losses(choice: Choice) -> str:
    """Say what the losses of a leaderboard are measured in, and from."""
    unit = f" they are {HALF_SQUARES}{_times_mass(choice)};" if choice.unit in WORTH_HALF_A_SQUARE else ""
    return (
        f"Mean losses are minus that of the average effect, {_average_in_words(choice.average)} for everyone;{unit} lower is "
        "better. "
        f"{choice.rows:,} rows were judged, which no map saw; maps were fitted on {choice.fitted_rows:,} others. Brackets hold "
        f"{percent(choice.level)} intervals."
    )


HALF_SQUARES = "half differences of mean squared errors, in squared units of the effect"


def _times_mass(choice: Choice) -> str:
    """Return by what mean mass errors of a ratio effect are multiplied; nothing for others, whose mass is 1."""
    masses = [rival.assessment.mass for rival in choice.rivals if rival.assessment is not None]
    return f", times the mean mass of a row, {number(masses[0])}" if masses and abs(masses[0] - 1) > ROUNDING else ""


def choice_figures(choice: Choice) -> list[Figure]:
    """Return a line for each rival: its mean loss, and all else in words."""
    return [
        Figure(rival.name, with_interval(rival.relative_loss), "; ".join(_in_words(rival))) for rival in choice.rivals
    ]


def _in_words(rival: Rival) -> Iterator[str]:
    place = "in the confidence set" if rival.is_in_set else "not in the confidence set"
    yield f"{place}, {p_value(rival.p_value)}"
    if rival.assessment is not None:
        yield f"{rival.status}, error {estimate(rival.error, rival.error_interval)}"
    if rival.autoc is not None:
        yield f"{rival.ranking}, AUTOC {with_interval(rival.autoc)}"
    if rival.value is not None:
        yield f"worth {with_interval(rival.value)}"


def with_interval(one: Coefficient | None) -> str:
    """Return an estimate with its interval; nothing where there is none."""
    return "" if one is None else estimate(one.value, one.interval)


def choice_summary(choice: Choice) -> str:
    """Return the verdict, the leaderboard, paired differences of models and checks as text."""
    return "\n\n".join(_paragraphs(choice))


def _paragraphs(choice: Choice) -> Iterator[str]:
    yield choice.verdict
    yield as_table(HEADINGS, [choice_cells(rival) for rival in choice.rivals])
    yield about_losses(choice)
    if choice.rules:
        yield _values(choice)
    if choice.comparisons:
        yield as_table(
            ("mean loss, first - second", "difference", "p-value", "adjusted (Holm)"),
            [
                (
                    f"{one.first} - {one.second}",
                    with_interval(one.difference),
                    p_value(one.p_value),
                    p_value(one.p_value_adjusted),
                )
                for one in choice.comparisons
            ],
        )
    if choice.checks:
        yield checks_in_words(choice.checks)


HEADINGS = ("rival", "mean loss - average", "in set", "p-value", "status", "calibration error", "AUTOC")


def choice_cells(rival: Rival) -> tuple[str, ...]:
    """Return the line of a rival on the leaderboard."""
    return (
        rival.name,
        with_interval(rival.relative_loss),
        "yes" if rival.is_in_set else "no",
        f"{rival.p_value:.4f}",
        rival.status or "",
        "" if rival.assessment is None else estimate(rival.error, rival.error_interval),
        with_interval(rival.autoc),
    )


def _values(choice: Choice) -> str:
    """Return what decisions by each rival are worth, and those that are the same for everyone."""
    decided = [(one.name, with_interval(one.value), with_interval(one.gain)) for one in choice.rivals]
    rules = [(rule.name, with_interval(rule.value), "") for rule in choice.rules]
    headings = ("rule", f"net gain per row at cost {number(choice.cost)}", "gain over the best rule for everyone")
    return as_table(headings, [*decided, *rules])


def as_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns of text with a line under the headings."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [headings, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def choice_columns(choice: Choice) -> dict[str, list[Any]]:
    """Return the leaderboard as columns."""
    records = [_columns_of(rival) for rival in choice.rivals]
    return {name: [record[name] for record in records] for name in records[0]}


def _columns_of(rival: Rival) -> dict[str, Any]:
    low, high = rival.error_interval or (None, None)
    return {
        "rival": rival.name,
        "model": rival.model,
        "is_calibrated": rival.is_calibrated,
        **_spread("relative_loss", rival.relative_loss),
        "is_in_set": rival.is_in_set,
        "p_value": rival.p_value,
        "rows_needed": rival.rows_needed,
        "status": rival.status,
        "error": rival.error,
        "error_lower": low,
        "error_upper": high,
        **_spread("autoc", rival.autoc),
        "ranking": rival.ranking,
        **_spread("value", rival.value),
        **_spread("gain", rival.gain),
    }


def _spread(name: str, one: Coefficient | None) -> dict[str, float | None]:
    if one is None:
        return {name: None, f"{name}_lower": None, f"{name}_upper": None}
    return {name: one.value, f"{name}_lower": one.interval[0], f"{name}_upper": one.interval[1]}


def choice_record(choice: Choice) -> dict[str, Any]:
    """Return a choice as plain numbers, strings, lists and dicts, ready for JSON."""
    return {
        "orthocal": __version__,
        "best": choice.best,
        "confidence_set": list(choice.confidence_set),
        "verdict": choice.verdict,
        "rivals": [_columns_of(rival) for rival in choice.rivals],
        "comparisons": [_plain(asdict(one)) for one in choice.comparisons],
        "rules": [_plain(asdict(rule)) for rule in choice.rules],
        "average_effect": choice.average,
        "cost": choice.cost,
        "level": choice.level,
        "draws": choice.draws,
        "unit": choice.unit,
        "rows": choice.rows,
        "fitted_rows": choice.fitted_rows,
        "reasons": dict(choice.reasons),
        "checks": [vars(check) for check in choice.checks],
        "figures": [line._asdict() for line in choice_figures(choice)],
        "assessments": {one.name: one.assessment.to_dict() for one in choice.rivals if one.assessment is not None},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value
