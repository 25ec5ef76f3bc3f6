"""Every formula that is cited stands on the page of the mathematics, and nothing outside the repository is cited."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "mathematics.md"
SECTION = re.compile(r"^(?:#{2,3}|\|) (\d+(?:\.\d+)?)\.?(?= )", re.MULTILINE)
"""A heading, or a row of a table that begins with its number."""
CITATION = re.compile(r"\bmathematics\s+(\d+(?:\.\d+)?(?:\s*(?:,|;|and|to)\s+\d+(?:\.\d+)?)*)", re.IGNORECASE)
"""The word and the numbers behind it, such as "mathematics 3.2, 12.4" or "mathematics 7.2 to 7.5"; lines may end between."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")
ELSEWHERE = re.compile(rb"MATH(?:[.]md|\s+(?:section )?E?\d)|BEYON[D]\b")
"""Names of notes that a reader of the repository does not have."""


def tracked():
    """Files that git keeps; where it keeps none (an unpacked archive), there is nothing to look at."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def citations(text):
    return [number for found in CITATION.finditer(text) for number in NUMBER.findall(found[1])]


def test_citations_are_read_from_lists_and_across_lines():
    text = "(mathematics 3.2, 12.4) Mathematics 7.2 to 7.5; see mathematics\n    9. The mathematics of 3 rows."
    assert citations(text) == ["3.2", "12.4", "7.2", "7.5", "9"]


def test_sections_are_numbered_in_order_and_none_twice():
    numbers = [tuple(map(int, number.split("."))) for number in SECTION.findall(PAGE.read_text(encoding="utf-8"))]
    assert numbers == sorted(set(numbers))
    assert len(numbers) > 50


@pytest.mark.parametrize("folder", ["src", "tests", "docs", "benchmarks", "examples"])
def test_every_citation_names_a_section(folder):
    sections = set(SECTION.findall(PAGE.read_text(encoding="utf-8")))
    files = [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]
    cited = {
        (str(file.relative_to(ROOT)), number)
        for file in files
        if file != Path(__file__)
        for number in citations(file.read_text(encoding="utf-8"))
    }
    assert {(file, number) for file, number in cited if number not in sections} == set()
    assert cited or folder not in {"src", "tests"}


def test_no_file_cites_notes_outside_the_repository():
    assert [str(file.relative_to(ROOT)) for file in tracked() if ELSEWHERE.search(file.read_bytes())] == []
