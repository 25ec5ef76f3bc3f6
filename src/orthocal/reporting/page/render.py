"""From a page's records to one HTML file that needs nothing else."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from orthocal.reporting.page.document import Page

if TYPE_CHECKING:
    from jinja2 import Environment


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
