"""One self-contained HTML page: records, drawings, one template; and the report of a verdict."""

from orthocal.page.document import Block, Code, Facts, Items, Marked, Page, Picture, Pictures, Section, Table, Text
from orthocal.page.render import render
from orthocal.page.report import report, report_page
from orthocal.page.svg import picture

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
