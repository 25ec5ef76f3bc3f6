"""Records and estimators in a notebook: self-contained HTML in the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from html import escape
from itertools import count
from typing import Any

from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.audit_records import SHOWN
from orthocal.formats import between, number
from orthocal.plots import calibration_map, reliability
from orthocal.reporting.calibrations import calibration_figures
from orthocal.reporting.choices import about_losses, choice_figures
from orthocal.reporting.figures import Figure, comparison_figures, figures_of, overlap_figures
from orthocal.reporting.page.render import picture as svg_picture
from orthocal.reporting.sensitivities import STRENGTH, sensitivity_figures

INKS = "--accent:currentColor;--grey:currentColor;--paper:transparent"
"""What the page's colours are here: the ink of the notebook."""
number_of_picture = count()
CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"


def assessment_html(assessment: Assessment) -> str:
    """Return the verdict, the figures behind it and the reliability plot."""
    return fragment(
        "Assessment",
        assessment.verdict,
        figures_of(assessment),
        [str(check) for check in assessment.checks if check.result != "passed"],
        _drawn("Reliability plot", reliability, assessment),
    )


def comparison_html(comparison: Comparison) -> str:
    """Return the verdict on a change of predictions and the figures behind it."""
    said = comparison.summary().partition("\n")[0]
    return fragment("Comparison", said, comparison_figures(comparison), [], "")


def calibration_html(done: Any) -> str:
    """Return the recommendation, the figures and the checks of a calibration, and what its map does."""
    notes = [str(check) for check in done.checks if check.result != "passed"]
    picture = _drawn(
        "Calibration map", partial(calibration_map, band=done.band_or_none), done.map, done.before.predictions
    )
    return fragment("Calibration", str(done.recommendation), calibration_figures(done)[1:], notes, picture)


def audit_html(audit: Any) -> str:
    """Return what an audit found in words, and its subgroups as a picture."""
    rows = [
        Figure(cell.name, number(cell.excess), f"too high, interval {between(cell.interval)}")
        for cell in audit.found[:SHOWN]
    ]
    return fragment("Audit", audit.headline, rows, [], _drawn("Subgroups", audit.plot))


def choice_html(choice: Any) -> str:
    """Return the verdict on rivals, their figures, and the leaderboard as a picture."""
    notes = [about_losses(choice), *(str(check) for check in choice.checks if check.result != "passed")]
    picture = _drawn("Leaderboard", choice.plot)
    return fragment("Choice", choice.verdict, choice_figures(choice), notes, picture)


def sensitivity_html(found: Any) -> str:
    """Return what unmeasured confounding could change, the figures behind it, and the contour picture."""
    if found.reason:
        return fragment("Sensitivity", found.reason, [], [], "")
    picture = _drawn("Strength of an unmeasured confounder", found.plot)
    return fragment("Sensitivity", found.robustness.text, sensitivity_figures(found), [STRENGTH], picture)


def estimator_html(estimator: Any) -> str:
    """Return how an estimator is set and, once fitted, what it does to predictions."""
    name, code = type(estimator).__name__, f"<code>{escape(repr(estimator))}</code>"
    if not hasattr(estimator, "map_"):
        return fragment(name, "Not fitted yet.", [], [], "", code)
    before, calibrator, loss = estimator.prediction_, estimator.calibrator_, estimator.loss_
    after = estimator.map_.predict(before)
    rows = [
        Figure("method", getattr(calibrator, "choice_", type(calibrator).__name__), getattr(calibrator, "reason_", "")),
        Figure("rows", f"{len(before):,}", "that the map was fitted on"),
        Figure("mean prediction", number(before.mean()), f"from {between((before.min(), before.max()))}"),
        Figure("mean calibrated prediction", number(after.mean()), f"from {between((after.min(), after.max()))}"),
        *overlap_figures(loss.overlap),
    ]
    honest = "Judge it on rows the map never saw: assess(calibrated prediction, loss of those rows)."
    return fragment(
        name, "Fitted.", rows, [honest], _drawn("Calibration map", calibration_map, estimator.map_, before), code
    )


def fragment(
    title: str, verdict: str, rows: Iterable[Figure], notes: Iterable[str], picture: str, code: str = ""
) -> str:
    """Lay out words, a table and a picture beside each other; `picture` and `code` are HTML, all else is text."""
    lines = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:normal;white-space:nowrap">{escape(name.strip())}</th>'
        f'<td style="{CELL};white-space:nowrap"><strong>{escape(figure)}</strong></td>'
        f'<td style="{CELL};opacity:0.75">{escape(meaning)}</td></tr>'
        for name, figure, meaning in rows
    )
    table = f'<table style="border-collapse:collapse;margin:0.5em 0;font-size:inherit">{lines}</table>' if lines else ""
    small = "".join(f'<p style="margin:0.3em 0;opacity:0.75">{escape(note)}</p>' for note in notes)
    words = f'<p style="margin:0 0 0.3em"><strong>{escape(title)}.</strong> {escape(verdict)}</p>{code}{table}{small}'
    return (
        '<div class="orthocal" style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start;line-height:1.4">'
        f'<div style="flex:1 1 26em;max-width:46em">{words}</div>{picture}</div>'
    )


def _drawn(words: str, plot: Callable[..., Any], *records: Any) -> str:
    """Return a plot as the page draws it; names in it differ from those of every other picture in the notebook."""
    shown = svg_picture(plot(*records).figure, "", "", f"orthocal-{next(number_of_picture)}").svg
    return f'<div role="img" aria-label="{words}" style="flex:0 0 28em;{INKS}">{shown}</div>'
