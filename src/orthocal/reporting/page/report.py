"""A verdict as one HTML page a manager can read and a statistician can check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orthocal.assessment import Assessment
from orthocal.assessment.status import CALIBRATED, INCONCLUSIVE, MISCALIBRATED, STATUSES
from orthocal.errors import OrthocalError
from orthocal.mapfile import write_text
from orthocal.reporting.calibrations import calibration_figures
from orthocal.reporting.page.arms import arms_page, several_arms_page
from orthocal.reporting.page.audits import audit_sections
from orthocal.reporting.page.blocks import before_after_pictures, errors_picture, reliability_picture
from orthocal.reporting.page.confounding import sensitivity_section
from orthocal.reporting.page.document import TITLE, Block, Marked, Page, Section
from orthocal.reporting.page.models import CHOOSE, chapter_of, models_page
from orthocal.reporting.page.render import render
from orthocal.reporting.page.sections import (
    checks_sections,
    decision_sections,
    foot,
    how_section,
    map_section,
    overlap_section,
    ranking_sections,
    snippet_of,
    subgroup_sections,
    use_section,
)
from orthocal.reporting.page.since import earlier_record, with_changes
from orthocal.reporting.page.tables import calibrations_table, figures_table, shown_figures
from orthocal.reporting.page.top import TONES, calibration_cards, capital, checks_marks, verdict_cards
from orthocal.sensitivity import Sensitivity
from orthocal.study import ArmsAssessment, ArmsCalibration, Calibration


def report(
    assessments: Assessment | Calibration | Mapping[str, Assessment] | Mapping[str, Calibration],
    path: str | Path,
    *,
    title: str = TITLE,
    how: Mapping[str, str] | None = None,
    sensitivity: Sensitivity | Mapping[str, Sensitivity] | None = None,
    since: str | Path | Mapping[str, Any] | None = None,
) -> None:
    """Write one self-contained HTML page: the answer first, then pictures, figures, and how to repeat it.

    The page makes no request, prints, and follows the reader's light or dark colours. Everything is there without script; with
    it, sections fold, marks say what they are, and a slider walks over costs. Figures of every picture can be saved as CSV.

    Parameters
    ----------
    assessments : Assessment or Calibration, or a mapping of names to either
        A verdict, a calibration with its verdicts before and after, or several of a kind side by side; those of several arms too.
    path : str or Path
        The file to write, under another name until it is whole.
    title : str
    how : mapping of str to str, optional
        What else another person needs in order to repeat it, such as the file the data came from.
    sensitivity : Sensitivity, or mapping of str to Sensitivity, optional
        From `Study.sensitivity`: each becomes a section with its picture.
    since : str, Path or mapping, optional
        An earlier `assessment.json`, or what `to_dict` returned then: the page shows its figures beside those of now.

    Examples
    --------
    >>> import pathlib, tempfile, orthocal
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=1000, random_state=0)
    >>> loss = orthocal.orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(orthocal.assess(data.effect, loss), f"{folder}/report.html")
    ...     pathlib.Path(f"{folder}/report.html").read_text("utf-8")[:15]
    '<!DOCTYPE html>'
    """
    page = report_page(assessments, title, how, since)
    given = sensitivity if isinstance(sensitivity, Mapping) else {} if sensitivity is None else {"": sensitivity}
    more = tuple(sensitivity_section(one, place) for place, one in enumerate(given.values()))
    write_text(Path(path), render(replace(page, sections=(*page.sections[:-1], *more, page.sections[-1]))))


def report_page(
    assessments: Any,
    title: str = TITLE,
    how: Mapping[str, str] | None = None,
    since: str | Path | Mapping[str, Any] | None = None,
) -> Page:
    """Return the page of a verdict or of a calibration, or of several of a kind."""
    if since is None:
        return _page_of(assessments, title, dict(how or {}))
    earlier_record(since)  # refused before anything is drawn
    return with_changes(_page_of(assessments, title, dict(how or {})), since, assessments)


def _page_of(found: Any, title: str, how: dict[str, str]) -> Page:
    if type(found) in ONE:
        return ONE[type(found)](found, title, how)
    kinds = {type(one) for one in found.values()} if isinstance(found, Mapping) else set()
    if len(kinds) != 1 or not kinds <= set(SEVERAL):
        raise OrthocalError(
            "`assessments` must be an Assessment, a Calibration, or a mapping of names to one kind of these; it is "
            f"{_kind(found)}."
        )
    if len(found) == 1:
        ((name, only),) = found.items()
        return _page_of(only, title, {"prediction": name, **how})
    return SEVERAL[kinds.pop()](title, found, how)


def _kind(found: Any) -> str:
    """Say what was given where it cannot be reported."""
    if not isinstance(found, Mapping):
        return type(found).__name__
    kinds = dict.fromkeys(type(one).__name__ for one in found.values())
    return f"a mapping to {' and '.join(kinds)}" if kinds else "empty"


def _page(title: str, mark: str, lead: str, sections: list[Section], verdict: Assessment, how: dict[str, str]) -> Page:
    return Page(
        title=title,
        mark=capital(mark),
        tone=TONES[mark],
        lead=lead,
        top=(verdict_cards(verdict), *checks_marks(verdict.checks)),
        sections=(*sections, how_section(verdict, how)),
        foot=foot(),
    )


def assessment_page(verdict: Assessment, title: str, how: dict[str, str]) -> Page:
    """Return the page of one verdict."""
    return _page(title, verdict.status, verdict.verdict, _sections(verdict, "verdict"), verdict, how)


def calibration_page(done: Calibration, title: str, how: dict[str, str]) -> Page:
    """Return the page of a calibration: what to do and why, then before and after."""
    lead = "\n".join([*done.recommendation.reasons, f"Before: {done.before.verdict}", done.story])
    page = _page(title, done.recommendation.action, lead, _job_sections(done), done.before, how)
    return replace(page, top=(calibration_cards(done), *checks_marks(done.checks)))


def _several(title: str, verdicts: Mapping[str, Assessment], how: dict[str, str]) -> Page:
    """One page for several predictions: their statuses together, then each in turn."""
    summary = tuple((TONES[one.status], f"{name}:", one.verdict) for name, one in verdicts.items())
    sections = [Section("Side by side", (errors_picture(verdicts), Marked(summary), figures_table(verdicts)))]
    for place, (name, verdict) in enumerate(verdicts.items()):
        sections += chapter_of(name, _sections(verdict, f"verdict-{place}"))
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


def _several_calibrations(title: str, done: Mapping[str, Calibration], how: dict[str, str]) -> Page:
    """One page for several calibrations: side by side, then each in turn."""
    verdicts = {f"{name}, {when}": one for name, each in done.items() for when, one in _verdicts(each).items()}
    sections = [Section("Side by side", (errors_picture(verdicts), calibrations_table(done), CHOOSE))]
    for place, (name, one) in enumerate(done.items()):
        sections += chapter_of(name, _job_sections(one, f"model-{place}-"))
    return models_page(title, done, (*sections, how_section(next(iter(done.values())).before, how)))


def _verdicts(done: Calibration) -> dict[str, Assessment]:
    return {"before": done.before} if done.after is None else {"before": done.before, "after": done.after}


def _job_sections(done: Calibration, place: str = "") -> list[Section]:
    """Sections of a calibration; what is said after it rests on rows the map never saw. `place` tells several apart."""
    verdicts = _verdicts(done)
    last = list(verdicts.values())[-1]
    band = None if done.before.is_constant else done.band_or_none
    reliability: Block = (
        reliability_picture(done.before, f"{place}before", band)
        if done.after is None
        else before_after_pictures(done.before, done.after, f"{place}reliability", band)
    )
    found = shown_figures("Calibration", calibration_figures(done)[1:])
    return [
        Section("What was found", (errors_picture(verdicts, f"{place}errors"), found)),
        *checks_sections(done.checks),
        Section("Predicted and estimated effects", (reliability,)),
        map_section(done, place),
        *audit_sections(done, place),
        *_further(last, f"{place}{'after' if done.after is not None else 'before'}"),
        Section("Figures", (figures_table(verdicts),), folded=True),
        use_section(snippet_of(done)),
    ]


def _sections(verdict: Assessment, name: str) -> list[Section]:
    """Sections of one verdict."""
    one = {"prediction": verdict}
    return [
        *checks_sections(verdict.checks),
        Section("Predicted and estimated effects", (reliability_picture(verdict, name),)),
        *_further(verdict, name),
        Section("Figures", (figures_table(one),), folded=True),
    ]


def _further(verdict: Assessment, name: str) -> list[Section]:
    """Ranking, decisions, subgroups, overlap and unmeasured confounding, as far as the verdict has them."""
    return [
        *ranking_sections(verdict, name),
        *decision_sections(verdict, name),
        *subgroup_sections(verdict, name),
        overlap_section(verdict, name),
    ]


def _contrasts_page(found: ArmsAssessment, title: str, how: dict[str, str]) -> Page:
    """Return the page of a verdict on several arms: every contrast side by side."""
    return _page_of(found.contrasts, title, how)


ONE: dict[type, Callable[[Any, str, dict[str, str]], Page]] = {
    Assessment: assessment_page,
    Calibration: calibration_page,
    ArmsAssessment: _contrasts_page,
    ArmsCalibration: arms_page,
}
"""Pages of one record of a kind."""
SEVERAL: dict[type, Callable[[str, Any, dict[str, str]], Page]] = {
    Assessment: _several,
    Calibration: _several_calibrations,
    ArmsCalibration: several_arms_page,
}
"""Pages of several records of a kind, by name."""
