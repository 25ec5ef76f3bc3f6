"""Every block of the documentation runs, and prints what the page says it prints."""

from pathlib import Path

import pytest
from matplotlib import pyplot as plt

import orthocal
from tests.snippets import assert_same_text, blocks_of, commands_of, run_commands, run_python
from tests.spark_session import session

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RUN = {"python", "console"}
SHOWN = {"text", "sh"}
"""Output, and commands that set a machine up or run for long."""


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
    reference = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")).splitlines()
    assert [name for name in orthocal.__all__ if f"::: orthocal.{name}" not in reference] == []
