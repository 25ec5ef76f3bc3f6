"""The page of a calibration of several arms."""

from __future__ import annotations

from collections.abc import Sequence

from orthocal.reporting.figures import Figure
from orthocal.reporting.page.blocks import before_after_pictures, errors_picture, reliability_picture
from orthocal.reporting.page.document import Marked, Page, Section
from orthocal.reporting.page.sections import checks_sections, foot, how_section, overlap_section, use_section
from orthocal.reporting.page.tables import figures_table, shown_figures
from orthocal.reporting.page.top import TONES, arms_cards, capital, checks_marks
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
    found = (errors_picture(last.contrasts), shown_figures("Calibration", list(figures)[1:]), Marked(marks))
    sections = (
        Section("What was found", found),
        *checks_sections(done.checks),
        *(_contrast(done, name, place) for place, name in enumerate(last.contrasts)),
        Section("Figures", (figures_table(last.contrasts),), folded=True),
        overlap_section(first, "overlap"),
        use_section(SNIPPET.format(columns=", ".join(done.columns))),
        how_section(first, how),
    )
    return Page(
        title=title,
        mark=capital(done.recommendation.action),
        tone=TONES[done.recommendation.action],
        lead="\n".join(done.recommendation.reasons),
        top=(arms_cards(done), *checks_marks(done.checks)),
        sections=sections,
        foot=foot(),
    )


def _contrast(done: ArmsCalibration, name: str, place: int) -> Section:
    """Predicted and estimated effects of one contrast, before and after."""
    before = done.before.contrasts[name]
    if done.after is None:
        return Section(name, (reliability_picture(before, f"contrast-{place}"),))
    return Section(name, (before_after_pictures(before, done.after.contrasts[name], f"contrast-{place}"),))
