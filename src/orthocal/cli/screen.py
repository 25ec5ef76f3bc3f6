"""What a person sees while a command works; all of it on standard error."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from orthocal.formats import first_words
from orthocal.progress import listening, watching

if TYPE_CHECKING:
    from rich.progress import Progress

PERIOD = 600.0
"""Seconds back that an estimate of the time left looks: repetitions take long, and not all alike."""
to_person = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Print a line to the person."""
    to_person.print(text, soft_wrap=True, markup=False)


def open_streams() -> None:
    """Have something to print to where the standard streams are closed, and names that are no text printed by number."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None or getattr(stream, "closed", False):
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def unexpected(error: Exception, *, debug: bool) -> str:
    """Return one line on an error that should not have come; on demand where it came from, too."""
    said = f"Failed: {type(error).__name__}: {first_words(error)}"
    if debug:
        return "".join(traceback.format_exception(error)) + said
    return f"{said} This is a bug in orthocal: please report it, with what --debug prints."


def show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning as one line."""
    say(f"Warning: {message}")


def show_plan(words: Mapping[str, str]) -> None:
    """Print what will be done."""
    width = max(map(len, words))
    for name, text in words.items():
        say(f"{name:<{width}}  {text}")
    say("")


@contextmanager
def learning(draws: int) -> Iterator[None]:
    """Show how many of the learners are fitted, all draws of the folds together, and how far a pass over partitions has come."""
    with _bar() as bar:
        task = bar.add_task("Learner fits", total=None)

        def count(done: int, total: int) -> None:
            bar.update(task, total=total * draws, advance=min(done, 1))

        reading = bar.add_task("Partitions", total=None, visible=False)

        def read(done: int, partitions: int, rows: int) -> None:
            words = f"Rows {rows:,}" if rows else "Partitions"
            bar.update(reading, description=words, completed=done, total=partitions, visible=done < partitions)

        with listening(count), watching(read):
            yield


@contextmanager
def counting_rows(total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how many rows are done."""
    with _bar() as bar:
        task = bar.add_task("Rows", total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def counting_repetitions() -> Iterator[Callable[[int, int], None]]:
    """Show how many repetitions are done and the time left; the bar stays, for it took a while."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("repetitions"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    hidden = not to_person.is_terminal
    with Progress(*columns, console=to_person, disable=hidden, speed_estimate_period=PERIOD) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar() -> Progress:
    """Return a bar that goes when the work is done, and that only a terminal shows."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    words, times = TextColumn("{task.description}"), (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = words, BarColumn(), MofNCompleteColumn(), *times
    return Progress(*columns, console=to_person, transient=True, disable=not to_person.is_terminal)
