"""Reports in a real browser: rendered without an error, without a request, without a script, at two widths."""

import os
import shutil

import pytest

from tests.pages import WRITERS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = os.environ.get("ORTHOCAL_BROWSER") == "needed"
"""Set where the browser must be there: a missing one then fails instead of being skipped."""
if not NEEDED:
    pytest.importorskip("playwright.sync_api", reason="pip install 'orthocal[browser]'")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed", allow_module_level=True)

from playwright.sync_api import sync_playwright  # noqa: E402

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module", params=WRITERS)
def address(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    WRITERS[request.param](path)
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_renders(browser, address, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    assert said == []
    assert asked == [address]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawings = page.locator("figure svg")
    assert drawings.count() >= 1
    for drawing in drawings.all():
        box = drawing.bounding_box()
        assert box["width"] > 250
        assert box["height"] > 100
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 1
    ink, paper = (
        page.evaluate(f"getComputedStyle(document.querySelector('{tag}')).{style}")
        for tag, style in (("figure svg", "fill"), ("body", "backgroundColor"))
    )
    assert brightness(ink) < brightness(paper) - 120 if scheme == "light" else brightness(ink) > brightness(paper) + 120
    context.close()


def brightness(colour):
    return sum(map(int, colour[4:-1].split(","))) / 3


def test_the_page_needs_no_script_and_prints(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("h1").is_visible()
    assert page.locator("figure svg").first.is_visible()
    assert len(page.pdf()) > 10_000
    context.close()
