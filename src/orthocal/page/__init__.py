"""One self-contained HTML page: records, drawings, one template."""

from orthocal.page.document import Block, Code, Items, Marked, Page, Picture, Section, Table, Text
from orthocal.page.render import render
from orthocal.page.svg import picture

__all__ = ["Block", "Code", "Items", "Marked", "Page", "Picture", "Section", "Table", "Text", "picture", "render"]
