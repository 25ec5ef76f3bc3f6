"""The public names, their signatures and the paths they are imported from; a change here is a change of what users call."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import orthocal

STORED = Path(__file__).parents[1] / "fixtures" / "public_names.txt"
MODULES = ("datasets", "distributed", "losses", "maps", "nuisances", "plots")
"""Modules that users import from."""


def public(module):
    """Return the names a module offers: those it lists, or those it defines."""
    listed = getattr(module, "__all__", None)
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    return sorted(own if listed is None else listed)


def signature(value):
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except ValueError:
        return ""


def methods(value):
    """Return the public methods and properties that a class itself defines."""
    if not inspect.isclass(value):
        return []
    return sorted(
        name for name in vars(value) if not name.startswith(("_", "set_"))
    )  # scikit-learn adds set_..._request


def lines():
    """Yield a line for each public name and for each public method."""
    for place, module in [
        ("orthocal", orthocal),
        *((f"orthocal.{m}", import_module(f"orthocal.{m}")) for m in MODULES),
    ]:
        for name in public(module):
            value = getattr(module, name)
            yield f"{place}.{name}{signature(value)}"
            for method in methods(value):
                member = inspect.getattr_static(value, method)
                called = getattr(value, method) if callable(member) or isinstance(member, classmethod) else None
                yield f"{place}.{name}.{method}{signature(called) if called is not None else ''}"


def test_names_signatures_and_paths_are_as_promised():
    assert list(lines()) == STORED.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("module", [*MODULES, "calibrators"])
def test_a_public_module_is_reached_through_the_package(module):
    program = f"import sys, orthocal; assert 'orthocal.{module}' not in sys.modules; print(orthocal.{module}.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"orthocal.{module}"


if __name__ == "__main__":  # python -m tests.contracts.test_public_names writes the promise anew
    STORED.write_text("\n".join(lines()) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", orthocal.__all__)
def test_every_public_name_has_a_running_example(name):
    """Examples run with the doctests."""
    documented = inspect.getdoc(getattr(orthocal, name)) or ""
    assert ">>> " in documented
