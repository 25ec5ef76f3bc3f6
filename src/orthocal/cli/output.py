"""From verdicts to files, pictures and words on the screen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

import typer

from orthocal import plots
from orthocal.assessment import Assessment
from orthocal.cli.screen import show_plan
from orthocal.drawing import plain, save_figure
from orthocal.files.atomic import Results
from orthocal.files.manifest import manifest_of
from orthocal.files.tables import file_names
from orthocal.mapfile import write_text
from orthocal.reporting.calibrations import checks_in_words
from orthocal.reporting.page import report
from orthocal.sensitivity import Sensitivity
from orthocal.study import ArmsAssessment, ArmsCalibration, Calibration

ALWAYS = ("report.html", "map.json", "assessment.json")
BEFORE, AFTER, CONTRASTS = ("before.png",), ("before.png", "after.png", "before-after.png"), ("contrasts.png",)
"""What `calibrate` writes into its folder besides the table; pictures without and with rows to judge on, and of several arms."""


def results_of_calibrate(
    command: str, out: Path, drawn: Sequence[str], table: Sequence[str], data: Sequence[Path]
) -> Results:
    """Return where the results of a calibration go, having seen that nothing is in the way."""
    found = Results(out, command, (*ALWAYS, *drawn, *table), tuple(data))
    found.require_free()
    return found


def results_of_assess(out: Path, predictions: Sequence[str], data: Sequence[Path]) -> Results:
    """Return where verdicts go, having seen that nothing is in the way."""
    found = Results(out, "assess", ("report.html", "assessment.json", *pictures(predictions)), tuple(data))
    found.require_free()
    return found


def pictures(predictions: Iterable[str]) -> list[str]:
    """Return the names of files of reliability pictures, one for each prediction."""
    return [f"reliability-{name}.png" for name in file_names(predictions)]


@singledispatch
def verdicts_of(found: Any) -> Mapping[str, Assessment]:
    """Return the verdicts that are reported and drawn, by name."""
    return dict(found)


@verdicts_of.register
def _(found: ArmsAssessment) -> Mapping[str, Assessment]:
    return found.contrasts


@singledispatch
def found_in_words(found: Any) -> str:
    """Return verdicts and checks as text."""
    return "\n".join(f"{name}\n{one.summary()}\n\n{checks_in_words(one.checks)}\n" for name, one in found.items())


@found_in_words.register
def _(found: ArmsAssessment) -> str:
    return f"{found.summary()}\n"


def statuses_of(found: Any) -> list[str]:
    """Return the status of each verdict, or of all arms together."""
    return [found.status] if hasattr(found, "status") else [one.status for one in found.values()]


def write_assessments(
    found: Any,
    folder: Path,
    title: str,
    how: Mapping[str, str],
    strengths: Mapping[str, Sensitivity],
    since: Any = None,
) -> dict[str, Any]:
    """Write the report, the verdicts as JSON, which is returned, and a picture of each."""
    verdicts = verdicts_of(found)
    record: dict[str, Any] = (
        found.to_dict() if hasattr(found, "to_dict") else {name: one.to_dict() for name, one in found.items()}
    )
    record |= {"sensitivity": {name: one.to_dict() for name, one in strengths.items()}} if strengths else {}
    report(verdicts, folder / "report.html", title=title, how=how, sensitivity=strengths, since=since)
    write_json(record, folder / "assessment.json")
    for file, (name, verdict) in zip(pictures(verdicts), verdicts.items(), strict=True):
        draw(verdict, folder / file, name)
    return record


def write_verdict(
    done: Calibration | ArmsCalibration, folder: Path, title: str, how: Mapping[str, str], since: Any = None
) -> None:
    """Write the report, the map, the verdict as JSON, and the pictures."""
    done.report(folder / "report.html", title=title, how=how, since=since)
    done.save(folder / "map.json")
    write_json(done.to_dict(), folder / "assessment.json")
    write_pictures(done, folder, title)


@singledispatch
def write_pictures(done: Any, folder: Path, title: str) -> None:
    """Draw the prediction before and after."""
    draw(done.before, folder / "before.png", title)
    if done.after is not None:
        draw(done.after, folder / "after.png", title)
        drawn = plots.before_and_after(done.before, done.after, title=plain(title), band=done.band_or_none)
        save_figure(drawn, folder / "before-after.png", dpi=150)


@write_pictures.register
def _(done: ArmsCalibration, folder: Path, title: str) -> None:
    figure = plots.contrasts(done.before.contrasts, None if done.after is None else done.after.contrasts)
    figure.suptitle(plain(title))
    save_figure(figure, folder / "contrasts.png", dpi=150)


def draw(verdict: Assessment, path: Path, title: str) -> None:
    """Draw one reliability picture to a file."""
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(5.6, 5.8), layout="constrained")
    verdict.plot(ax).set_title(plain(title))
    save_figure(figure, path, dpi=150)


def write_json(record: Mapping[str, Any], path: Path) -> None:
    """Write a record as JSON that any reader accepts."""
    write_text(path, to_text(record))


def to_text(record: Mapping[str, Any]) -> str:
    """Return a record as JSON that any reader accepts."""
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def announced(words: Mapping[str, str], dry_run: bool, as_json: bool) -> bool:
    """Say what will be done, and whether that was all that was asked for."""
    show_plan(words)
    if dry_run:
        print_json({"plan": dict(words)}, as_json)
    return dry_run


def print_json(record: Mapping[str, Any], as_json: bool) -> None:
    """Print a record to standard output, if that was asked for."""
    if as_json:
        typer.echo(to_text(record), nl=False)


def print_files(out: Path, *, err: bool = False) -> None:
    """Name the files a run has written; of those in a folder inside, the folder."""
    names = sorted({name.partition("/")[0] for name in manifest_of(out).files})
    typer.echo(f"Wrote to {out}: {', '.join(names)}", err=err)
