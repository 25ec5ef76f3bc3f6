"""What a page is made of: records that know nothing of HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

TITLE = "Can this model of causal effects be believed?"


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
class Cards:
    """The few figures that matter most: what each is, the figure, and what to make of it; coloured as `Marked` is."""

    kind: ClassVar[str] = "cards"
    items: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table: the first column names the row, the others hold figures, the last `words` of them words.

    `tones` colour the second cell of each row. `file` names the CSV file that a reader can save, and `figures` is its text, in
    full digits; the cells, where it is empty.
    """

    kind: ClassVar[str] = "table"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 0
    file: str = ""
    figures: str = ""
    tones: tuple[str, ...] = ()

    @property
    def figures_in_a_row(self) -> int:
        """Columns of figures: where a row is written in lines, as on a phone, each of several needs its name."""
        return len(self.header) - 1 - self.words

    @property
    def csv_text(self) -> str:
        """What the CSV file holds."""
        return self.figures or csv_of(self.header, self.rows)

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
class Slider:
    """A way to walk along a drawing where script is allowed: a label, what is said at each step, and the first step shown.

    `places` are what a screen reader says of the handle itself: the cost, or the budget, of each step.
    """

    label: str
    places: tuple[str, ...]
    texts: tuple[str, ...]
    start: int


@dataclass(frozen=True)
class Picture:
    """A drawing: SVG, what it shows in words, a caption, and the figures it was drawn from."""

    kind: ClassVar[str] = "picture"
    svg: str
    alternative: str
    caption: str
    table: Table | None = None
    slider: Slider | None = None


@dataclass(frozen=True)
class Pictures:
    """Drawings side by side, where there is room, under one caption: two in a row, and three of `small` ones."""

    kind: ClassVar[str] = "pictures"
    pictures: tuple[Picture, ...]
    caption: str
    small: bool = False


@dataclass(frozen=True)
class Code:
    """Text to be copied."""

    kind: ClassVar[str] = "code"
    text: str


Block = Text | Items | Marked | Cards | Table | Facts | Picture | Pictures | Code


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it.

    Every section is open on paper and without script; `folded` ones begin closed where script is allowed. Sections that follow
    each other with the same `part` stand together under a heading of that name.
    """

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False
    part: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: title, the answer first (a mark, sentences, and blocks that stand on top), then sections."""

    title: str
    mark: str
    tone: str
    lead: str
    sections: tuple[Section, ...]
    top: tuple[Block, ...] = ()
    foot: str = ""


def csv_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table as the text of a CSV file; what is not a number is left empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if cell is None or cell != cell else cell for cell in row] for row in rows)  # noqa: PLR0124
    return text.getvalue()


def csv_of_columns(columns: Mapping[str, Any]) -> str:
    """Return columns of numbers as the text of a CSV file, in full digits."""
    return csv_of(list(columns), list(zip(*(_plain(column) for column in columns.values()), strict=True)))


def _plain(column: Any) -> list[Any]:
    found: list[Any] = column.tolist() if hasattr(column, "tolist") else list(column)
    return found
