"""The page of a calibration of several arms."""

from __future__ import annotations

from collections.abc import Sequence

from orthocal.reporting.figures import Figure
from orthocal.reporting.page.blocks import (
    before_after_pictures,
    bins_table,
    figures_table,
    overlap_picture,
    overlap_table,
    reliability_picture,
    shown_figures,
)
from orthocal.reporting.page.document import Block, Code, Marked, Page, Section, Text
from orthocal.reporting.page.report import TONES, capital, checks_sections, foot, how_section
from orthocal.study.arms_calibration import ArmsCalibration

SNIPPET = """import orthocal

joint_map = orthocal.load("map.json")
calibrated = joint_map.predict(predictions)  # a column for each arm, in the order {columns}

# on the command line:  orthocal apply map.json new.csv --out calibrated.csv
# in a database:        orthocal export map.json --format sql"""


def arms_page(done: ArmsCalibration, figures: Sequence[Figure], title: str, how: dict[str, str]) -> Page:
    """Return the page: the recommendation, what was found, and every contrast in turn."""
    last = done.before if done.after is None else done.after
    marks = tuple(
        (TONES[one.status], capital(one.status), f"{name}: {one.verdict}") for name, one in last.contrasts.items()
    )
    first = next(iter(last.contrasts.values()))
    overlap: list[Block] = []
    if first.overlap is not None:
        pictures = [overlap_picture(first, "overlap")] if first.overlap.levels else []
        overlap = [*pictures, overlap_table(first.overlap)]
    sections = (
        Section("What was found", (shown_figures("Calibration", list(figures)[1:]), Marked(marks))),
        *checks_sections(done.checks),
        *(_contrast(done, name, place) for place, name in enumerate(last.contrasts)),
        Section("Figures", (figures_table(last.contrasts),)),
        Section("Overlap and unmeasured confounding", (*overlap, Text(first.sensitivity.text))),
        Section("Use the map", (Code(SNIPPET.format(columns=", ".join(done.columns))),)),
        how_section(first, how),
    )
    return Page(
        title=title,
        mark=capital(done.recommendation.action),
        tone=TONES[done.recommendation.action],
        lead="\n".join(done.recommendation.reasons),
        sections=sections,
        foot=foot(),
    )


def _contrast(done: ArmsCalibration, name: str, place: int) -> Section:
    """Predicted and estimated effects of one contrast, before and after."""
    before = done.before.contrasts[name]
    if done.after is None:
        return Section(name, (reliability_picture(before, f"contrast-{place}"), bins_table(before)))
    after = done.after.contrasts[name]
    return Section(name, (before_after_pictures(before, after, f"contrast-{place}"), bins_table(after)))
