"""Every block of the documentation runs, and prints what the page says it prints."""

import re
from pathlib import Path

import pytest
from matplotlib import pyplot as plt

import orthocal
from orthocal import datasets, distributed, maps, plots
from orthocal.group_maps import GROUP_MAPS
from orthocal.joint_maps import JOINT_MAPS
from tests.snippets import assert_same_text, blocks_of, commands_of, run_commands, run_python
from tests.spark_session import session

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RUN = {"python", "console"}
SHOWN = {"text", "sh"}
"""Output, and commands that set a machine up or run for long."""
REFERENCE = [
    line for page in sorted((DOCS / "reference").glob("*.md")) for line in page.read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    if "pyspark" in page.read_text(encoding="utf-8"):
        session()  # which the page then finds, or the page is skipped
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # no worker processes: starting them takes longer than the work
    names, blocks = {"__name__": "__main__"}, blocks_of(page)
    for place, (kind, code) in enumerate(blocks):
        if kind not in RUN:
            continue
        said = run_python(code, names, page) if kind == "python" else run_commands(commands_of(code))
        following = blocks[place + 1] if place + 1 < len(blocks) else ("", "")
        # What commands print may be left out of a page; what python prints may not.
        if following[0] == "text" or kind == "python":
            assert_same_text(said, following[1] if following[0] == "text" else "")
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_block_is_of_a_kind_that_is_known(page):
    assert {kind for kind, _ in blocks_of(page)} <= RUN | SHOWN


def test_every_public_name_is_in_the_reference():
    assert [name for name in orthocal.__all__ if f"::: orthocal.{name}" not in REFERENCE] == []


def test_every_map_is_in_the_reference():
    kinds = {**maps.MAPS, **JOINT_MAPS, **GROUP_MAPS}.values()
    assert [kind for kind in kinds if f"::: {kind.__module__}.{kind.__qualname__}" not in REFERENCE] == []


@pytest.mark.parametrize("module", [datasets, plots, distributed], ids=lambda module: module.__name__)
def test_every_name_of_a_public_module_is_in_the_reference(module):
    named = set()
    if f"::: {module.__name__}" in REFERENCE:
        after = REFERENCE[REFERENCE.index(f"::: {module.__name__}") :]
        named |= set(re.findall(r"\w+", next(line for line in after if "members: [" in line)))
    named |= {line.rpartition(".")[2] for line in REFERENCE if line.startswith(f"::: {module.__name__}.")}
    assert set(module.__all__) - named == set()
