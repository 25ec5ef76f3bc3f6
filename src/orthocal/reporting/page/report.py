"""A verdict as one HTML page a manager can read and a statistician can check."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orthocal import __version__
from orthocal.assessment import Assessment
from orthocal.assessment.parts import Check
from orthocal.assessment.status import CALIBRATED, INCONCLUSIVE, MISCALIBRATED, STATUSES
from orthocal.errors import OrthocalError
from orthocal.formats import between, number, percent
from orthocal.group_maps import GroupMap
from orthocal.mapfile import write_text
from orthocal.reporting.calibrations import calibration_figures
from orthocal.reporting.page.blocks import (
    audit_picture,
    audit_table,
    before_after_pictures,
    bins_table,
    checks_table,
    decision_picture,
    figures_table,
    forest_picture,
    groups_table,
    how_facts,
    map_picture,
    overlap_picture,
    overlap_table,
    reliability_picture,
    shifts_table,
    shown_figures,
    survival_pictures,
)
from orthocal.reporting.page.confounding import sensitivity_section
from orthocal.reporting.page.document import Block, Code, Marked, Page, Section, Text
from orthocal.reporting.page.render import render
from orthocal.sensitivity import Sensitivity
from orthocal.study import Calibration
from orthocal.study.recommendation import (
    COLLECT,
    DO_NOT_USE,
    HOLD_OUT,
    USE_AVERAGE,
    USE_CALIBRATED,
    USE_PREDICTION,
)

TONES = {
    CALIBRATED: "good",
    MISCALIBRATED: "bad",
    INCONCLUSIVE: "open",
    USE_PREDICTION: "good",
    USE_CALIBRATED: "good",
    USE_AVERAGE: "good",
    DO_NOT_USE: "bad",
    COLLECT: "open",
    HOLD_OUT: "open",
}
"""How statuses and recommendations are coloured."""
TITLE = "Can this model of causal effects be believed?"
SNIPPET = """import orthocal

calibration_map = orthocal.load("map.json")
calibrated = calibration_map.predict(predictions)

# on the command line:  orthocal apply map.json new.csv --prediction tau --out calibrated.csv
# in a database:        orthocal export map.json --format sql"""


def report(
    assessments: Assessment | Mapping[str, Assessment] | Calibration,
    path: str | Path,
    *,
    title: str = TITLE,
    how: Mapping[str, str] | None = None,
    sensitivity: Mapping[str, Sensitivity] | None = None,
) -> None:
    """Write one self-contained HTML page: the answer first, then pictures, figures, and how to repeat it.

    The page needs no network and no script, prints, and follows the reader's light or dark colours.

    Parameters
    ----------
    assessments : Assessment, mapping of str to Assessment, or Calibration
        A verdict, several side by side, or a calibration with its verdicts before and after.
    path : str or Path
        The file to write, under another name until it is whole.
    title : str
    how : mapping of str to str, optional
        What else another person needs in order to repeat it, such as the file the data came from.
    sensitivity : mapping of str to Sensitivity, optional
        By prediction, from `Study.sensitivity`: each becomes a section with its picture.

    Examples
    --------
    >>> import pathlib, tempfile, orthocal
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=1000, random_state=0)
    >>> loss = orthocal.orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(orthocal.assess(data.effect, loss), f"{folder}/report.html")
    ...     pathlib.Path(f"{folder}/report.html").read_text()[:15]
    '<!DOCTYPE html>'
    """
    page = report_page(assessments, title, how)
    more = tuple(sensitivity_section(one, place) for place, one in enumerate((sensitivity or {}).values()))
    write_text(Path(path), render(replace(page, sections=(*page.sections[:-1], *more, page.sections[-1]))))


