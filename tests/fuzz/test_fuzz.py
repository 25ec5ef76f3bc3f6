"""Some cases of every fuzzer; `make fuzz CASES=20000` tries more. And the fuzzers find what they should."""

import inspect
import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

import orthocal
from orthocal.errors import warn_of_old_name
from tests.fuzz import FUZZERS, SHARES
from tests.fuzz.attack import case_of, divided, failures, run, shrunk
from tests.fuzz.judgement import judged, sentence_problem
from tests.fuzz.questions import ASKED

CASES = {"engines": 100}
"""Others 500: rows in partitions take longer."""


@pytest.mark.more
@pytest.mark.parametrize("name", SHARES)
def test_hostile_cases_end_well(name):
    found = list(failures(FUZZERS[name], 0, range(CASES.get(name, 500))))
    assert found[:-1] == []
    assert found[-1][1] == CASES.get(name, 500)


def test_cases_are_divided_and_none_is_lost():
    assert sum(divided(20_000, SHARES).values()) == 20_000
    assert min(divided(20_000, SHARES).values()) >= 200


def test_a_run_that_stops_early_has_not_passed(capsys):
    assert not run(40, 1, 0.0, {"map files": 1}, processes=1)
    said = capsys.readouterr().out
    assert "0 of 40 cases, 0 failed" in said
    assert "NOT PASSED: 40 cases were not tried; the bound is 0 seconds." in said


def test_a_process_that_dies_has_not_passed(capsys):
    assert not run(40, 1, 600.0, {"no such fuzzer": 1}, processes=1)
    assert "a process ended with code 1, and its cases do not count" in capsys.readouterr().out


def test_a_short_run_passes(capsys):
    assert run(20, 1, 600.0, {"earlier verdicts": 1}, processes=1)
    assert "20 of 20 cases, 0 failed" in capsys.readouterr().out


def test_every_option_and_question_is_attacked():
    """What is new on the front door, or on the command line, must not be forgotten here."""
    lines, studies = FUZZERS["command line"], FUZZERS["studies"]
    asked = {"demo", "reproduce"} | set(lines.COMMANDS)
    assert asked == set(lines.KNOWN)
    for name in ("assess", "calibrate", "compare", "policy", "choose", "audit", "sensitivity"):
        taken = set(inspect.signature(getattr(orthocal.Study, name)).parameters) - {
            "self",
            "one",
            "other",
            "predictions",
        }
        assert taken <= set(ASKED[name])
    assert {field.name for field in fields(orthocal.Study)} - {"data"} == set(studies.ROLES)


def test_a_case_is_the_same_by_its_number():
    fuzzer = FUZZERS["map files"]
    assert case_of(fuzzer, 1, 7) == case_of(fuzzer, 1, 7)
    assert len({str(case_of(fuzzer, 1, k)) for k in range(50)}) > 45


def test_what_is_wrong_is_found_and_made_small(monkeypatch):
    """A fuzzer that is blind would pass everything."""
    fuzzer = FUZZERS["map files"]
    monkeypatch.setattr("orthocal.mapfile._require_numbers", lambda *_: None)
    monkeypatch.setattr("orthocal.maps.require_number", lambda *_: None)
    found = list(failures(fuzzer, 0, range(300)))[:-1]
    assert found
    number, few, _ = found[0]
    assert len(few) <= len(case_of(fuzzer, 0, number))
    assert shrunk(fuzzer, few) == few


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: bool(np.float64(1) / np.float64(0)), "RuntimeWarning leaks"),
        (lambda: warnings.warn("soon", FutureWarning, stacklevel=1), "FutureWarning leaks"),
        (lambda: warn_of_old_name("a", "b"), None),
        (lambda: orthocal.load("no such map.json"), None),
        (lambda: np.nan, "result is nan"),
        (lambda: {"a": [1.0, np.inf]}, "result['a'][1] is inf"),
    ],
)
def test_judgement(call, problem):
    from tests.fuzz.judgement import not_finite

    found = judged(call, finite=not_finite)
    assert found is None if problem is None else problem in found


def test_an_input_that_is_modified_is_seen():
    values = np.zeros(3)
    assert judged(lambda: values.__setitem__(0, 1.0), [values]) == "an input was modified"
    table = pd.DataFrame({f"column {k}": np.zeros(100) for k in range(30)})
    assert judged(lambda: len(table) and None, [table]) is None
    assert judged(lambda: table.iloc.__setitem__((50, 15), 1.0), [table]) == "an input was modified"


def test_a_list_to_be_pasted_may_be_long():
    columns = ", ".join(repr(f"column {k}") for k in range(100))
    assert sentence_problem(f"`covariates` must be named. Choose among covariates=[{columns}].") is None


@pytest.mark.parametrize("text", ["x" * 301, "two\nlines.", "no end", "Wrong."])
def test_bad_sentences_are_seen(text):
    assert sentence_problem(text) is not None
