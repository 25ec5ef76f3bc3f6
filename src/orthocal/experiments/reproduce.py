"""Run an experiment and write down what it found."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING

from orthocal import __version__
from orthocal.experiments.resumable import RESULTS, run_resumable
from orthocal.mapfile import write_text
from orthocal.page import Items, Marked, Page, Section, Text, render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orthocal.experiments.protocol import Claim, Experiment, Findings

PAGE, CLAIMS = "page.html", "claims.json"


def reproduce(
    experiment: Experiment,
    folder: Path,
    repeats: int,
    jobs: int = -1,
    advance: Callable[[int, int], None] | None = None,
) -> Findings:
    """Run what is missing of an experiment, then write its page and its claims beside the results; return the findings."""
    rows = run_resumable(experiment, folder, repeats, jobs, advance or _silent)
    found = experiment.findings(rows)
    write_text(folder / PAGE, render(page_of(experiment, found, len(rows))))
    record = [{"claim": claim.text, "held": claim.held, "measured": claim.measured} for claim in found.claims]
    write_text(folder / CLAIMS, json.dumps(record, indent=1) + "\n")
    return found


def page_of(experiment: Experiment, found: Findings, rows: int) -> Page:
    """Return the page of a run: claims first, then pictures, tables, and how it was done."""
    held = sum(claim.held for claim in found.claims)
    settings = ", ".join(f"{name} {value}" for name, value in experiment.settings().items())
    return Page(
        experiment.title,
        f"{held} of {len(found.claims)} claims held",
        "good" if held == len(found.claims) else "open",
        f"{experiment.question}\n{found.answer}",
        (
            Section("Claims, by what was measured", (Marked(tuple(_marked(claim) for claim in found.claims)),)),
            Section("Pictures", found.blocks),
            Section("Figures", found.tables),
            Section(
                "How it was done",
                (
                    Items(found.notes),
                    Text(f"{rows} rows in {RESULTS}; {settings}. Run again with: orthocal reproduce {experiment.name}"),
                ),
            ),
        ),
        f"orthocal {__version__}, Python {platform.python_version()}",
    )


def _marked(claim: Claim) -> tuple[str, str, str]:
    tone, mark = ("good", "held") if claim.held else ("bad", "not held")
    return tone, mark, f"{claim.text} Measured: {claim.measured}."


def _silent(done: int, total: int) -> None:
    del done, total
