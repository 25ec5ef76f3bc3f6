"""Pages whose code runs: their blocks, what the blocks print, and whether that is what the page shows."""

import contextlib
import io
import re
import shlex

import pytest

from orthocal import cli

BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXIT_CODE = re.compile(r"# exit code (\d+)$")
DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def blocks_of(page):
    """Return (kind, text) of every fenced block of a page, in order."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands_of(code):
    """Return the lines of a shell block that call orthocal; a line may go on after a backslash."""
    return [line for line in code.replace("\\\n", " ").splitlines() if line.startswith("orthocal ")]


def run_python(code, names, page):
    """Run a block in a namespace; return what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code, page.name, "exec"), names)
    return said.getvalue()


def run_commands(lines):
    """Run commands; return what they printed to standard output or, where they did not, to standard error.

    They must end well, or with the code that a comment behind them says: ``# exit code 2``.
    """
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as told:
        for line in lines:
            with pytest.raises(SystemExit) as stop:
                cli.main(shlex.split(line, comments=True)[1:])
            assert stop.value.code == int((EXIT_CODE.search(line) or {1: 0})[1]), f"{line}\n{told.getvalue()}"
    return said.getvalue() or told.getvalue()


def assert_same_text(said, shown):
    """Words must be the same, numbers nearly: processors round differently, and boosted trees pass a little of that on."""
    said, shown = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (said, shown))
    said, shown = (DATE.sub("a date", text) for text in (said, shown))  # a page may be read on another day
    assert NUMBER.sub("#", said) == NUMBER.sub("#", shown)
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (said, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.02)
