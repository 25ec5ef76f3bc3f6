"""The page on the architecture says what the code is."""

import ast
import re
from pathlib import Path

import orthocal
from tests.test_layers import LAYERS

SOURCE = Path(orthocal.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", PAGE))


def dispatching():
    """Yield the functions that dispatch on the type of their first argument, by module and name."""
    for file in SOURCE.rglob("*.py"):
        module = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            decorators = getattr(node, "decorator_list", [])
            if any(isinstance(one, ast.Name) and one.id == "singledispatch" for one in decorators):
                yield f"{module}.{node.name}"


def test_every_function_that_dispatches_is_named():
    assert sorted(set(dispatching()) - NAMED) == []


def test_every_layer_is_in_the_table():
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE))
    for module, layer in LAYERS.items():
        if module != "__main__":
            assert f"`{module}" in rows[str(layer)], module


def test_files_stay_short():
    long = {
        str(file.relative_to(SOURCE)): file.read_text(encoding="utf-8").count("\n") for file in SOURCE.rglob("*.py")
    }
    assert {name: lines for name, lines in long.items() if lines > 300} == {}


SAME_ON_PURPOSE = {"CausalCalibrator", "assess", "audit", "policy", "reproduce", "t_learner"}
"""One idea in two places: on Dask as in memory, as a command as in Python, in the demonstration as in an experiment."""


def defined(file):
    """Yield the names that a module defines at its top level."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if not any("register" in ast.unparse(one) or "overload" in ast.unparse(one) for one in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for one in targets for name in ast.walk(one) if isinstance(name, ast.Name))


def test_a_name_is_one_thing():
    homes = {}
    for file in SOURCE.rglob("*.py"):
        names = [name for name in defined(file) if not name.startswith("_")]
        assert len(names) == len(set(names)), file
        for name in names:
            if not name.isupper() and len(name) > 1:  # constants belong to their module
                homes.setdefault(name, []).append(str(file.relative_to(SOURCE)))
    assert {name: where for name, where in homes.items() if len(where) > 1 and name not in SAME_ON_PURPOSE} == {}