def report_page(
    assessments: Assessment | Mapping[str, Assessment] | Calibration,
    title: str = TITLE,
    how: Mapping[str, str] | None = None,
) -> Page:
    """Return the page of a verdict, of several, or of a calibration."""
    how = dict(how or {})
    if isinstance(assessments, Calibration):
        done = assessments
        lead = "\n".join([*done.recommendation.reasons, f"Before: {done.before.verdict}", done.story])
        return _page(title, done.recommendation.action, lead, _job_sections(done), done.before, how)
    if isinstance(assessments, Assessment):
        return _page(
            title, assessments.status, assessments.verdict, _sections(assessments, "verdict"), assessments, how
        )
    if isinstance(assessments, Mapping) and any(isinstance(one, Calibration) for one in assessments.values()):
        raise OrthocalError(
            "`assessments` must be one Calibration, or verdicts by name; these are several. Write a page each."
        )
    if not isinstance(assessments, Mapping) or not assessments:
        raise OrthocalError(
            "`assessments` must be an Assessment, a mapping of names to them, or a Calibration; it is "
            f"{'empty' if isinstance(assessments, Mapping) else type(assessments).__name__}."
        )
    if len(assessments) == 1:
        ((name, only),) = assessments.items()
        return report_page(only, title, {"prediction": name, **how})
    return _several(title, assessments, how)


def _page(title: str, mark: str, lead: str, sections: list[Section], verdict: Assessment, how: dict[str, str]) -> Page:
    return Page(
        title=title,
        mark=capital(mark),
        tone=TONES[mark],
        lead=lead,
        sections=(*sections, how_section(verdict, how)),
        foot=foot(),
    )


def capital(text: str) -> str:
    """Return a text that begins with a capital."""
    return f"{text[0].upper()}{text[1:]}"


def _several(title: str, verdicts: Mapping[str, Assessment], how: dict[str, str]) -> Page:
    """One page for several predictions: their statuses together, then each in turn."""
    summary = tuple((TONES[v.status], capital(v.status), f"{name}: {v.verdict}") for name, v in verdicts.items())
    sections = [Section("Verdicts", (Marked(summary), figures_table(verdicts)))]
    for place, (name, verdict) in enumerate(verdicts.items()):
        own = _sections(verdict, f"verdict-{place}")
        sections += [Section(f"{name}: {section.title.lower()}", section.blocks) for section in own]
    named = {status: [name for name, verdict in verdicts.items() if verdict.status == status] for status in STATUSES}
    tone = next(TONES[status] for status in (MISCALIBRATED, INCONCLUSIVE, CALIBRATED) if named[status])
    lead = " ".join(f"{capital(status)}: {', '.join(names)}." for status, names in named.items() if names)
    return Page(
        title=title,
        mark=f"{len(named[CALIBRATED])} of {len(verdicts)} calibrated",
        tone=tone,
        lead=lead,
        sections=(*sections, how_section(next(iter(verdicts.values())), how)),
        foot=foot(),
    )


def _job_sections(done: Calibration) -> list[Section]:
    """Sections of a calibration; what is said after it rests on rows the map never saw."""
    verdicts = {"before": done.before} if done.after is None else {"before": done.before, "after": done.after}
    last, band = done.before if done.after is None else done.after, done.band_or_none
    pictures: list[Block] = [
        reliability_picture(done.before, "before", band)
        if done.after is None
        else before_after_pictures(done.before, done.after, band=band)
    ]
    reason = [Text(f"Method: {done.reason}")] if done.reason else []
    ships = "The map was fitted on the rows that were not held out."
    if done.recommendation.action != USE_CALIBRATED:
        ships += f" It is not what is recommended, which is: {done.recommendation.action}."
    if done.map is not done.verified_map:
        ships = (
            f"The map that ships was fitted again on all rows; it is {number(done.distance or 0.0)} (root mean square) away from "
            "the one that the verdict after calibration belongs to."
        )
    return [
        Section("What was found", (shown_figures("Calibration", calibration_figures(done)[1:]),)),
        *checks_sections(done.checks),
        Section("Predicted and estimated effects", tuple(pictures)),
        Section(
            "What calibration does to a prediction",
            (map_picture(done.map, done.before, band), Text(ships), *reason),
        ),
        *_audit_sections(done),
        Section("Figures", (figures_table(verdicts), bins_table(last))),
        *_further(last, "after" if done.after is not None else "before"),
        Section("Use the map", (Text("Load the map and calibrate new predictions:"), Code(_snippet(done)))),
    ]


