"""Every block of the README runs, and prints what the README says it prints."""

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from orthocal import cli
from orthocal.datasets import simulate_cate

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)

NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")


def printed_by_python():
    """Run the python blocks as one program; return what each printed."""
    names, printed = {}, []
    for kind, code in BLOCKS:
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(code, "README.md", "exec"), names)
            printed.append(said.getvalue())
    return printed


def test_python_blocks_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = [text for kind, text in BLOCKS if kind == "text"]
    for said, wanted in zip(printed_by_python(), shown, strict=True):
        assert NUMBER.sub("#", said) == NUMBER.sub("#", wanted)
        # Processors round differently, and boosted trees can pass a little of that on.
        numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (said, wanted)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.02)


@pytest.mark.parametrize(
    "line", [line for kind, code in BLOCKS if kind == "sh" for line in code.splitlines() if "make" in line]
)
def test_make_targets_exist(line):
    words = shlex.split(line, comments=True)
    subprocess.run([words[0], "--dry-run", *words[1:]], cwd=ROOT, check=True, capture_output=True)


def test_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = simulate_cate(400, random_state=0)
    columns = {f"x{j}": data.X[:, j] for j in range(5)}
    csv.write_csv(pa.table({**columns, "a": data.treatment, "y": data.y, "tau": data.effect}), "trial.csv")
    commands = [
        line for kind, code in BLOCKS if kind == "sh" for line in code.splitlines() if line.startswith("orthocal")
    ]
    assert len(commands) == 4
    for line in commands:
        with pytest.raises(SystemExit) as stop:
            cli.main(shlex.split(line)[1:])
        assert stop.value.code == 0
    assert Path("calibrated.csv").exists()
    assert Path("calibrated.sql").exists()


def test_every_block_is_of_a_kind_that_is_tested():
    assert {kind for kind, _ in BLOCKS} <= {"python", "sh", "text"}
