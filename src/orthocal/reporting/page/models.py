"""What pages of several models have in common: which can be used, and every model under its own heading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orthocal.reporting.page.document import Marked, Page, Section, Text
from orthocal.reporting.page.sections import foot
from orthocal.reporting.page.top import TONES, capital
from orthocal.study.recommendation import USE_CALIBRATED, USE_PREDICTION

CHOOSE = Text(
    "To choose among them, compare their losses on the same rows, pair by pair, with Study.choose or orthocal choose."
)


def models_page(title: str, done: Mapping[str, Any], sections: tuple[Section, ...]) -> Page:
    """Return a page that begins with what is recommended for each model; `done` are calibrations by name."""
    actions: dict[str, list[str]] = {}
    for name, one in done.items():
        actions.setdefault(one.recommendation.action, []).append(name)
    usable = [*actions.get(USE_PREDICTION, ()), *actions.get(USE_CALIBRATED, ())]
    marks = tuple(
        (
            TONES[one.recommendation.action],
            f"{name}: {one.recommendation.action}.",
            " ".join(one.recommendation.reasons),
        )
        for name, one in done.items()
    )
    return Page(
        title=title,
        mark=f"{len(usable)} of {len(done)} models can be used",
        tone="good" if usable else "open",
        lead="\n".join(f"{capital(action)}: {', '.join(names)}." for action, names in actions.items()),
        top=(Marked(marks),),
        sections=sections,
        foot=foot(),
    )


def chapter_of(name: str, sections: list[Section]) -> list[Section]:
    """Return sections under a heading of their own, folded: the page begins with all of them side by side."""
    return [replace(section, part=name, folded=True) for section in sections]
