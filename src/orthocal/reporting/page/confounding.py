"""The section of a page about unmeasured confounding."""

from __future__ import annotations

from orthocal.formats import between
from orthocal.reporting.page.blocks import axes_for_page, hints, picture_of
from orthocal.reporting.page.document import Block, Picture, Pictures, Section, Table, Text, csv_of_columns
from orthocal.reporting.page.tables import file_of, shown_figures
from orthocal.reporting.sensitivities import STRENGTH, sensitivity_figures
from orthocal.sensitivity import Sensitivity

CAPTION = (
    "Each line joins strengths of an unmeasured confounder at which the interval ends at the same number; beyond the thick line "
    "it includes 0. Points: measured covariates, had they not been measured."
)

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Strengths, of outcome and treatment alike, at which the table has the interval."""


def sensitivity_section(found: Sensitivity, place: int) -> Section:
    """Return robustness values, contour pictures and figures of one prediction; pictures of a page differ by their place."""
    title = f"{found.name}: sensitivity to unmeasured confounding"
    if found.reason:
        return Section(title, (Text(found.reason),))
    kinds = ["average", *(["error"] if found.robustness.error is not None else [])]
    pictures = tuple(_contours(found, of, f"strength-{of}-{place}") for of in kinds)
    blocks: tuple[Block, ...] = (
        Text(found.robustness.text),
        Pictures(pictures, CAPTION) if len(pictures) > 1 else pictures[0],
        shown_figures("Unmeasured confounding", sensitivity_figures(found)),
        Text(STRENGTH),
    )
    return Section(title, blocks)


def _contours(found: Sensitivity, of: str, name: str) -> Picture:
    """Draw the lines of one conclusion, with hints on the covariates and the intervals at some strengths in the table."""
    marks = ", ".join(f"{one.covariate} {one.outcome:.1%} and {one.treatment:.1%}" for one in found.benchmarks)
    still = found.at_product(0.0)[of].interval
    words = f"Without confounding the interval is {between(still)}."
    words += f" Strengths of covariates: {marks}." if marks else ""
    ax = found.plot(axes_for_page(4.2), of=of)
    ax.set_title(ax.get_title(loc="left"), loc="left", fontsize="medium", pad=8)
    ax.set(xlabel="strength, treatment", ylabel="strength, outcome")
    hints(ax, [one.treatment for one in found.benchmarks], [one.outcome for one in found.benchmarks])
    table = _strengths_table(found, of)
    tips = [f"As strong as {row[0]}: interval {row[3]}." for row in table.rows[: len(found.benchmarks)]]
    return picture_of(ax, words, CAPTION, name, tips=tips, table=table)


def _strengths_table(found: Sensitivity, of: str) -> Table:
    """Return the interval if a confounder were as strong as each covariate, and at some strengths."""
    strengths = [(one.covariate, one.outcome, one.treatment) for one in found.benchmarks]
    strengths += [(f"{share:.0%} of both", share, share) for share in SHARES]
    intervals = [found.at(outcome, treatment)[of].interval for _, outcome, treatment in strengths]
    rows = tuple(
        (name, f"{outcome:.1%}", f"{treatment:.1%}", between(interval))
        for (name, outcome, treatment), interval in zip(strengths, intervals, strict=True)
    )
    columns = {
        "confounder": [one[0] for one in strengths],
        "outcome": [one[1] for one in strengths],
        "treatment": [one[2] for one in strengths],
        "lower": [low for low, _ in intervals],
        "upper": [high for _, high in intervals],
    }
    what = {"average": "average effect", "error": "calibration error"}[of]
    header = ("as strong as", "strength, outcome", "strength, treatment", f"interval of the {what}")
    caption = f"Unmeasured confounding and the {what}"
    return Table(caption, header, rows, file=file_of("confounding", of), figures=csv_of_columns(columns))
