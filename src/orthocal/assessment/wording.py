"""Numbers in words, never saying more than they support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.assessment.records import Assessment, TestResult


def verdict(numbers: Mapping[str, Any]) -> str:
    """Return the verdict in a sentence or two, from the numbers of an assessment.

    Two looks are taken, at the interval of the error and at the linear test, so each is given half of the level.
    """
    p_value = numbers["tests"]["linear"].p_value
    low, high = (_number(end) for end in numbers["interval"])
    error, interval = _number(numbers["error"]), f"{_percent(numbers)} interval {low} to {high}"
    if numbers["interval"][0] > 0:
        return (
            f"The predictions are miscalibrated: they miss the average effect of people with like predictions by {error} "
            f"({interval}). {_in_the_large(numbers)}"
        )
    if p_value is not None and p_value < (1 - numbers["level"]) / 2:
        return (
            f"There is evidence of miscalibration (linear test, p = {p_value:.2g}), though the error may be small: {error} "
            f"({interval}). {_in_the_large(numbers)}"
        )
    return (
        f"No miscalibration was detected: an error of {_number(numbers['minimum_detectable_error'])} or more "
        f"would have been seen with probability 0.8 (error {error}, {interval})."
    )


def summary(assessment: Assessment) -> str:
    """Return the verdict and the numbers behind it as text."""
    a = assessment
    low, high = (_number(end) for end in a.interval)
    average = a.average
    lines = [
        a.verdict,
        "",
        f"calibration error    {_error(a)}   {_percent(vars(a))} interval {low} to {high}   {_size(a)}",
        f"  squared, debiased  {_number(a.error_squared)}   standard error {_number(a.standard_error)}",
        f"  mean absolute      {_number(a.l1.value)}   (a perfect prediction would show {_number(a.l1.null)})",
        f"  largest in a bin   {_number(a.linf.value)}   (simultaneous band: {_number(a.linf.band)} standard errors)",
        f"average effect       {_number(average.effect)}   {_range(average.interval)}   mean prediction {_number(average.prediction)}",  # noqa: E501
        *(f"{name + ' test':<21}{_test(test)}" for name, test in a.tests.items()),
        *_overlap(a),
    ]
    return "\n".join(lines)


def _size(a: Assessment) -> str:
    return f"({len(a.bins['n'])} bins, {a.rows:,} rows)"


def _range(interval: tuple[float, float]) -> str:
    return f"interval {_number(interval[0])} to {_number(interval[1])}"


def _error(a: Assessment) -> str:
    if a.error > 0:
        return _number(a.error)
    return f"not distinguishable from 0; errors above {_number(a.minimum_detectable_error)} would have been seen"


def _overlap(a: Assessment) -> list[str]:
    if a.overlap is None:
        return []
    levels = [
        f"{name} {low:.3f} to {high:.3f} (counts as {a.overlap.effective_rows[name]:,.0f} rows)"
        for name, (low, high) in a.overlap.propensity.items()
    ]
    clipped = [f"{share:.1%} of {name} clipped at {a.overlap.clip}" for name, share in a.overlap.clipped.items()]
    return [
        f"overlap              propensities: {'; '.join(levels + clipped)}",
        *(f"{'':<21}{note}" for note in a.overlap.notes),
    ]


def _test(test: TestResult) -> str:
    if test.p_value is None or test.statistic is None:
        return test.note
    p_value = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.4f}"
    return f"statistic {_number(test.statistic)}, {p_value}   ({test.note})"


def _in_the_large(numbers: Mapping[str, Any]) -> str:
    average = numbers["average"]
    low, high = average.excess_interval
    if low <= 0 <= high:
        return "On average they are right: the error lies in how they vary."
    word, ends = ("too high", (low, high)) if low > 0 else ("too low", (-high, -low))
    return f"On average they are {word} by {_number(abs(average.excess))} (interval {_number(ends[0])} to {_number(ends[1])})."


def _percent(numbers: Mapping[str, Any]) -> str:
    return f"{100 * numbers['level']:g}%"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
