"""Every example runs and ends in a verdict: where its libraries are installed, for `make test-tools` installs them all."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
MOST_LINES = 12
"""Of code, imports and blank lines aside."""


def imported(tree):
    """Return the packages a program imports."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_in_a_verdict(example):
    missing = [name for name in imported(ast.parse(example.read_text())) if find_spec(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed; `make test-tools` installs it")
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] in {"improved", "no detectable change"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(example):
    tree = ast.parse(example.read_text())
    assert ast.get_docstring(tree)
    statements = [node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(statements) <= MOST_LINES
