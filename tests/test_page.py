import base64
import csv
import hashlib
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pytest

import orthocal
from orthocal import Histogram, OrthocalError, QuadraticLoss, assess
from orthocal.assessment.parts import Check
from orthocal.drawing import LONGEST, short_name
from orthocal.formats import estimate, number
from orthocal.reporting.page import report, report_page
from orthocal.reporting.page.choices import choice_page
from orthocal.reporting.page.policies import policy_page
from orthocal.reporting.page.top import checks_marks
from tests.pages import LONG, WRITERS, arms_study, job

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
    assert len(page) < 1_000_000
    assert not re.search(r"<script |@import|url\((?!#)|(src|href)=\"(?!data:|#)", page)
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|http-equiv', "", page)


def test_every_picture_has_words_and_every_table_a_caption(page):
    assert page.count("<svg") == len(re.findall(r'role="img"[^>]*aria-label="[^"]{20,}"', page))
    assert page.count("<table") == page.count("<caption>")
    assert page.count("<svg") >= 1


def test_every_picture_has_its_figures_in_a_table_that_can_be_saved(page):
    assert page.count("<svg") == page.count('<details class="behind" open data-folded>')
    tables = re.findall(r'<details class="behind".*?</details>', page, flags=re.DOTALL)
    for table in tables:
        (address,) = re.findall(r'href="data:text/csv;charset=utf-8,([^"]*)"', table)
        header, *lines = csv.reader(unquote(address).splitlines())
        assert len(lines) == table.count("<tr>") - 1
        assert {len(line) for line in lines} == {len(header)}


def test_the_one_script_is_the_one_that_the_policy_allows(page):
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert f"script-src 'sha256-{digest}'" in unescape(policy)
    assert "default-src 'none'" in unescape(policy)


def test_every_section_is_open_where_there_is_no_script_and_can_be_reached(page):
    assert page.count("<details") == len(re.findall(r"<details [^>]*\bopen\b", page))
    sections = re.findall(r'<details class="section" id="([^"]+)"', page)
    (contents,) = re.findall(r'<nav aria-label="Contents">(.*?)</nav>', page, flags=re.DOTALL)
    links = re.findall(r'href="#([^"]+)"', contents)
    assert set(sections) <= set(links) <= set(re.findall(r'id="([^"]+)"', page))


def test_headings_go_down_by_one(page):
    found = [int(level) for level in re.findall(r"<h([1-6])", page)]
    assert found[0] == 1
    assert found.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(found))


def test_no_ink_is_fixed(page):
    drawings = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert "#000000" not in drawings
    assert 'fill="currentColor"' in drawings


