"""The pages of calibrations of several arms: of one model, and of several side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orthocal.assessment import Assessment
from orthocal.reporting.arm_figures import arms_calibration_figures
from orthocal.reporting.page.arm_pictures import contrasts_pictures, contrasts_table
from orthocal.reporting.page.blocks import before_after_pictures, errors_picture, reliability_picture
from orthocal.reporting.page.document import Marked, Page, Section
from orthocal.reporting.page.models import CHOOSE, chapter_of, models_page
from orthocal.reporting.page.sections import checks_sections, foot, how_section, overlap_section, use_section
from orthocal.reporting.page.tables import figures_table, shown_figures
from orthocal.reporting.page.top import TONES, arms_cards, capital, checks_marks
from orthocal.study.arms_calibration import ArmsCalibration

SNIPPET = """import orthocal

joint_map = orthocal.load("map.json")
calibrated = joint_map.predict(predictions)  # a column for each arm, in the order {columns}

# on the command line:  orthocal apply map.json new.csv --out calibrated.csv
# in a database:        orthocal export map.json --format sql"""


def arms_page(done: ArmsCalibration, title: str, how: dict[str, str]) -> Page:
    """Return the page: the recommendation, all contrasts side by side, and every contrast in turn."""
    return Page(
        title=title,
        mark=capital(done.recommendation.action),
        tone=TONES[done.recommendation.action],
        lead="\n".join(done.recommendation.reasons),
        top=(arms_cards(done), *checks_marks(done.checks)),
        sections=(*_sections(done, "", _contrasts(done)), how_section(_first(done), how)),
        foot=foot(),
    )


def several_arms_page(title: str, done: Mapping[str, ArmsCalibration], how: dict[str, str]) -> Page:
    """One page for several models of all arms: every contrast of each side by side, then each model in turn."""
    verdicts = {f"{name}, {contrast}": one for name, each in done.items() for contrast, one in _last(each).items()}
    tables = tuple(contrasts_table(one, name) for name, one in done.items())
    sections = [Section("Side by side", (errors_picture(verdicts), *tables, CHOOSE))]
    for place, (name, one) in enumerate(done.items()):
        sections += chapter_of(name, _sections(one, f"model-{place}-"))
    return models_page(title, done, (*sections, how_section(_first(next(iter(done.values()))), how)))


def _last(done: ArmsCalibration) -> dict[str, Assessment]:
    """Return the verdicts on all contrasts after calibration, or before it where nothing was held out."""
    return (done.before if done.after is None else done.after).contrasts


def _first(done: ArmsCalibration) -> Assessment:
    return next(iter(_last(done).values()))


def _sections(done: ArmsCalibration, place: str, more: Sequence[Section] = ()) -> list[Section]:
    """Sections of a model: all contrasts side by side, then what is `more`; `place` tells several models apart."""
    verdicts = _last(done)
    marks = tuple((TONES[one.status], f"{name}:", one.verdict) for name, one in verdicts.items())
    figures = shown_figures("Calibration", arms_calibration_figures(done)[1:])
    return [
        Section("What was found", (errors_picture(verdicts, f"{place}errors"), Marked(marks), figures)),
        Section("Arms side by side", (contrasts_pictures(done, f"{place}contrasts"), contrasts_table(done, ""))),
        *checks_sections(done.checks),
        *more,
        Section("Figures", (figures_table(verdicts),), folded=True),
        overlap_section(_first(done), f"{place}overlap"),
        use_section(SNIPPET.format(columns=", ".join(done.columns))),
    ]


def _contrasts(done: ArmsCalibration) -> list[Section]:
    """Predicted and estimated effects of each contrast, before and after, large."""
    found = []
    for place, (name, before) in enumerate(done.before.contrasts.items()):
        drawn = (
            reliability_picture(before, f"contrast-{place}")
            if done.after is None
            else before_after_pictures(before, done.after.contrasts[name], f"contrast-{place}")
        )
        found.append(Section(name, (drawn,), folded=True))
    return found
