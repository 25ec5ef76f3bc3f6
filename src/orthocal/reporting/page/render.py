"""From a page's records to one HTML file that needs nothing else; drawings as SVG in the reader's colours."""

from __future__ import annotations

import io
import re
from functools import cache
from typing import TYPE_CHECKING

from orthocal.reporting.page.document import Page, Picture

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure


def render(page: Page) -> str:
    """Return the page as HTML; everything but drawings is escaped."""
    return _environment().get_template("page.html").render(page=page)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("orthocal.reporting.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


INKS = {
    "#000000": "currentColor",
    "#1b1b1b": "currentColor",
    "#0b5fa5": "var(--accent)",
    "#8a8a8a": "var(--grey)",
    "#ffffff": "var(--paper)",
}
"""Colours of the plots, and what they are in a page, where light and dark differ."""

LEAST_SHOWN = 0.6
"""A drawing is never shown below this share of its size: its words would be too small; it scrolls instead."""


def picture(figure: Figure, alternative: str, caption: str, name: str) -> Picture:
    """Draw a figure as SVG and close it; `name` keeps its parts apart from those of other drawings of the page."""
    import matplotlib.pyplot as plt

    raw = io.StringIO()
    with plt.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(raw, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return Picture(_fit_for_a_page(raw.getvalue(), name), alternative, caption)


def _fit_for_a_page(drawing: str, name: str) -> str:
    """Leave the prologue out, let the width follow the page, and colour the ink by the page."""
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r'href="#', f'href="#{name}-', drawing)
    drawing = drawing.replace("url(#", f"url(#{name}-")
    for ink, shown in INKS.items():
        drawing = drawing.replace(ink, shown)
    head, rest = drawing.split(">", 1)
    width = float(re.search(r'width="([\d.]+)pt"', head).group(1))  # type: ignore[union-attr]  # matplotlib writes it
    head = re.sub(r'\b(width|height)="[\d.]+pt"', "", head)
    style = f'style="max-width: {width:.0f}pt; min-width: {LEAST_SHOWN * width:.0f}pt"'
    return f'{head} {style} fill="currentColor" aria-hidden="true" focusable="false">{rest}'
