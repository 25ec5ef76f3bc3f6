"""What the project says of itself in several places is the same in all of them."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import orthocal

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_written_once_and_cited():
    assert "version" in PROJECT["dynamic"]
    assert re.findall(r"^version: (\S+)$", text("CITATION.cff"), re.MULTILINE) == [orthocal.__version__]


def test_every_declared_python_is_tested():
    declared = {one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)}
    assert (
        set(re.findall(r'"(3\.\d+)"', text(".github/workflows/ci.yml").split("matrix:")[1].split("steps:")[0]))
        == declared
    )
    assert PROJECT["requires-python"] == f">={min(declared, key=lambda one: int(one[2:]))}"


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "README.md", ".ci/run", ".github/workflows/ci.yml", ".github/workflows/release.yml"]
)
def test_commands_that_are_named_exist(page):
    named = set(re.findall(r"\bmake ((?:test|lint|docs|bench|demo|package|fuzz)[a-z-]*)", text(page)))
    assert named or page == "README.md"
    assert {one for one in named if not re.search(rf"^{one}:", MAKEFILE, re.MULTILINE)} == set()


def test_actions_run_the_same_script_as_everyone():
    assert "bash .ci/run" in text(".github/workflows/ci.yml")


def test_no_output_of_a_page_or_test_lies_in_the_work_tree():
    """A map that a page had written was once committed; pages and tests write to temporary folders."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a work tree of git")
    every = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(
        every, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout.splitlines()
    places = ("tests/fixtures/", "benchmarks/", "src/orthocal/reporting/page/templates/")
    written = re.compile(r"\.(json|html|csv|csv\.gz|parquet|svg|sql|duckdb|pkl)$")
    assert [file for file in files if written.search(file) and not file.startswith(places)] == []


def test_the_list_of_sentences_has_those_that_users_see():
    said = subprocess.run(
        [sys.executable, ROOT / ".ci" / "sentences.py"], check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout
    assert (
        "`{name}` as given must lie strictly inside (0, 1); row {row} is {propensity[row]}." in said
    )  # an error, in two pieces
    assert '"""The conditional average treatment effect.' in said
    assert "Open all sections" in said  # from a template
