"""Words that readers of the field would stumble over do not come back: in what users see, in docstrings and on pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNWELCOME = {
    "like predictions": "similar predictions",
    "hidden bias": "unmeasured confounding",
    r"counts as (about )?[{\d]": "effective sample size",
    "uneven noise": "heteroskedastic noise",
    r"[Cc]umulated": "cumulative",
    r"\b[Ff]oretell": "predict",
    r"\b(to|can) mend\b": "fix",
    r"told apart": "distinguished",
    r"\btells (rows|nobody) apart": "identifies, distinguishes",
    r"number for everybody": "a constant effect",
    r"model left alone": "the original predictions",
    r"treatment levels?\b": "arm, value",
    r"truth values?\b": "boolean",
    r"\bhas no use for\b": "does not use",
    r"\bis no (file|folder|covariate|finite number)\b": "is not a",
    r"flatter(s|y|ing)?\b(?! than)": "looks better than it is",
    r"\b[Bb]y comma\b": "comma-separated",
    r"\bconditional laws?\b|\bLaws tabulated": "conditional distribution",
}
"""What is not said, and what is said instead."""


@pytest.fixture(scope="module")
def said():
    words = [sys.executable, ROOT / ".ci" / "sentences.py"]
    found = subprocess.run(words, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [*found.splitlines(), *(line for page in pages for line in page.read_text("utf-8").splitlines())]


@pytest.mark.parametrize("word", UNWELCOME)
def test_a_word_that_is_not_welcome_is_not_said(said, word):
    assert [line for line in said if re.search(word, line)] == [], f"say: {UNWELCOME[word]}"
