"""The command line: parse, call public names, print."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

import typer

from orthocal import __version__
from orthocal.cli.audit_options import AuditOptions
from orthocal.cli.decide_options import ChooseOptions, PolicyOptions
from orthocal.cli.map_options import ApplyOptions, ExportOptions
from orthocal.cli.options import AssessOptions, CalibrateOptions, DemoOptions, ReproduceOptions
from orthocal.cli.parsing import option_names, taking
from orthocal.cli.screen import open_streams, say, show_warning, unexpected
from orthocal.cli.wording import in_options
from orthocal.errors import OrthocalError

DONE, FAILED, BAD_INPUT, STOPPED = 0, 1, 2, 130
"""Exit codes; stopped by another signal than Ctrl-C it is 128 and the number of the signal."""
STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that stop a command: Ctrl-C, and others that do what it does, so that the command cleans up."""
UsageError = cast("type[Exception]", typer.BadParameter.__base__)
"""What typer raises for options it does not know; it has no public name of its own."""

DEBUG = "--debug"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Print where an unexpected error comes from.")] = False,
) -> None:
    """Can this model of causal effects be believed, and if not, can it be fixed?"""
    del debug  # seen by `main`, wherever it stands among the words
    if version:
        typer.echo(__version__)
        raise typer.Exit


COMMANDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "orthocal.cli.commands:demo": (DemoOptions, ("orthocal demo --out orthocal-demo",)),
    "orthocal.cli.commands:calibrate": (
        CalibrateOptions,
        (
            "orthocal calibrate trial.csv --outcome y --treatment a --prediction tau --covariates age,sex --propensity 1/2",
            "orthocal calibrate trial.parquet --outcome y --treatment a --prediction tau --covariates all --dry-run",
            "orthocal calibrate trial.csv --outcome y --treatment a --prediction tau --covariates age,sex --within sex,age",
            "orthocal calibrate mail.csv --outcome visit --treatment sent --control no --arm a=tau_a --arm b=tau_b --exclude id",
        ),
    ),
    "orthocal.cli.commands:assess": (
        AssessOptions,
        (
            "orthocal assess trial.csv --outcome y --treatment a --prediction tau1 --prediction tau2 --covariates all",
            "orthocal assess trial.csv --outcome y --treatment a --prediction tau --exclude id --fail-if miscalibrated --json",
        ),
    ),
    "orthocal.cli.audit:audit": (
        AuditOptions,
        (
            "orthocal audit trial.csv --outcome y --treatment a --prediction tau --covariates all --within sex,age,sex:age",
            "orthocal audit trial.csv --outcome y --treatment a --prediction tau --covariates age,sex --discover",
        ),
    ),
    "orthocal.cli.decide:choose": (
        ChooseOptions,
        (
            "orthocal choose trial.csv --outcome y --treatment a --prediction forest --prediction lasso --covariates age,sex",
            "orthocal choose trial.csv --outcome y --treatment a --prediction forest --covariates age,sex --cost 0.5",
        ),
    ),
    "orthocal.cli.decide:policy": (
        PolicyOptions,
        (
            "orthocal policy trial.csv --outcome y --treatment a --prediction tau --covariates age,sex --cost 0.5",
            "orthocal policy mail.csv --outcome y --treatment a --control no --arm b=tau_b --arm c=tau_c --exclude id --cost 2",
        ),
    ),
    "orthocal.cli.maps:apply": (
        ApplyOptions,
        (
            "orthocal apply orthocal-out/map.json new.parquet --prediction tau --out calibrated.parquet",
            "zcat new.csv.gz | orthocal apply map.json - --prediction tau --out - > calibrated.csv",
        ),
    ),
    "orthocal.cli.maps:export": (
        ExportOptions,
        (
            "orthocal export orthocal-out/map.json --format sql --prediction tau",
            "orthocal export orthocal-out/map.json --format python --out calibrate.py",
        ),
    ),
    "orthocal.cli.commands:reproduce": (
        ReproduceOptions,
        ("orthocal reproduce 401k --repeats 20", "orthocal reproduce quantile --jobs 4 --out results"),
    ),
}
"""Where each command lives, what it takes, and examples."""
for home, (options, examples) in COMMANDS.items():
    app.command(epilog="\n\n".join(["Examples:", *examples]))(taking(options, home))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exit code 0 done, 2 bad input (one line, nothing written), 3 the status that --fail-if names, 1 failure, 130 or 143 stopped.
    """
    warnings.showwarning = show_warning  # type: ignore[assignment]
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = [word for word in given if word != DEBUG]
    open_streams()
    with _stoppable() as came:
        code = _run(words or ["--help"], came, debug=DEBUG in given)
    sys.exit(128 + came[0] if code == STOPPED and came else code)


@contextmanager
def _stoppable() -> Iterator[list[int]]:
    """Have signals stop the command, those that nobody else has a use for; give the numbers of those that come."""
    came: list[int] = []

    def stop(number: int, _: Any) -> None:
        came.append(number)
        raise KeyboardInterrupt

    usual = (signal.SIG_DFL, signal.default_int_handler)
    free = {number: handler for number in STOPPING if (handler := signal.getsignal(number)) in usual}
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        free = {}
    for number in free:
        signal.signal(number, stop)
    try:
        yield came
    finally:
        for number, handler in free.items():
            signal.signal(number, handler)


def _call(words: list[str], came: list[int]) -> int:
    """Run a command; whatever a library made of a signal on its way, the command was stopped."""
    try:
        return app(args=words, prog_name="orthocal", standalone_mode=False) or DONE
    except Exception:
        if came:
            raise KeyboardInterrupt from None
        raise


def _run(words: list[str], came: list[int], *, debug: bool) -> int:
    """Return the exit code, having said in one line what went wrong; typer itself leaves in silence when a pipe closes."""
    try:
        _require_once(words)
        code = _call(words, came)
    except OrthocalError as error:
        return _said(f"Error: {in_options(str(error), words, _options_of(words[0]))}", BAD_INPUT)
    except UsageError as error:
        return _said(f"Error: {_sentence(cast('Any', error).format_message())} Try --help.", BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        return _said("Stopped.", STOPPED)
    except OSError as error:
        return _said(f"Failed: {error}", FAILED)
    except Exception as error:  # noqa: BLE001
        return _said(unexpected(error, debug=debug), FAILED)
    return _said("Stopped.", STOPPED) if code == STOPPED else int(code)


def _options_of(command: str, *, single: bool = False) -> set[str]:
    """Return the options of a command, as they are written."""
    found = [options for home, (options, _) in COMMANDS.items() if home.rpartition(":")[2] == command]
    return {name for options in found for name in option_names(options, single=single)}


def _require_once(words: list[str]) -> None:
    """An option that takes one value is given once: the last of several would win in silence."""
    single = _options_of(words[0], single=True)
    given = [word.partition("=")[0] for word in words[1:] if word.startswith("--")]
    for name in single:
        if given.count(name) > 1:
            raise OrthocalError(f"`{name}` must be given once; it was given {given.count(name)} times.")


def _said(text: str, code: int) -> int:
    say(text)
    return code


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."