def test_the_page_of_a_calibration_begins_with_its_recommendation(tmp_path):
    WRITERS["mended"](tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<strong>Use the calibrated prediction</strong>" in page
    assert "<h2>Checks</h2>" in page
    assert page.index("<dt>After calibration</dt>") < page.index("<nav") < page.index("<h2>")
    assert '<h1 dir="auto">Gain &amp; &lt;loss&gt;, $1000</h1>' in page
    assert "simulated &lt;rows&gt; &amp; more" in page
    for words in ("E[Y(arm) - Y(control) | X]", "chi = mu1 - mu0", "orthocal.load(", "CATE(arm=1, control=0)", "given"):
        assert words in page
    for title in (
        "Ranking",
        "Subgroups",
        "What deciding by it is worth",
        "Overlap and unmeasured confounding",
        "Use the map",
    ):
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


def test_checks_that_did_not_pass_stand_on_top():
    done = job()
    wary = replace(done, checks=(*done.checks, Check("leakage", "failed", "3", "A column leaks.", "Drop it.")))
    cards, marks = report_page(wary).top
    assert cards.items[-1] == ("bad", "Checks", "1 failed", "3 passed")
    assert marks.items == (("bad", "Failed: leakage.", "A column leaks. Drop it."),)
    assert checks_marks(done.checks) == []


def test_several_calibrations_stand_side_by_side():
    one, other = job(redraws=0), job(prediction=lambda effect: -effect, redraws=0)
    page = report_page({"one": one, "other": other})
    assert (page.mark, page.tone) == ("1 of 2 models can be used", "good")
    assert page.lead == "Use the calibrated prediction: one.\nDo not use it: other."
    picture, table, _ = page.sections[0].blocks
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.header == ("", "one", "other")
    assert rows["recommendation"] == ("use the calibrated prediction", "do not use it")
    assert rows["error before"] == tuple(estimate(job.before.error, job.before.interval) for job in (one, other))
    assert [row[0] for row in picture.table.rows] == ["one, before", "one, after", "other, before", "other, after"]
    parts = [section.part for section in page.sections]
    assert parts[0] == parts[-1] == ""
    assert set(parts[1:-1]) == {"one", "other"}


def test_kinds_are_not_mixed():
    done = job()
    with pytest.raises(OrthocalError, match="it is a mapping to Calibration and Assessment"):
        report_page({"one": done, "two": done.before})


def test_the_slider_begins_at_the_cost_that_was_given():
    done = job(cost=0.3)
    (section,) = [one for one in report_page(done).sections if one.title == "What deciding by it is worth"]
    slider, value = section.blocks[0].slider, done.after.value
    said = f"At a cost of 0.3: by prediction {number(value.value)} per row, everyone {number(value.treating_everyone)}"
    assert slider.texts[slider.start].startswith(said)
    assert len(slider.texts) == 1 + len(value.curve["cost"])
    assert slider.texts[-1].startswith(f"At a cost of {number(value.curve['cost'][-1])}:")


def test_the_table_of_ranking_begins_with_the_highest_predictions():
    verdict = job().before
    (section,) = [one for one in report_page(verdict).sections if one.title == "Ranking"]
    table, bins = section.blocks[0].table, verdict.bins
    assert table.rows[0][0] == "0% to 10%"
    assert table.rows[0][2] == number(bins["prediction"][-1])
    low, high = (bins["target"] - bins["residual"] + bins[f"residual_{end}"] for end in ("lower", "upper"))
    assert table.rows[0][3] == estimate(bins["target"][-1], (low[-1], high[-1]))


def section_of(page, title):
    (found,) = [section for section in page.sections if section.title == title]
    return found


def test_the_slider_over_budgets_says_what_the_policy_says():
    """At the budget that was given the figures are the policy's own, elsewhere the curve's; all are in the table."""
    decision = arms_study().policy(cost={"mail": 0.1, "call": 0.2}, budget=0.05)
    (picture,) = section_of(policy_page(decision, "", {}), "Gains over the budget").blocks
    slider, table = picture.slider, picture.table
    assert slider.places[slider.start] == "budget 0.05"
    for rule in decision.values.values():
        if rule.over_blanket is not None:
            gain = estimate(rule.gain.value, rule.gain.interval)
            assert f"by {rule.name}: {gain}, {rule.share_treated:.0%} treated" in slider.texts[slider.start]
    curve = decision.curve
    last = {
        name: estimate(one["gain"][-1], (one["band_lower"][-1], one["band_upper"][-1]))
        for name, one in curve.rules.items()
    }
    assert [row for row in table.rows if row[0] == number(curve.budget[-1])] == [
        (number(curve.budget[-1]), *last.values(), *(number(one[-1]) for one in curve.blankets.values()))
    ]
    assert len(slider.texts) == len(slider.places) == len(table.rows) == 27
    assert slider.texts[0].endswith("Largest: treating no one.")


def test_the_page_of_a_policy_begins_with_its_recommendation():
    decision = arms_study().policy(cost={"mail": 0.1, "call": 0.2}, budget=0.05)
    page = policy_page(decision, "Whom?", {})
    assert f"{page.mark}: {page.lead[0].lower()}{page.lead[1:]}" == decision.recommendation
    assert page.tone == "good"
    cards = {name: (figure, words) for _, name, figure, words in page.top[0].items}
    best = max(decision.predictions, key=lambda name: decision.values[name].value.value)
    assert cards["Best prediction"][0] == best
    assert cards["Budget"][0] == "0.05"
    table = section_of(page, "What each rule is worth").blocks[0].table
    assert table.header[3:5] == tuple(f"get {arm}" for arm in decision.arms)
    assert [row[0] for row in table.rows] == list(decision.values)
    free = policy_page(arms_study().policy(cost=0.1), "", {})
    assert "Gains over the budget" not in {section.title for section in free.sections}
    failed = replace(decision, checks=(Check("leakage", "failed", "3", "A column leaks.", "Drop it."),))
    assert (policy_page(failed, "", {}).mark, policy_page(failed, "", {}).tone) == ("Do not decide by it yet", "bad")


def test_arms_stand_side_by_side():
    models = arms_study().calibrate()
    done = models["تأثير"]
    drawings, table = section_of(report_page(done), "Arms side by side").blocks
    assert table.header == ("", *done.before.contrasts)
    rows = {row[0]: row[1:] for row in table.rows}
    after = done.after.contrasts.values()
    assert rows["error after"] == tuple(estimate(one.error, one.interval) for one in after)
    assert rows["mean prediction"] == tuple(number(one.average.prediction) for one in after)
    assert [one.table.caption for one in drawings.pictures] == [f"Bins of {name}" for name in done.before.contrasts]
    bins = next(iter(after)).bins
    assert drawings.pictures[0].table.rows[-1][2] == number(bins["prediction"][-1])
    page = report_page(models)
    assert [section.part for section in page.sections[:2]] == ["", LONG]
    assert page.lead.count("تأثير") == 1
    errors = page.sections[0].blocks[0].table
    assert [row[0] for row in errors.rows] == [f"{name}, {one}" for name in models for one in done.before.contrasts]


def test_the_page_of_a_choice_begins_with_the_best():
    choice = arms_study().choose(cost=0.1)
    page = choice_page(choice, "", {})
    assert page.mark == f"Lowest mean loss: {choice.best}"
    assert page.lead == choice.verdict
    table = page.sections[0].blocks[0].table
    assert [row[0] for row in table.rows] == [rival.name for rival in choice.rivals]
    assert table.csv_text.startswith("rival,model,is_calibrated,relative_loss,")


def test_one_prediction_for_all_has_no_picture_of_a_map():
    page = report_page(job(prediction=lambda effect: np.full_like(effect, 0.5), redraws=0))
    first = section_of(page, "What calibration does to a prediction").blocks[0]
    assert first.kind == "text"
    assert first.text.startswith("The map takes the one prediction, 0.5, to ")


def test_long_names_keep_both_ends():
    assert short_name("short") == "short"
    assert short_name("a" * 20 + "b" * 20) == f"{'a' * 14}…{'b' * 15}"
    assert len(short_name("x" * 99)) == LONGEST


def test_what_cannot_be_reported():
    with pytest.raises(OrthocalError, match="it is empty"):
        report_page({})
    with pytest.raises(OrthocalError, match="it is float"):
        report_page(3.0)


def test_the_public_name():
    assert orthocal.report is report
