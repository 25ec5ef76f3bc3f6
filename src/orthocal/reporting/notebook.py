"""Records and estimators in a notebook: self-contained HTML in the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.bin_table import hull, reaches
from orthocal.formats import between, number
from orthocal.reporting.figures import Figure, comparison_figures, figures_of, overlap_figures

SIZE, LEFT, BOTTOM, EDGE = 280, 46, 36, 8
"""Pixels: the picture's side, its margins for numbers and words, and the margin of the other sides."""
MOST_TICKS = 7
GRID = 201
"""Predictions at which a map is drawn."""
CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"


def assessment_html(assessment: Assessment) -> str:
    """Return the verdict, the figures behind it and the reliability plot."""
    return _fragment("Assessment", assessment.verdict, figures_of(assessment), [], _reliability(assessment))


def comparison_html(comparison: Comparison) -> str:
    """Return the verdict on a change of predictions and the figures behind it."""
    return _fragment("Comparison", f"{comparison.verdict.capitalize()}.", comparison_figures(comparison), [], "")


def estimator_html(estimator: Any) -> str:
    """Return how an estimator is set and, once fitted, what it does to predictions."""
    name, code = type(estimator).__name__, f"<code>{escape(repr(estimator))}</code>"
    if not hasattr(estimator, "map_"):
        return _fragment(name, "Not fitted yet.", [], [], "", code)
    before, calibrator, loss = estimator.prediction_, estimator.calibrator_, estimator.loss_
    after = estimator.map_.predict(before)
    rows = [
        Figure("method", getattr(calibrator, "choice_", type(calibrator).__name__), getattr(calibrator, "reason_", "")),
        Figure("rows", f"{len(before):,}", "that the map was fitted on"),
        Figure("mean prediction", number(before.mean()), f"from {between((before.min(), before.max()))}"),
        Figure("mean calibrated prediction", number(after.mean()), f"from {between((after.min(), after.max()))}"),
        *overlap_figures(loss.overlap),
    ]
    honest = "What this is worth, rows the map never saw can tell: assess(calibrated prediction, loss of those rows)."
    return _fragment(name, "Fitted.", rows, [honest], _map_picture(estimator.map_, before), code)


def _fragment(
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


@dataclass(frozen=True)
class Scale:
    """A square picture's numbers to pixels: `across` the page from the left, `up` from the bottom."""

    across: tuple[float, float]
    up: tuple[float, float]

    def x(self, value: Any) -> Any:
        """Pixels from the left."""
        low, high = self.across
        return np.round(LEFT + (value - low) / (high - low) * (SIZE - LEFT - EDGE), 1)

    def y(self, value: Any) -> Any:
        """Pixels from the top."""
        low, high = self.up
        return np.round(SIZE - BOTTOM - (value - low) / (high - low) * (SIZE - BOTTOM - EDGE), 1)


def _reliability(a: Assessment) -> str:
    """Draw estimated against predicted effect with both bars; where units differ, minus the residuals against zero."""
    prediction, diagonal = a.bins["prediction"], a.curve is not None
    height, sign = (a.bins["target"], 1) if diagonal else (-a.bins["residual"], -1)
    up = _hull(np.concatenate([hull(a.bins, height, sign), prediction if diagonal else np.zeros(1)]))
    scale = Scale(up, up) if diagonal else Scale(_hull(prediction), up)
    words = ("predicted effect", "estimated effect") if diagonal else ("prediction", f"too high or low, {a.unit}")
    marks = [
        _line(scale, scale.across, scale.across if diagonal else (0.0, 0.0), 'stroke-dasharray="5 3" opacity="0.5"'),
        *(
            _bars(scale, prediction, height, reaches(a.bins, name)[::sign], width)
            for name, width in (("band", 1), ("residual", 3))
        ),
        *(
            f'<circle cx="{scale.x(v)}" cy="{scale.y(h)}" r="3.5"/>'
            for v, h in zip(prediction, height, strict=True)
            if np.isfinite(h)
        ),
    ]
    return _picture(scale, words, marks, "Reliability plot")


def _map_picture(map_: Any, prediction: Floats) -> str:
    """Draw what the map makes of predictions, against leaving them as they are."""
    grid = np.linspace(prediction.min(), prediction.max(), GRID)
    calibrated = map_.predict(grid)
    ends = _hull(np.concatenate([grid, calibrated]))
    scale = Scale(ends, ends)
    points = " ".join(f"{x},{y}" for x, y in zip(scale.x(grid), scale.y(calibrated), strict=True))
    marks = [
        _line(scale, ends, ends, 'stroke-dasharray="5 3" opacity="0.5"'),
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="2"/>',
    ]
    return _picture(scale, ("prediction", "calibrated prediction"), marks, "Calibration map")


def _picture(scale: Scale, words: tuple[str, str], marks: list[str], name: str) -> str:
    low, middle = SIZE - BOTTOM, (LEFT + SIZE - EDGE) / 2
    axes = f'<path d="M{LEFT} {EDGE}V{low}H{SIZE - EDGE}" fill="none" stroke="currentColor" opacity="0.5"/>'
    across = [f'<text x="{scale.x(t)}" y="{low + 14}" text-anchor="middle">{t:g}</text>' for t in ticks(*scale.across)]
    up = [f'<text x="{LEFT - 5}" y="{scale.y(t) + 4}" text-anchor="end">{t:g}</text>' for t in ticks(*scale.up)]
    below = f'<text x="{middle}" y="{SIZE - 5}" text-anchor="middle">{escape(words[0])}</text>'
    beside = f'<text transform="translate(11 {low / 2}) rotate(-90)" text-anchor="middle">{escape(words[1])}</text>'
    return (
        f'<svg role="img" aria-label="{name}" width="{SIZE}" height="{SIZE}" viewBox="0 0 {SIZE} {SIZE}" '
        f'fill="currentColor" font-size="11" font-family="sans-serif" style="flex:none">'
        f"{axes}{''.join([*across, *up, below, beside, *marks])}</svg>"
    )


def _line(scale: Scale, across: tuple[float, float], up: tuple[float, float], style: str) -> str:
    start, end = ((scale.x(v), scale.y(h)) for v, h in zip(across, up, strict=True))
    return f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="currentColor" {style}/>'


def _bars(scale: Scale, prediction: Floats, height: Floats, reach: Floats, width: int) -> str:
    """Draw the bars that have both ends, as far as the picture goes."""
    ends = zip(prediction, *np.clip([height - reach[0], height + reach[1]], *scale.up), strict=True)
    path = "".join(f"M{scale.x(v)} {scale.y(low)}V{scale.y(high)}" for v, low, high in ends if np.isfinite(low + high))
    return f'<path d="{path}" stroke="currentColor" stroke-width="{width}"/>'


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two ends: at most `MOST_TICKS`, a step of 1, 2 or 5 times a power of ten apart."""
    power = 10.0 ** np.floor(np.log10((high - low) / MOST_TICKS))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * MOST_TICKS >= high - low)
    return [float(f"{step * k:.12g}") for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _hull(values: Floats) -> tuple[float, float]:
    """Return the ends of the values with a margin."""
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin
