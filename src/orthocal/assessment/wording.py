"""Numbers in words, never saying more than they support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment.parts import Sensitivity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.arrays import Booleans
    from orthocal.assessment.parts import Decomposition, TestResult
    from orthocal.assessment.records import Assessment, Comparison


MISSED = {
    "effect": "they miss the average effect of people with like predictions by {}",
    "ratio": "they miss the ratio among people with like predictions by {}",
    "probability": "the share of outcomes below them misses what it should be by {}",
    "score": "their mean score misses 0 by {}",
}
"""What an error means, by the unit of the residuals."""
SHARE = 0.25
"""Of 1 - level, that each test has beside the interval of the error, which has half. They overlap so much that together they
reject a calibrated prediction at most in 1 - level of all samples: measured in `tests/statistics/test_verdict.py`."""
IN_UNITS = {"probability": " in probability", "score": " in score"}
"""How sizes are followed up where they are not in units of the effect."""


def verdict(numbers: Mapping[str, Any]) -> str:
    """Return the verdict in two or three sentences, from the numbers of an assessment."""
    rejecting = rejections(numbers)
    low, high = (number(end) for end in numbers["interval"])
    error, interval = number(numbers["error"]), f"{_percent(numbers)} interval {low} to {high}"
    if numbers["interval"][0] > 0:
        missed = MISSED.get(numbers["unit"], MISSED["score"]).format(error)
        first = f"The predictions are miscalibrated: {missed} ({interval})."
        return " ".join([first, _in_the_large(numbers), *_where(numbers), *_in_groups(numbers)])
    if rejecting:
        name, p_value = min(rejecting.items(), key=lambda pair: pair[1])
        first = f"There is evidence of miscalibration ({name} test, p = {p_value:.2g}), though the error may be small: {error}"
        return " ".join([f"{first} ({interval}).", _in_the_large(numbers), *_where(numbers), *_in_groups(numbers)])
    detectable = number(numbers["minimum_detectable_error"])
    first = (
        f"No miscalibration was detected: an error of {detectable} or more would have been seen with probability 0.8"
    )
    return " ".join([f"{first} (error {error}, {interval}).", *_in_groups(numbers)])


def is_detected(assessment: Assessment) -> bool:
    """Return whether an assessment shows miscalibration: by the interval of the error, or by one of the tests."""
    return assessment.interval[0] > 0 or bool(rejections(vars(assessment)))


def rejections(numbers: Mapping[str, Any]) -> dict[str, float]:
    """Return the p-values of the tests that reject at their share of the level."""
    alpha = SHARE * (1 - numbers["level"])
    return {name: t.p_value for name, t in numbers["tests"].items() if t.p_value is not None and t.p_value < alpha}


def sensitivity(interval: tuple[float, float]) -> Sensitivity:
    """Return the hidden bias that would overturn the verdict.

    A bias b(X) in the estimated effects moves every bin's mean by the mean of b there, hence the error by at most the root mean
    square of b given the prediction (from the identity of MATH E13).
    """
    low, high = interval
    if low > 0:
        text = f"A hidden bias of {number(low)} (root mean square) in the estimated effects could explain all of this error."
    else:
        hidden = f"with one of {number(high)}, an error of {number(2 * high)} would fit the data"
        text = f"A hidden bias could hide an error: {hidden}."
    return Sensitivity(low if low > 0 else high, text)


def story(before: Assessment, after: Assessment, comparison: Comparison) -> str:
    """Return what calibration did, in a sentence or two."""
    low, high = (number(end) for end in after.interval)
    moved = "falls" if after.error < before.error else "does not fall"
    first = (
        f"Calibration: {comparison.verdict}. On rows the map never saw the error {moved} from {number(before.error)} to "
        f"{number(after.error)} ({_percent(vars(after))} interval {low} to {high})."
    )
    return " ".join([first, *_decision(comparison)])


def summary(assessment: Assessment) -> str:
    """Return the verdict and the numbers behind it as text."""
    a = assessment
    low, high = (number(end) for end in a.interval)
    average = a.average
    lines = [
        a.verdict,
        "",
        f"calibration error    {_error(a)}   {_percent(vars(a))} interval {low} to {high}   {_size(a)}",
        f"  squared, debiased  {number(a.error_squared)}   standard error {number(a.standard_error)}",
        f"  mean absolute      {number(a.l1.value)}   (a perfect prediction would show {number(a.l1.null)})",
        f"  largest in a bin   {number(a.linf.value)}   (simultaneous band: {number(a.linf.band)} standard errors)",
        f"  detectable         {number(a.minimum_detectable_error)}   (would have been seen with probability 0.8)",
        f"average effect       {number(average.effect)}   {_range(average.interval)}",
        f"mean prediction      {number(average.prediction)}",
        *(f"{name + ' test':<21}{_test(test)}" for name, test in a.tests.items()),
        *_predictor(a),
        *_rate(a),
        *_decomposition(a),
        *_value(a),
        *_groups(a),
        f"hidden bias          {a.sensitivity.text}",
        *_overlap(a),
    ]
    return "\n".join(lines)


def _where(numbers: Mapping[str, Any]) -> list[str]:
    """Name the end of the predictions where the simultaneous band leaves the diagonal."""
    bins = numbers["bins"]
    beyond = (bins["band_lower"] > 0) | (bins["band_upper"] < 0)
    if beyond.all() or not beyond.any():
        return []
    sign = np.sign(bins["residual"])
    words = {-1.0: "too high", 1.0: "too low"}
    found = []
    top = _run(beyond[::-1] & (sign[::-1] == sign[-1]))
    if top:
        gap = float(np.average(bins["residual"][-top:], weights=bins["mass"][-top:]))
        found.append(f"those above {number(bins['lower'][-top])} are {words[sign[-1]]} by {number(abs(gap))}")
    bottom = _run(beyond & (sign == sign[0]))
    if bottom:
        gap = float(np.average(bins["residual"][:bottom], weights=bins["mass"][:bottom]))
        found.append(f"those up to {number(bins['upper'][bottom - 1])} are {words[sign[0]]} by {number(abs(gap))}")
    text = " and ".join(found) + IN_UNITS.get(numbers["unit"], "")
    return [f"{text[0].upper()}{text[1:]}."] if found else []


def _run(flags: Booleans) -> int:
    """How many flags are set before the first that is not."""
    return int(np.argmin(flags)) if not flags.all() else len(flags)


def _in_groups(numbers: Mapping[str, Any]) -> list[str]:
    groups = [group for group in numbers["groups"] if group.p_value_adjusted is not None]
    if not groups:
        return []
    wrong = [g for g in groups if g.p_value_adjusted < 1 - numbers["level"]]
    if not wrong:
        return [f"In none of the {len(groups)} groups was miscalibration detected."]
    names = ", ".join(f"{g.column} = {g.level}" for g in wrong[:5])
    return [f"Miscalibrated in {len(wrong)} of {len(groups)} groups: {names}."]


def _decision(comparison: Comparison) -> list[str]:
    if comparison.decision is None:
        return []
    d = comparison.decision
    changed = f"At cost {number(d.cost)} it changes the decision for {d.share_flipped:.1%} of rows"
    return [f"{changed}, gaining {number(d.gain)} per row ({_range(d.interval)})."]


def _predictor(a: Assessment) -> list[str]:
    if a.linear_predictor is None:
        return []
    one, two = a.linear_predictor.intercept, a.linear_predictor.slope
    lines = f"intercept {number(one.value)}, {_range(one.interval)}; slope {number(two.value)}, {_range(two.interval)}"
    return [f"linear predictor     {lines}"]


def _rate(a: Assessment) -> list[str]:
    if a.rate is None:
        return []
    parts = [
        f"{name} {number(c.value)}, {_range(c.interval)}"
        for name, c in (("AUTOC", a.rate.autoc), ("Qini", a.rate.qini))
    ]
    return [f"ranking              {'; '.join(parts)}"]


def _decomposition(a: Assessment) -> list[str]:
    return [f"mean loss            {number(a.risk)} {parts_of_loss(a.decomposition)}"]


def parts_of_loss(d: Decomposition) -> str:
    """Return what the mean loss is the sum of, in words."""
    if d.miscalibration is None:
        return "(too little mass to take it apart)"
    parts = f"miscalibration {number(d.miscalibration)} - discrimination {number(d.discrimination)}"
    return f"= {parts} + uncertainty {number(d.uncertainty)}"


def _value(a: Assessment) -> list[str]:
    if a.value is None:
        return []
    v = a.value
    line = f"value at cost {number(v.cost):<7}{number(v.value)} per row, {_range(v.interval)}; {v.share_treated:.1%} treated "
    return [f"{line}(everyone: {number(v.treating_everyone)}, no one: 0)"]


def _groups(a: Assessment) -> list[str]:
    return [
        f"  {g.column + ' = ' + g.level:<28}error {number(g.error)}, too high by {number(g.excess)}, "
        f"adjusted p = {number(g.p_value_adjusted)} ({g.rows:,} rows)"
        for g in a.groups
    ]


def _size(a: Assessment) -> str:
    return f"({len(a.bins['n'])} bins, {a.rows:,} rows)"


def _range(interval: tuple[float, float]) -> str:
    return f"interval {between(interval)}"


def between(ends: tuple[float, float]) -> str:
    """Return an interval in words."""
    return f"{number(ends[0])} to {number(ends[1])}"


def _error(a: Assessment) -> str:
    if a.error > 0:
        return number(a.error)
    return f"not distinguishable from 0; errors above {number(a.minimum_detectable_error)} would have been seen"


def _overlap(a: Assessment) -> list[str]:
    if a.overlap is None:
        return []
    levels = [
        f"{name} {low:.3f} to {high:.3f} (counts as {a.overlap.effective_rows[name]:,.0f} rows)"
        for name, (low, high) in a.overlap.propensity.items()
    ]
    clipped = [f"{share:.1%} of {name} clipped at {a.overlap.clip}" for name, share in a.overlap.clipped.items()]
    found = [f"propensities: {'; '.join(levels + clipped)}"] if levels + clipped else []
    found += [] if a.overlap.balance is None else [str(a.overlap.balance)]
    return [f"{'' if k else 'overlap':<21}{line}" for k, line in enumerate([*found, *a.overlap.notes])]


def _test(test: TestResult) -> str:
    if test.p_value is None or test.statistic is None:
        return test.note
    p_value = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.4f}"
    return f"statistic {number(test.statistic)}, {p_value}   ({test.note})"


def _in_the_large(numbers: Mapping[str, Any]) -> str:
    average = numbers["average"]
    low, high = average.excess_interval
    if low <= 0 <= high:
        return "On average they are right: the error lies in how they vary."
    word, ends = ("too high", (low, high)) if low > 0 else ("too low", (-high, -low))
    size = f"{number(abs(average.excess))}{IN_UNITS.get(numbers['unit'], '')}"
    return f"On average they are {word} by {size} (interval {number(ends[0])} to {number(ends[1])})."


def _percent(numbers: Mapping[str, Any]) -> str:
    return f"{100 * numbers['level']:g}%"


def number(value: float | None) -> str:
    """Return a number in four digits."""
    return "none" if value is None else f"{value:.4g}"
