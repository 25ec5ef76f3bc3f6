"""Run an experiment and write down what it found."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import shutil
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from orthocal import __version__
from orthocal.errors import OrthocalError, OverlapWarning, SkewWarning
from orthocal.experiments.protocol import Claim, Experiment, Findings, Key, Row
from orthocal.files.atomic import Results, alone, require_folder
from orthocal.formats import shown
from orthocal.mapfile import write_text
from orthocal.reporting.page.document import Code, Items, Marked, Page, Section, Text
from orthocal.reporting.page.render import render

if TYPE_CHECKING:
    from pathlib import Path


RESULTS, SETTINGS = "results.csv", "run.json"
COMMAND = "reproduce"
"""Whose results they are."""


def run_resumable(
    experiment: Experiment, folder: Path, repeats: int, jobs: int, advance: Callable[[int, int], None]
) -> list[Row]:
    """Run what is missing, `jobs` repetitions at a time, and return the rows of all; `advance(done, all)` follows."""
    from joblib import Parallel, delayed

    keys, settings = experiment.keys(repeats), _settings_of(experiment)
    require_folder(folder)
    with alone(folder):
        _require_same_run(settings, folder)
        rows = _finished(folder / RESULTS, experiment.keys(max(repeats, _most(folder / RESULTS))))
        advance(min(len(rows), len(keys)), len(keys))
        missing = keys[len(rows) :]
        answers = Parallel(n_jobs=jobs, return_as="generator")(
            delayed(_run)(experiment, key, os.getpid()) for key in missing
        )
        with (folder / RESULTS).open("a", encoding="utf-8", newline="") as file:
            for answer in answers:
                _append(file, answer, list(rows[0]) if rows else list(answer))
                rows.append(answer)
                advance(len(rows), len(keys))
        # Rows come back from the file: a resumed run and an uninterrupted one then hold the same figures to the last bit.
        return _finished(folder / RESULTS, keys)


def _run(experiment: Experiment, key: Key, master: int) -> Row:
    """One repetition on one thread, so that its figures do not depend on the machine's load."""
    from threadpoolctl import threadpool_limits

    if os.getpid() != master:
        _end_with(master)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        for kind in (OverlapWarning, SkewWarning):  # facts of these data, said in the notes
            warnings.simplefilter("ignore", kind)
        return {**key, **experiment.run(key)}


@cache
def _end_with(master: int) -> None:
    """End this worker soon after the process it works for, which may have been killed without a word."""

    def watch() -> None:
        while os.getppid() == master:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _append(file: Any, row: Row, columns: list[str]) -> None:
    """Write a row under the columns of the file, and make sure that it is on the disk."""
    if sorted(columns) != sorted(row):
        raise OrthocalError(
            f"{file.name} must have the columns of this experiment; it has others. Choose another --out."
        )
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    if file.tell() == 0:
        writer.writerow(columns)
    values = [row[name] for name in columns]
    writer.writerow([repr(float(value)) if isinstance(value, float) else value for value in values])
    file.write(line.getvalue())
    file.flush()
    os.fsync(file.fileno())


def _finished(path: Path, keys: list[Key]) -> list[Row]:
    """Return the complete rows of a results file, of as many keys as are asked for; a line cut short is cut off the file."""
    if not path.exists():
        return []
    _cut_to_whole_lines(path)
    try:
        table = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    except UnicodeDecodeError:
        raise OrthocalError(f"{path} must be text; it is not. Choose another --out, or delete the file.") from None
    rows = [{name: _value(text) for name, text in line.items()} for line in table[: len(keys)]]
    for place, (row, key) in enumerate(zip(rows, keys, strict=False)):
        if not _is_row_of(row, key):
            raise OrthocalError(
                f"Row {place + 1} of {path} must be that of {key}, with a number in every other column; it is not. "
                "Choose another --out, or delete the file."
            )
    return rows


def _is_row_of(row: Row, key: Key) -> bool:
    figures = [value for name, value in row.items() if name not in key]
    return {name: row.get(name) for name in key} == key and all(isinstance(value, int | float) for value in figures)


def _most(path: Path) -> int:
    """Return a number of repeats that covers every row of the file: each has at least one row."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _cut_to_whole_lines(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)


def _value(text: str | None) -> Any:
    """Return the number a cell holds, whole or not, or its text."""
    for kind in (int, float):
        try:
            return kind(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return text


def _settings_of(experiment: Experiment) -> dict[str, Any]:
    """Return all that rows depend on besides their key, the versions of what computes them included."""
    libraries = {name: version(name) for name in ("numpy", "scikit-learn")}
    settings = {"experiment": experiment.name, **experiment.settings(), "orthocal": __version__, **libraries}
    return dict(json.loads(json.dumps(settings)))


def _require_same_run(settings: dict[str, Any], folder: Path) -> None:
    """Results of other settings are never mixed with these."""
    file = folder / SETTINGS
    if not file.exists():
        if (folder / RESULTS).exists():
            raise OrthocalError(f"{folder} must hold {SETTINGS} beside {RESULTS}; it does not. Choose another --out.")
        with Results(folder, COMMAND, (SETTINGS,)).written() as new:
            (new / SETTINGS).write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        return
    try:
        found = dict(json.loads(file.read_text("utf-8")))
    except (TypeError, ValueError):
        raise OrthocalError(
            f"{file} must hold the settings of a run; it cannot be read. Choose another --out."
        ) from None
    for name, wanted in settings.items():
        if found.get(name) != wanted:
            raise OrthocalError(
                f"The results in {folder} are of {name} {shown(found.get(name))}, not {shown(wanted)}. "
                "Choose another --out, or delete the folder."
            )


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
