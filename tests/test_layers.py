"""A file imports only from lower layers; the only exceptions are listed here, each inside a function."""

import ast
from pathlib import Path

import pytest

import orthocal

SOURCE = Path(orthocal.__file__).parent
LAYERS = {
    "arrays": 0,
    "formats": 0,
    "errors": 0,
    "progress": 0,
    "hashing": 0,
    "events": 0,
    "values": 1,
    "covariates": 1,
    "observations": 1,
    "roles": 1,
    "folds": 1,
    "distributions": 1,
    "losses": 1,
    "maps": 2,
    "joint_maps": 2,
    "group_maps": 2,
    "group_columns": 2,
    "files": 2,
    "solvers": 2,
    "nuisances": 2,
    "calibrators": 3,
    "effects": 3,
    "orthogonal": 4,
    "assessment": 5,
    "drawing": 5,
    "calibration": 6,
    "decisions": 6,
    "sensitivity": 6,
    "mapfile": 5,
    "export": 6,
    "joint_export": 6,
    "group_export": 6,
    "sql_text": 5,
    "plots": 6,
    "audit_plots": 6,
    "map_plots": 6,
    "rival_plots": 6,
    "verdict_plots": 6,
    "datasets": 6,
    "simulated_survival": 6,
    "simulated_arms": 5,
    "engines": 7,
    "study": 8,
    "reporting": 9,
    "distributed": 9,
    "demo": 9,
    "experiments": 9,
    "cli": 10,
    "__main__": 11,
}
UPWARD = {
    ("assessment", "plots"),
    ("assessment", "reporting"),
    ("calibration", "reporting"),
    ("decisions", "reporting"),
    ("sensitivity", "reporting"),
    ("study", "reporting"),
}


def imports():
    """Yield (module, imported module, inside a function) for every import of orthocal by orthocal."""
    for file in SOURCE.rglob("*.py"):
        module = file.relative_to(SOURCE).with_suffix("").parts[0]
        if module == "__init__":
            continue
        tree = ast.parse(file.read_text())
        local = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orthocal."):
                yield module, node.module.split(".")[1], id(node) in local


def test_every_module_has_a_layer():
    assert {file.relative_to(SOURCE).with_suffix("").parts[0] for file in SOURCE.rglob("*.py")} - {"__init__"} == set(
        LAYERS
    )


@pytest.mark.parametrize(("module", "imported", "local"), sorted(set(imports())))
def test_no_upward_import(module, imported, local):
    if LAYERS[imported] > LAYERS[module]:
        assert (module, imported) in UPWARD
        assert local


def test_the_import_costs_little():
    """`import orthocal` loads nothing heavy; names are loaded when they are used."""
    import subprocess
    import sys

    code = "import orthocal, sys; print([m for m in ('sklearn', 'matplotlib', 'pyarrow', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_public_name_can_be_had():
    assert all(getattr(orthocal, name) is not None for name in orthocal.__all__)
    assert set(orthocal.__all__) <= set(dir(orthocal))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = orthocal.nothing
