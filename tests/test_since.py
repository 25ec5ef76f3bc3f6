import json
from dataclasses import replace

import pytest

from orthocal import OrthocalError, assess
from orthocal.assessment.parts import Check
from orthocal.reporting.page import report, report_page
from orthocal.reporting.page.document import Page
from orthocal.reporting.page.since import verdicts_in, with_changes
from tests.pages import job

EMPTY = Page(title="", mark="", tone="", lead="", sections=())


@pytest.fixture(scope="module")
def done():
    return job(cost=0.3, redraws=0)


def section_of(now, then):
    first = with_changes(EMPTY, then, now).sections[0]
    assert first.title == "Since last time"
    return first


def tables(section):
    return {
        block.caption.removeprefix("Then and now: "): {row[0]: row[1:] for row in block.rows}
        for block in section.blocks
        if block.kind == "table"
    }


def texts(section):
    return [block.text for block in section.blocks if block.kind == "text"]


def marks(section):
    return [item for block in section.blocks if block.kind == "marked" for item in block.items]


def test_nothing_has_changed(done):
    found = tables(section_of(done, done.to_dict()))
    assert list(found) == ["before", "after"]
    assert {words for rows in found.values() for *_, words in rows.values()} == {"the same"}


def test_old_and_new_stand_side_by_side_with_the_difference_in_words(done):
    then = json.loads(json.dumps(done.to_dict()))
    then["after"] |= {"status": "inconclusive", "error": 9.0, "interval": [8.0, 10.0]}
    then["after"]["average"]["effect"] -= 0.01
    then["before"]["rate"] = None
    then["recommendation"]["action"] = "collect more data"
    section = section_of(done, then)
    rows = tables(section)["after"]
    assert rows["status"] == ("inconclusive", "calibrated", "no longer inconclusive")
    assert rows["calibration error"][0] == "9 (8 to 10)"
    assert rows["calibration error"][2] == "down by 9; the intervals do not overlap"
    assert rows["average effect"][2] == "up by 0.01; the intervals overlap"
    assert rows["tolerance"][2] == "the same"
    assert tables(section)["before"]["ranking, AUTOC"][2] == "only now"
    assert marks(section) == [
        ("good", "Recommendation:", "then collect more data, now use the calibrated prediction."),
        ("bad", "Before:", "miscalibrated, as then. The error is the same."),
        ("good", "After:", "inconclusive then, calibrated now. The error is down by 9; the intervals do not overlap."),
    ]


def test_checks_with_another_result_are_named(done):
    now = replace(done, checks=(*done.checks, Check("leakage", "failed"), Check("leakage", "passed")))
    then = replace(done, checks=(*done.checks, Check("leakage", "passed"))).to_dict()
    assert marks(section_of(now, then))[1:2] == [("bad", "Check leakage:", "then passed, now failed.")]


def test_the_file_that_was_written_is_read_again(done, tmp_path):
    (tmp_path / "assessment.json").write_text(json.dumps({**done.to_dict(), "map": {"date": "2026-01-31"}}))
    report(done, tmp_path / "page.html", since=tmp_path / "assessment.json")
    page = (tmp_path / "page.html").read_text()
    assert "Then: an earlier verdict of 2026-01-31, by orthocal " in page
    assert page.index("Then and now: after") < page.index("What was found</h2>")


def test_one_verdict_is_compared_with_one_whatever_they_are_called(scored):
    verdict = assess(*scored, random_state=0)
    found = tables(section_of(verdict, {"old name": verdict.to_dict()}))
    assert list(found) == ["prediction"]


def test_other_names_and_other_effects_are_said_to_be_other(done):
    one = done.before
    section = section_of({"a": one, "b": one}, {"c": one.to_dict(), "d": one.to_dict()})
    assert "No verdict of now has the name of one of then (c, d)" in texts(section)[1]
    other = json.loads(json.dumps(one.to_dict()))
    other["origin"]["effect"] = "LATE()"
    assert marks(section_of(one, other))[1:] == [
        ("bad", "Not comparable:", "the effect was LATE() and is CATE(arm=1, control=0).")
    ]


def test_verdicts_are_found_in_every_kind_of_file(done):
    one = {"error": 0.1, "tolerance": 0.2}
    arms = {"status": "calibrated", "contrasts": {"mail vs none": one, "call vs none": one}}
    assert [name for name, _ in verdicts_in(one)] == ["prediction"]
    assert [name for name, _ in verdicts_in({"tau": one, "other": one})] == ["tau", "other"]
    assert [name for name, _ in verdicts_in(arms)] == ["mail vs none", "call vs none"]
    assert [name for name, _ in verdicts_in({"map": {"a": {}}, "before": arms, "after": None})] == [
        "before, mail vs none",
        "before, call vs none",
    ]
    assert [name for name, _ in verdicts_in({"m": done.to_dict()})] == ["m, before", "m, after"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "must be a file that can be read"),
        ("{", "must be JSON"),
        ("[]", "holds no verdict"),
        ("{}", "no verdict"),
    ],
)
def test_what_is_no_earlier_verdict(done, tmp_path, content, message):
    path = tmp_path / "old.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(OrthocalError, match=message):
        report_page(done, since=path)
