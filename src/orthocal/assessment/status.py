"""The status of a verdict, against a stated tolerance, and whether the prediction ranks: one rule for every reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orthocal.assessment.parts import Group, Rate

CALIBRATED, MISCALIBRATED, INCONCLUSIVE = "calibrated", "miscalibrated", "inconclusive"
STATUSES = (CALIBRATED, MISCALIBRATED, INCONCLUSIVE)
RANKS, UNRANKED, BACKWARDS = "ranks", "no evidence that it ranks", "ranks backwards"
SHARE = 0.2
"""Of 1 - level, that each test has, and all subgroups together, beside the interval of the error, which has half. They overlap
so much that together they reject a calibrated prediction at most in 1 - level of all samples: measured in
`tests/statistics/test_status.py`."""
SURER = 0.314
"""By so much more of its half an interval of 99% reaches out than one of 95%: a grave word asks for more."""
NEGLIGIBLE = 0.1
"""Of the tolerance: an error that is surely smaller does not matter, whatever rejects."""


def status_of(numbers: Mapping[str, Any]) -> str:
    """Return the status from the numbers of an assessment: its interval, tests, subgroups and tolerance."""
    _, high = numbers["interval"]
    tolerance, rejected = numbers["tolerance"], is_rejected(numbers)
    if not rejected and high <= tolerance:
        return CALIBRATED
    if is_negligible(numbers):
        return CALIBRATED
    return MISCALIBRATED if rejected else INCONCLUSIVE


def is_within(numbers: Mapping[str, Any]) -> bool:
    """Return whether the error is surely within the tolerance, and so is that of every subgroup that rejects."""
    tolerance = numbers["tolerance"]
    beyond = any(group.interval is None or group.interval[1] > tolerance for group in rejected_subgroups(numbers))
    return bool(numbers["interval"][1] <= tolerance and not beyond)


def is_rejected(numbers: Mapping[str, Any]) -> bool:
    """Return whether miscalibration was detected: by the interval of the error, by a test, or in a subgroup."""
    return bool(numbers["interval"][0] > 0 or rejections(numbers) or rejected_subgroups(numbers))


def is_negligible(numbers: Mapping[str, Any]) -> bool:
    """Return whether the error is surely a small part of the tolerance, and surely within it where a subgroup rejects."""
    return bool(numbers["interval"][1] <= NEGLIGIBLE * numbers["tolerance"] and is_within(numbers))


def rejections(numbers: Mapping[str, Any]) -> dict[str, float]:
    """Return the p-values of the tests that reject at their share of the level."""
    alpha = SHARE * (1 - numbers["level"])
    return {name: t.p_value for name, t in numbers["tests"].items() if t.p_value is not None and t.p_value < alpha}


def rejected_subgroups(numbers: Mapping[str, Any]) -> list[Group]:
    """Return the subgroups whose adjusted test rejects at their share of the level."""
    alpha = SHARE * (1 - numbers["level"])
    return [g for g in numbers["subgroups"] if g.p_value_adjusted is not None and g.p_value_adjusted < alpha]


def ranking_of(rate: Rate | None) -> str | None:
    """Return whether those predicted to gain more do gain more, by the interval of AUTOC; None where there is no AUTOC."""
    if rate is None:
        return None
    low, high = rate.autoc.interval
    if low > 0:
        return RANKS
    return BACKWARDS if high + SURER * (high - rate.autoc.value) < 0 else UNRANKED