def _snippet(done: Calibration) -> str:
    """Return how the map is used; a map of groups needs their columns."""
    return SNIPPET.replace("(predictions)", "(predictions, table)") if isinstance(done.map, GroupMap) else SNIPPET


def _audit_sections(done: Calibration) -> list[Section]:
    """The subgroups that were named to be put right, before and after."""
    if done.audit_before is None:
        return []
    blocks: list[Block] = [audit_picture(done.audit_before, done.audit_after)]
    for when, audit in {"Before": done.audit_before, "After": done.audit_after}.items():
        if audit is not None:
            blocks.append(audit_table(when, audit) if audit.found else Text(f"{when}: {audit.headline}"))
    none = "No subgroup stood out, so the map is that of the prediction alone."
    blocks.append(shifts_table(done.map) if isinstance(done.map, GroupMap) else Text(none))
    return [Section("Subgroups before and after", tuple(blocks))]


def checks_sections(checks: tuple[Check, ...]) -> list[Section]:
    """What was checked, what did not pass first."""
    return [Section("Checks", (checks_table(checks),))] if checks else []


def _sections(verdict: Assessment, name: str) -> list[Section]:
    """Sections of one verdict."""
    one = {"prediction": verdict}
    return [
        *checks_sections(verdict.checks),
        Section("Predicted and estimated effects", (reliability_picture(verdict, name),)),
        Section("Figures", (figures_table(one), bins_table(verdict))),
        *_further(verdict, name),
    ]


def _further(verdict: Assessment, name: str) -> list[Section]:
    """Subgroups, decisions, overlap and unmeasured confounding, as far as the verdict has them."""
    sections = []
    if verdict.subgroups:
        sections.append(Section("Subgroups", (forest_picture(verdict, name), groups_table(verdict))))
    if verdict.value is not None:
        curve = [] if verdict.is_constant else [decision_picture(verdict, name)]
        sections.append(Section("What deciding by it is worth", (*curve, Text(_value(verdict)))))
    blocks: list[Block] = [Text(verdict.sensitivity.text)]
    if verdict.overlap is not None:
        pictures = [overlap_picture(verdict, name)] if verdict.overlap.levels else []
        blocks = [*pictures, *survival_pictures(verdict, name), overlap_table(verdict.overlap), *blocks]
    return [*sections, Section("Overlap and unmeasured confounding", tuple(blocks))]


def _value(verdict: Assessment) -> str:
    value: Any = verdict.value
    return (
        f"At a cost of {number(value.cost)} per treated person the prediction treats {value.share_treated:.1%} and gains "
        f"{number(value.value)} per row ({percent(verdict.level)} interval {between(value.interval)}); treating everyone gains "
        f"{number(value.treating_everyone)}, no one 0."
    )


def how_section(verdict: Assessment, how: dict[str, str]) -> Section:
    """Return how it was computed and what must hold."""
    blocks: list[Block] = [how_facts(verdict, how)]
    if verdict.origin is not None:
        blocks.append(Text(f"What must hold: {verdict.origin.assumption}"))
    blocks.append(
        Text(
            "The predictions must come from a model that was not trained on these rows. The error is that of bins of the "
            "prediction, a lower bound of the error over all its values."
        )
    )
    return Section("How it was computed", tuple(blocks))


def foot() -> str:
    """Return the versions behind a page."""
    from importlib.metadata import version

    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"orthocal {__version__}, Python {platform.python_version()}, {libraries}"
