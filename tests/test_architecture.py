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
