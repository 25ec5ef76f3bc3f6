"""One self-contained HTML page: records, drawings, one template; and the report of a verdict."""

from orthocal.reporting.page.document import (
    Block,
    Code,
    Facts,
    Items,
    Marked,
    Page,
    Picture,
    Pictures,
    Section,
    Table,
    Text,
)
from orthocal.reporting.page.render import picture, render
from orthocal.reporting.page.report import report, report_page

__all__ = [
    "Block",
    "Code",
    "Facts",
    "Items",
    "Marked",
    "Page",
    "Picture",
    "Pictures",
    "Section",
    "Table",
    "Text",
    "picture",
    "render",
    "report",
    "report_page",
]
