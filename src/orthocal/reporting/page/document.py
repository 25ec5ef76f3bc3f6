"""What a page is made of: records that know nothing of HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    kind: ClassVar[str] = "items"
    items: tuple[str, ...]


@dataclass(frozen=True)
class Marked:
    """Sentences, each with a mark of one word: good, bad or open say how it is coloured."""

    kind: ClassVar[str] = "marked"
    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table: the first column names the row, the others hold figures, the last `words` of them words."""

    kind: ClassVar[str] = "table"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 0

    def as_text(self) -> str:
        """Return the table in plain characters, columns aligned."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.header))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if j == 0 else cell.rjust(width)
                for j, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


@dataclass(frozen=True)
class Facts:
    """Names with what is to be said of each, in words."""

    kind: ClassVar[str] = "facts"
    caption: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Picture:
    """A drawing: SVG, what it shows in words, and a caption."""

    kind: ClassVar[str] = "picture"
    svg: str
    alternative: str
    caption: str


@dataclass(frozen=True)
class Pictures:
    """Drawings side by side, where there is room, under one caption."""

    kind: ClassVar[str] = "pictures"
    pictures: tuple[Picture, ...]
    caption: str


@dataclass(frozen=True)
class Code:
    """Text to be copied."""

    kind: ClassVar[str] = "code"
    text: str


Block = Text | Items | Marked | Table | Facts | Picture | Pictures | Code


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: title, the answer first (a mark and a sentence), then sections."""

    title: str
    mark: str
    tone: str
    lead: str
    sections: tuple[Section, ...]
    foot: str = ""
