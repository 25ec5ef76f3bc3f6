"""The documentation opened from the disk: its search answers, and it asks nobody for anything."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="for `make test-browser`")
mkdocs = pytest.importorskip("mkdocs.commands.build", reason="`make docs` installs mkdocs")
yaml = pytest.importorskip("yaml")
pytest.importorskip("material")

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two pages with the theme, plugins for searching and scripts of the documentation; building all of it takes a minute."""
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("documentation")
    docs = folder / "docs"
    docs.mkdir()
    shutil.copy(ROOT / "docs" / "glossary.md", docs / "index.md")
    for script in (ROOT / "docs").glob("*.js"):
        shutil.copy(script, docs)
    whole = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    kept = {name: whole[name] for name in ("site_name", "use_directory_urls", "theme", "extra")}
    plugins = [plugin for plugin in whole["plugins"] if isinstance(plugin, str)]
    settings = {**kept, "plugins": plugins, "docs_dir": str(docs), "site_dir": str(folder / "site")}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    mkdocs.build(load_config(str(folder / "mkdocs.yml")))
    return folder / "site"


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_search_answers_when_pages_are_opened_from_the_disk(site):
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    shown = subprocess.run(
        [*words, f"{(site / 'index.html').as_uri()}?q=propensity"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert re.search(r'md-search-result__meta">\s*\d+ matching', shown)


def test_a_page_names_no_other_host(site):
    page = (site / "index.html").read_text("utf-8")
    assert 'src="http' not in page
    assert 'rel="stylesheet" href="http' not in page
