"""Every block of the README runs, and prints what the README says it prints."""

import shlex
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from orthocal.datasets import simulate_cate
from orthocal.experiments import EXPERIMENTS
from tests.snippets import assert_same_text, blocks_of, commands_of, run_commands, run_python

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCKS = blocks_of(README)
COMMANDS = [line for kind, code in BLOCKS if kind == "sh" for line in commands_of(code)]


def test_python_blocks_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    said = [run_python(code, names, README) for kind, code in BLOCKS if kind == "python"]
    for one, shown in zip(said, [text for kind, text in BLOCKS if kind == "text"], strict=True):
        assert_same_text(one, shown)


@pytest.mark.parametrize(
    "line", [line for kind, code in BLOCKS if kind == "sh" for line in code.splitlines() if line.startswith("make")]
)
def test_make_targets_exist(line):
    words = shlex.split(line, comments=True)
    subprocess.run([words[0], "--dry-run", *words[1:]], cwd=ROOT, check=True, capture_output=True)


def test_the_experiments_named_are_there():
    """They run for minutes; tests/test_experiments.py runs each of them, reduced."""
    named = [shlex.split(line, comments=True)[2] for line in COMMANDS if line.startswith("orthocal reproduce")]
    assert named == list(EXPERIMENTS)


def test_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = simulate_cate(400, random_state=0)
    columns = {f"x{j}": data.X[:, j] for j in range(5)}
    csv.write_csv(pa.table({**columns, "a": data.treatment, "y": data.y, "tau": data.effect}), "trial.csv")
    commands = [line for line in COMMANDS if not line.startswith("orthocal reproduce")]
    assert len(commands) == 4
    run_commands(commands)
    assert Path("calibrated.csv").exists()
    assert Path("calibrated.sql").exists()


def test_every_block_is_of_a_kind_that_is_tested():
    assert {kind for kind, _ in BLOCKS} <= {"python", "sh", "text"}
