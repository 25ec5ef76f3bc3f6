"""Some cases of every fuzzer; `make fuzz CASES=20000` tries more. And the fuzzers find what they should."""

import numpy as np
import pytest

import orthocal
from tests.fuzz import FUZZERS, SHARES
from tests.fuzz.attack import case_of, failures, shrunk
from tests.fuzz.judgement import judged, sentence_problem

CASES = {"engines": 20}
"""Others 500: on Dask a case takes a second."""


@pytest.mark.more
@pytest.mark.parametrize("name", SHARES)
def test_hostile_cases_end_well(name):
    found = list(failures(FUZZERS[name], 0, range(CASES.get(name, 500))))
    assert found[:-1] == []
    assert found[-1][1] == CASES.get(name, 500)


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


@pytest.mark.parametrize("text", ["x" * 301, "two\nlines.", "no end", "Wrong."])
def test_bad_sentences_are_seen(text):
    assert sentence_problem(text) is not None
