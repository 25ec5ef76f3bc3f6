"""What verdicts and calibrations of several arms show: as text, as JSON, in a notebook, and on a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orthocal.mapfile import write_text
from orthocal.reporting.arm_figures import arms_calibration_figures, arms_figures
from orthocal.reporting.calibrations import checks_in_words, shared_record
from orthocal.reporting.figures import as_text
from orthocal.reporting.notebook import fragment
from orthocal.reporting.page.arms import arms_page
from orthocal.reporting.page.document import TITLE
from orthocal.reporting.page.render import render
from orthocal.reporting.page.since import with_changes
from orthocal.study.arms_assessment import ArmsAssessment
from orthocal.study.arms_calibration import ArmsCalibration


def arms_summary(verdict: ArmsAssessment) -> str:
    """Return the verdict on all arms together and the figures of each contrast as text."""
    parts = [f"All contrasts together: {verdict.status}.", as_text(arms_figures(verdict)[1:])]
    if verdict.checks:
        parts.insert(1, checks_in_words(verdict.checks))
    return "\n\n".join([*parts, *(f"{name}: {one.verdict}" for name, one in verdict.contrasts.items())])


def arms_record(verdict: ArmsAssessment) -> dict[str, Any]:
    """Return a verdict on several arms as plain numbers, strings, lists and dicts."""
    return {
        "arms": [str(arm) for arm in verdict.arms],
        "status": verdict.status,
        "p_values": dict(verdict.p_values),
        "checks": [vars(check) for check in verdict.checks],
        "figures": [line._asdict() for line in arms_figures(verdict)],
        "contrasts": {name: one.to_dict() for name, one in verdict.contrasts.items()},
    }


def arms_html(verdict: ArmsAssessment) -> str:
    """Return a verdict on several arms for a notebook."""
    notes = [str(check) for check in verdict.checks if check.result != "passed"]
    return fragment("Assessment", f"All contrasts together: {verdict.status}.", arms_figures(verdict)[1:], notes, "")


def arms_calibration_summary(done: ArmsCalibration) -> str:
    """Return recommendation, checks and verdicts as text."""
    parts = [str(done.recommendation), checks_in_words(done.checks), as_text(arms_calibration_figures(done)[1:])]
    if done.reason:
        parts.append(f"Method: {done.reason}")
    if done.after is None:
        parts.append("AFTER: not verified on unseen rows; no rows were held out.")
    return "\n\n".join(parts)


def arms_calibration_record(done: ArmsCalibration) -> dict[str, Any]:
    """Return a calibration of several arms as plain numbers, strings, lists and dicts."""
    averages = {str(arm): value for arm, value in done.averages.items()}
    return {**shared_record(done, arms_calibration_figures(done)), "average_effects": averages}


def arms_calibration_html(done: ArmsCalibration) -> str:
    """Return a calibration of several arms for a notebook."""
    notes = [str(check) for check in done.checks if check.result != "passed"]
    return fragment("Calibration", str(done.recommendation), arms_calibration_figures(done)[1:], notes, "")


def arms_report(
    done: ArmsCalibration,
    path: str | Path,
    *,
    title: str = TITLE,
    how: Mapping[str, str] | None = None,
    since: Any = None,
) -> None:
    """Write one self-contained HTML page: recommendation, checks, and every contrast before and after."""
    page = arms_page(done, title, dict(how or {}))
    write_text(Path(path), render(page if since is None else with_changes(page, since, done)))
