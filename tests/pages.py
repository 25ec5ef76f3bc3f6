"""Pages whose code runs: their blocks, what the blocks print, and whether that is what the page shows."""

import contextlib
import io
import re
import shlex

import pytest

from orthocal import cli

BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def blocks_of(page):
    """Return (kind, text) of every fenced block of a page, in order."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands_of(code):
    """Return the lines of a shell block that call orthocal, as words; a line may go on after a backslash."""
    lines = code.replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines if line.removeprefix("$ ").startswith("orthocal ")]


def run_python(code, names, page):
    """Run a block in a namespace; return what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code, page.name, "exec"), names)
    return said.getvalue()


def run_commands(code):
    """Run the commands of a block, each of which must end well; return what they printed to standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        for words in commands_of(code):
            with pytest.raises(SystemExit) as stop:
                cli.main(words[1:])
            assert stop.value.code == 0, " ".join(words)
    return said.getvalue()


def assert_same_text(said, shown):
    """Words must be the same, numbers nearly: processors round differently, and boosted trees pass a little of that on."""
    said, shown = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (said, shown))
    assert NUMBER.sub("#", said) == NUMBER.sub("#", shown)
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (said, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.02)
