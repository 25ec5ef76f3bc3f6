"""From a page's records to one HTML file that needs nothing else; drawings as SVG in the reader's colours."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from orthocal.reporting.page.document import Page, Picture, Section, Slider, Table

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure


def render(page: Page) -> str:
    """Return the page as HTML; everything but drawings is escaped."""
    script = _source("page.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            parts=list(_parts(page.sections)),
            style=_source("page.css"),
            script=script,
            policy=_policy(script),
        )
    )


def _parts(sections: Sequence[Section]) -> Iterator[tuple[str, str, list[tuple[str, Section]]]]:
    """Yield the parts of a page: an address and a name, and the sections that belong together, each with its address."""
    taken: set[str] = set()
    for name, together in groupby(sections, key=lambda section: section.part):
        part = _address(name, taken) if name else ""
        yield part, name, [(_address(f"{name} {section.title}", taken), section) for section in together]


def _address(text: str, taken: set[str]) -> str:
    """Return a name for links, which no other part of the page has."""
    first = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"
    found, count = first, 2
    while found in taken:
        found, count = f"{first}-{count}", count + 1
    taken.add(found)
    return found


def _policy(script: str) -> str:
    """Return what the page may do: run the one script it was written with, and reach nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _saved_as(table: Table) -> str:
    """Return an address that holds the table as a CSV file."""
    return f"data:text/csv;charset=utf-8,{quote(table.csv_text, errors='backslashreplace')}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("orthocal.reporting.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["saved_as"] = _saved_as
    return environment


@cache
def _source(name: str) -> str:
    """Return a file of the templates as it is."""
    environment: Any = _environment()
    text: str = environment.loader.get_source(environment, name)[0]
    return text.strip()


INKS = {
    "#000000": "currentColor",
    "#1b1b1b": "currentColor",
    "#0b5fa5": "var(--accent)",
    "#8a8a8a": "var(--grey)",
    "#ffffff": "var(--paper)",
    "#c2571a": "var(--orange)",
    "#2f7d4f": "var(--leaf)",
    "#7b4fa3": "var(--violet)",
    "#a3324b": "var(--rose)",
}
"""Colours of the plots, and what they are in a page, where light and dark differ."""

ENLARGED = 1.15
"""A drawing is shown at most so many times its size; below that it follows the width of the page."""
TIP = "tip-"
"""How the names of marks begin that say something when they are pointed at."""


def picture(
    figure: Figure,
    alternative: str,
    caption: str,
    name: str,
    *,
    table: Table | None = None,
    tips: Sequence[str] = (),
    slider: Slider | None = None,
) -> Picture:
    """Draw a figure as SVG and close it; `name` keeps its parts apart from those of other drawings of the page.

    `tips` are what marks called ``tip-0``, ``tip-1``, ... say when they are pointed at.
    """
    import matplotlib.pyplot as plt

    from orthocal.drawing import save_figure

    raw = io.StringIO()
    with plt.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        save_figure(figure, raw, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Picture(_with_tips(_fit_for_a_page(raw.getvalue(), name), tips, name), alternative, caption, table, slider)


def _with_tips(drawing: str, tips: Sequence[str], name: str) -> str:
    for place, text in enumerate(tips):
        mark = f'<g id="{name}-{TIP}{place}"'
        drawing = drawing.replace(f"{mark}>", f'{mark} class="tip"><title>{escape(text)}</title>')
    return drawing


def _fit_for_a_page(drawing: str, name: str) -> str:
    """Leave out what a page has itself, let the width follow the page, and take ink and letters from the page."""
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"font-family: [^;\"]*;? ?", "", drawing)
    drawing = re.sub(r'\b(d|x|y|transform)="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), drawing)
    drawing = re.sub(r"\s*\n\s*", "\n", drawing)
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r'href="#', f'href="#{name}-', drawing)
    drawing = drawing.replace("url(#", f"url(#{name}-")
    for ink, shown in INKS.items():
        drawing = drawing.replace(ink, shown)
    head, rest = drawing.split(">", 1)
    width = float(re.search(r'width="([\d.]+)pt"', head).group(1))  # type: ignore[union-attr]  # matplotlib writes it
    head = re.sub(r'\b(width|height)="[\d.]+pt"', "", head)
    look = f'style="max-width: {ENLARGED * width:.0f}pt" fill="currentColor" stroke-linejoin="round"'
    return f'{head} {look} aria-hidden="true" focusable="false">{rest}'
