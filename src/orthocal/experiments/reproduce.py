"""Run an experiment and write down what it found."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from orthocal import __version__
from orthocal.experiments.protocol import Claim, Experiment, Findings
from orthocal.experiments.resumable import COMMAND, RESULTS, SETTINGS, run_resumable
from orthocal.files.atomic import Results
from orthocal.mapfile import write_text
from orthocal.reporting.page.document import Code, Items, Marked, Page, Section, Text
from orthocal.reporting.page.render import render

if TYPE_CHECKING:
    from pathlib import Path

PAGE, CLAIMS = "page.html", "claims.json"
CLAIM_WORDS = {True: ("good", "held"), False: ("bad", "not held"), None: ("open", "not judged")}
"""How a claim is marked."""


def reproduce(
    experiment: Experiment,
    folder: Path,
    repeats: int,
    jobs: int = -1,
    advance: Callable[[int, int], None] | None = None,
) -> Findings:
    """Run what is missing of an experiment, then write its page and its claims beside the results; return the findings."""
    results = Results(folder, COMMAND, (PAGE, CLAIMS))
    results.require_free()
    rows = run_resumable(experiment, folder, repeats, jobs, advance or _silent)
    found = experiment.findings(rows)
    record = [{"claim": claim.text, "held": claim.held, "measured": claim.measured} for claim in found.claims]
    with results.written() as new:
        shutil.copy(folder / SETTINGS, new)  # one of the results, and still the same
        write_text(new / PAGE, render(page_of(experiment, found, len(rows), repeats)))
        write_text(new / CLAIMS, json.dumps(record, indent=1) + "\n")
    return found


def page_of(experiment: Experiment, found: Findings, rows: int, repeats: int) -> Page:
    """Return the page of a run: claims first, then pictures, tables, and how it was done."""
    held = sum(claim.held is True for claim in found.claims)
    settings = ", ".join(f"{name} {value}" for name, value in experiment.settings().items())
    return Page(
        title=experiment.title,
        mark=f"{held} of {len(found.claims)} claims held",
        tone="good" if held == len(found.claims) else "open",
        lead=f"{experiment.question}\n{found.answer}",
        sections=(
            Section("Claims, by what was measured", (Marked(tuple(_marked(claim) for claim in found.claims)),)),
            Section("Pictures", found.blocks),
            Section("Figures", found.tables),
            Section(
                "How it was done",
                (
                    Items(found.notes),
                    Text(f"{rows} rows in {RESULTS}; {settings}."),
                    Code(_command(experiment, repeats)),
                ),
            ),
        ),
        foot=f"orthocal {__version__}, Python {platform.python_version()}",
    )


def _marked(claim: Claim) -> tuple[str, str, str]:
    return *CLAIM_WORDS[claim.held], f"{claim.text} Measured: {claim.measured}."


def _command(experiment: Experiment, repeats: int) -> str:
    settings = experiment.settings()
    learners = ",".join(settings.get("learners", []))
    chosen = f" --learners {learners}" if learners else ""
    return f"orthocal reproduce {experiment.name} --repeats {repeats} --seed {settings['seed']}{chosen}"


def _silent(done: int, total: int) -> None:
    del done, total
