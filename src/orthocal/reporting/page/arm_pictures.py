"""All contrasts of several arms side by side: small drawings on one scale, and a table with a column for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orthocal.assessment import Assessment
from orthocal.formats import between, estimate, number, p_value
from orthocal.reporting.figures import main_figures
from orthocal.reporting.page.blocks import axes_for_page, hints, picture_of, without_legend, without_notes
from orthocal.reporting.page.document import Picture, Pictures, Table, csv_of
from orthocal.reporting.page.tables import file_of
from orthocal.study.arms_calibration import ArmsCalibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALL_WIDTH = 3.2
"""Of a small drawing, in inches."""
CAPTION = (
    "Predicted and estimated effects of every contrast, bin by bin, all on one scale: squares before calibration, discs after. "
    "Thick bars: interval of a bin; thin bars: band for all bins of a contrast. On the dashed line predictions are right."
)
KEPT = ("average effect", "mean prediction", "slope", "ranking, AUTOC")
"""Figures of a verdict that stand side by side."""


def contrasts_pictures(done: ArmsCalibration, place: str) -> Pictures:
    """Draw the reliability of every contrast, before and after in one drawing, on one scale."""
    from orthocal import plots

    drawn = {}
    for name, before in done.before.contrasts.items():
        ax = axes_for_page(SMALL_WIDTH, SMALL_WIDTH)
        if done.after is None:
            plots.reliability(before, ax)
        else:
            plots.overlay(before, done.after.contrasts[name], ax)
        ax.set_ylabel("estimated effect")
        drawn[name] = ax
    plots.on_one_scale(list(drawn.values()), square=True)
    pictures = [
        _picture(ax, name, _when(done, name), f"{place}-{number}") for number, (name, ax) in enumerate(drawn.items())
    ]
    return Pictures(tuple(pictures), CAPTION, small=True)


def _when(done: ArmsCalibration, name: str) -> dict[str, Assessment]:
    after = {} if done.after is None else {"after": done.after.contrasts[name]}
    return {"before": done.before.contrasts[name], **after}


def _picture(ax: Axes, name: str, when: Mapping[str, Assessment], place: str) -> Picture:
    """Return one small drawing with hints on the last of its marks, and the bins of both in the table."""
    from orthocal.drawing import plain, short_name

    table = _bins(name, when)
    last = list(when.values())[-1].bins
    ax.set_title(plain(short_name(name)))
    without_legend(ax)
    without_notes(ax)
    hints(ax, last["prediction"], last["target"])
    rows = table.rows[-len(last["n"]) :]
    tips = [f"{name}: predicted {row[2]}, estimated {row[3]}; {row[4]} rows." for row in rows]
    return picture_of(ax, " ".join(tips), CAPTION, place, tips=tips, table=table)


def _bins(name: str, when: Mapping[str, Assessment]) -> Table:
    """Return the bins of a contrast, before and after."""
    rows, figures = [], []
    for word, verdict in when.items():
        bins = verdict.bins
        columns = ("prediction", "target", "residual", "residual_lower", "residual_upper", "n")
        for place, (mean, target, gap, low, high, n) in enumerate(zip(*(bins[one] for one in columns), strict=True), 1):
            ends = (target - gap + low, target - gap + high)
            rows.append((str(place), word, number(mean), f"{number(target)} ({between(ends)})", f"{n:,.0f}"))
            figures.append((place, word, mean, target, *ends, n))
    header = ("bin", "when", "mean prediction", "estimated effect (interval)", "rows")
    text = csv_of(("bin", "when", "prediction", "estimated", "lower", "upper", "rows"), figures)
    return Table(f"Bins of {name}", header, tuple(rows), file=file_of("bins", name), figures=text)


def contrasts_table(done: ArmsCalibration, model: str) -> Table:
    """Return the figures of all contrasts side by side, a column for each."""
    each = {name: _figures_of(done, name) for name in done.before.contrasts}
    names = dict.fromkeys(name for own in each.values() for name in own)
    rows = tuple((name, *(own.get(name, "") for own in each.values())) for name in names)
    caption = f"Contrasts side by side{f': {model}' if model else ''}"
    return Table(caption, ("", *each), rows, file=file_of("contrasts", model))


def _figures_of(done: ArmsCalibration, name: str) -> dict[str, str]:
    """Return status, p-value, errors and main figures of a contrast, by name."""
    found: dict[str, str] = {}
    for word, verdict in {"before": done.before, "after": done.after}.items():
        if verdict is not None:
            own = verdict.contrasts[name]
            found[f"status {word}"] = own.status
            found[f"p-value {word}, adjusted"] = p_value(verdict.p_values[name])
            found[f"error {word}"] = estimate(own.error, own.interval)
    last = list(_when(done, name).values())[-1]
    found["tolerance"] = number(last.tolerance)
    return found | {line.name: line.figure for line in main_figures(last) if line.name in KEPT}
