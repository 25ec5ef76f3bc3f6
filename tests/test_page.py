import re
from html.parser import HTMLParser

import numpy as np
import pytest

import orthocal
from orthocal import Histogram, OrthocalError, QuadraticLoss, assess
from orthocal.formats import number
from orthocal.reporting.page import report, report_page
from tests.pages import WRITERS, job

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Nesting(HTMLParser):
    """Fails on a tag that is not closed, or closed out of turn."""

    def __init__(self):
        super().__init__()
        self.open, self.ids = [], []

    def handle_starttag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module", params=WRITERS)
def page(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    WRITERS[request.param](path)
    return path.read_text()


def test_the_page_is_whole_and_stands_alone(page):
    parser = Nesting()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert len(page) < 2_000_000
    assert not re.search(r"<script|@import|url\((?!#)|(src|href)=\"(?!data:|#)", page)
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)


def test_every_picture_has_words_and_every_table_a_caption(page):
    assert page.count("<svg") == len(re.findall(r'role="img"[^>]*aria-label="[^"]{20,}"', page))
    assert page.count("<table>") == page.count("<caption>")
    assert page.count("<svg") >= 1


def test_no_ink_is_fixed(page):
    drawings = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert "#000000" not in drawings
    assert 'fill="currentColor"' in drawings


def test_the_page_of_a_calibration_begins_with_its_recommendation(tmp_path):
    WRITERS["mended"](tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<strong>Use the calibrated prediction</strong>" in page
    assert "<h2>Checks</h2>" in page
    assert "<h1>Gain &amp; &lt;loss&gt;, $1000</h1>" in page
    assert "simulated &lt;rows&gt; &amp; more" in page
    for words in ("E[Y(arm) - Y(control) | X]", "chi = mu1 - mu0", "orthocal.load(", "CATE(arm=1, control=0)", "given"):
        assert words in page
    for title in ("Subgroups", "What deciding by it is worth", "Overlap and unmeasured confounding", "Use the map"):
        assert f"<h2>{title}</h2>" in page
    assert "sex = women" in page
    assert "&lt;b&gt; = " in page
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_tone_follows_the_recommendation():
    assert (report_page(job()).tone, report_page(job()).mark) == ("good", "Use the calibrated prediction")
    right = report_page(job(prediction=lambda effect: effect))
    assert (right.tone, right.mark) == ("good", "Use the prediction")
    few = report_page(job(n=120, prediction=lambda effect: effect))
    assert (few.tone, few.mark) == ("open", "Collect more data")
    unverified = report_page(job(holdout=0))
    assert (unverified.tone, unverified.mark) == ("open", "Hold rows out")
    assert unverified.lead.endswith("not verified on unseen rows.")
    backwards = report_page(job(prediction=lambda effect: -effect))
    assert (backwards.tone, backwards.mark) == ("bad", "Do not use it")


def test_a_map_that_harms_is_not_recommended():
    done = job(prediction=lambda effect: 0.35 + effect, method=Histogram(bins=1))
    assert done.comparison.verdict == "harmed"
    assert done.recommendation.action == "collect more data"


def test_several_undecided_predictions_are_not_called_wrong():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(400)
    loss = QuadraticLoss(prediction + 30 * rng.standard_normal(400), np.ones(400))
    unsure = assess(prediction, loss, random_state=0)
    assert report_page({"tau": unsure}).mark == "Inconclusive"
    page = report_page({"tau": unsure, "other": unsure})
    assert (page.tone, page.mark, page.lead) == ("open", "0 of 2 calibrated", "Inconclusive: tau, other.")


@pytest.mark.parametrize(
    ("value", "text"), [(99999.4, "99,999"), (1234.56, "1235"), (0.012345, "0.01235"), (None, "none"), (np.nan, "")]
)
def test_numbers_are_written_for_people(value, text):
    assert number(value) == text


def test_an_own_loss_without_an_origin_is_reported_too(scored, tmp_path):
    prediction, loss = scored
    report(assess(prediction, loss, random_state=0), tmp_path / "r.html", how={"data": "own"})
    page = (tmp_path / "r.html").read_text()
    assert "<dt>data</dt><dd>own</dd>" in page
    assert "<dt>effect</dt>" not in page


def test_what_cannot_be_reported():
    with pytest.raises(OrthocalError, match="it is empty"):
        report_page({})
    with pytest.raises(OrthocalError, match="it is float"):
        report_page(3.0)


def test_the_public_name():
    assert orthocal.report is report
