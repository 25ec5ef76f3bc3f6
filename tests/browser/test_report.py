"""Reports in a real browser: at two widths, light and dark, with and without script, on paper, and for a screen reader."""

import csv
import os
import shutil
from urllib.parse import unquote

import pytest

from tests.pages import WRITERS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = os.environ.get("ORTHOCAL_BROWSER") == "needed"
"""Set where the browser must be there: a missing one then fails instead of being skipped."""
if not NEEDED:
    pytest.importorskip("playwright.sync_api", reason="pip install 'orthocal[browser]'")
    pytest.importorskip("axe_core_python", reason="pip install 'orthocal[browser]'")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed", allow_module_level=True)

from axe_core_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


def written(folder, name):
    path = folder / f"{name}.html"
    if not path.exists():
        WRITERS[name](path)
    return path.as_uri()


@pytest.fixture(params=WRITERS)
def address(request, folder):
    return written(folder, request.param)


def opened(browser, address, width=1280, **settings):
    page = browser.new_context(viewport={"width": width, "height": 900}, **settings).new_page()
    page.goto(address)
    return page


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_renders(browser, address, width, scheme, script):
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
    )
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    assert said == []
    assert asked == [address]
    if script:
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    boxes = page.locator("figure svg").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.right, box.width, box.height])"
    )
    assert len(boxes) >= 1
    for left, right, wide, high in boxes:
        assert wide > 250
        assert high > 60
        assert left >= 0
        assert right <= width + 1
    # The body never scrolls sideways, whatever is open.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, address, width, scheme):
    page = opened(browser, address, width, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = Axe().run(page)["violations"]
    page.context.close()
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
    headings = {"heading-order", "page-has-heading-one", "landmark-one-main", "region", "empty-heading"}
    assert [one["id"] for one in found if one["id"] in headings] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ink_stands_out_from_the_paper(browser, folder, scheme):
    page = opened(browser, written(folder, "mended"), color_scheme=scheme)
    ink, paper = (
        page.evaluate(f"getComputedStyle(document.querySelector('{tag}')).{style}")
        for tag, style in (("figure svg", "fill"), ("body", "backgroundColor"))
    )
    page.context.close()
    assert brightness(ink) < brightness(paper) - 120 if scheme == "light" else brightness(ink) > brightness(paper) + 120


def brightness(colour):
    return sum(map(int, colour[4:-1].split(","))) / 3


def test_without_script_everything_is_open(browser, address):
    page = opened(browser, address, java_script_enabled=False)
    assert page.locator("h1").is_visible()
    for part in ("figure svg", "table", "pre", "summary", "a[download]"):
        assert page.locator(f"{part}:visible").count() == page.locator(part).count()
    assert page.locator(".slider:visible, button:visible").count() == 0
    page.context.close()


def test_paper_shows_what_is_folded_on_the_screen(browser, folder):
    page = opened(browser, written(folder, "mended"))
    folded = page.locator("details[data-folded] table")
    seen = "all => all.map((one) => one.checkVisibility())"
    assert not any(folded.evaluate_all(seen))
    page.emulate_media(media="print")
    assert all(folded.evaluate_all(seen))
    assert not page.locator("nav").is_visible()
    assert len(page.pdf()) > 10_000
    page.context.close()


def test_sections_fold_and_links_open_them(browser, folder):
    page = opened(browser, written(folder, "mended"))
    figures = page.locator("details#figures")
    assert figures.get_attribute("open") is None
    page.locator("nav a[href='#figures']").click()
    page.wait_for_function("document.getElementById('figures').open")
    button = page.get_by_role("button", name="Open all sections")
    button.click()
    assert page.locator("details:not([open])").count() == 0
    page.get_by_role("button", name="Close all sections").click()
    assert page.locator("details[open]").count() == 0
    page.context.close()


def test_marks_say_what_they_are(browser, folder):
    page = opened(browser, written(folder, "mended"))
    page.locator("[id='reliability-after-tip-0']").hover()
    hint = page.locator(".hint")
    assert hint.is_visible()
    assert hint.inner_text().startswith("Predicted ")
    page.mouse.move(0, 0)
    assert not hint.is_visible()
    page.context.close()


def test_the_slider_walks_over_costs(browser, folder):
    page = opened(browser, written(folder, "mended"))
    slider = page.locator(".slider input")
    said = page.locator(".slider output")
    assert said.inner_text().startswith("At a cost of 0.3: by prediction ")
    slider.focus()
    page.keyboard.press("End")
    last = page.locator("a[download='decisions.csv']").get_attribute("href").split("%0A")[-2].split("%2C")[0]
    assert f"At a cost of {float(last):.4g}:" in said.inner_text()
    assert slider.get_attribute("aria-valuetext") == f"cost {float(last):.4g}"
    assert said.get_attribute("aria-live") == "polite"
    assert page.locator(".tip.shown").count() == 1
    page.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_slider_walks_over_budgets(browser, folder, width):
    page = opened(browser, written(folder, "policy"), width)
    slider = page.get_by_label("What if the budget were larger, or smaller?")
    said = page.locator(".slider output")
    assert said.inner_text().startswith("Within a budget of 0.05 per person")
    at = page.locator(".tip.shown").evaluate("(mark) => mark.getBoundingClientRect().left")
    slider.focus()
    page.keyboard.press("End")
    figures = csv.reader(unquote(page.locator("a[download='budgets.csv']").get_attribute("href")).splitlines())
    *_, last = figures
    assert said.inner_text().startswith(f"Within a budget of {float(last[0]):.4g} per person")
    assert f"{float(last[1]):.4g} ({float(last[2]):.4g} to {float(last[3]):.4g})" in said.inner_text()
    assert slider.get_attribute("aria-valuetext") == f"budget {float(last[0]):.4g}"
    assert page.locator(".tip.shown").evaluate("(mark) => mark.getBoundingClientRect().left") > at + 20
    page.context.close()


def test_tables_of_words_are_read_on_a_phone_without_scrolling_sideways(browser, folder):
    page = opened(browser, written(folder, "mended"), 390)
    page.get_by_role("button", name="Open all sections").click()
    wide = "all => all.map((one) => one.scrollWidth - one.parentElement.clientWidth)"
    assert max(page.locator("table.in-words").evaluate_all(wide)) <= 0
    assert max(page.locator("table:not(.in-words)").evaluate_all(wide)) > 0  # figures scroll, in their own box
    assert page.get_by_role("rowheader", name="positivity").count() == 1
    page.context.close()


def test_pictures_can_be_saved(browser, folder):
    page = opened(browser, written(folder, "policy"), color_scheme="dark")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as budgets.svg").click()
    drawing = download.value.path().read_text()
    assert drawing.startswith("<svg")
    assert "var(--" not in drawing
    assert "currentColor" not in drawing
    assert 'fill="#15181c"' in drawing
    page.context.close()


def test_the_section_that_is_read_is_marked_in_the_contents(browser, folder):
    page = opened(browser, written(folder, "mended"))
    page.evaluate("document.getElementById('ranking').scrollIntoView()")
    page.wait_for_selector("nav a[href='#ranking'][aria-current]")
    assert page.locator("nav a[aria-current]").count() == 1
    page.context.close()


def test_figures_can_be_saved(browser, folder):
    page = opened(browser, written(folder, "mended"))
    page.get_by_role("button", name="Open all sections").click()
    with page.expect_download() as download:
        page.locator("a[download='bins-after.csv']").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("n,mass,lower,upper,prediction,target,residual")
    assert len(lines) == 11
    page.context.close()


def test_nothing_can_be_fetched(browser, folder):
    """The policy of the page forbids every request and every script but its own."""
    page = opened(browser, written(folder, "mended"))
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.reached = true";
        document.body.append(script);
        return fetch("https://example.org/").catch(() => null);
    }""")
    assert page.evaluate("window.reached") is None
    assert any("Content Security Policy" in words for words in said)
    page.context.close()
