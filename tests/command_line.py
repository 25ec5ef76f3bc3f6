"""The command line, called from tests."""

import subprocess
import sys

import pytest

from orthocal import cli

COMMON = ["--outcome", "y", "--treatment", "a", "--jobs", "1", "--seed", "1"]


def run(*arguments):
    """Return the exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        cli.main([str(argument) for argument in arguments])
    return stop.value.code


def command_line(*arguments):
    """Start the command line as a process of its own."""
    words = [sys.executable, "-m", "orthocal", *map(str, arguments)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
