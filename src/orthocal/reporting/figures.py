"""What a verdict shows: one list of figures, which text, notebook, page and JSON all print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from orthocal.assessment.parts import Decision, Group, TestResult
from orthocal.assessment.records import Assessment, Comparison
from orthocal.formats import between, estimate, number, p_value, percent
from orthocal.losses import Overlap


class Figure(NamedTuple):
    """One line of a verdict: what it is, its number (with its interval in brackets), and what to make of it."""

    name: str
    figure: str
    meaning: str


def figures_of(a: Assessment) -> list[Figure]:
    """Return the figures of an assessment, those of its subgroups and of its overlap last."""
    return [
        *main_figures(a),
        *(group_figure(group) for group in a.groups),
        Figure("unmeasured confounding", number(a.sensitivity.bias), a.sensitivity.text),
        *overlap_figures(a.overlap),
    ]


def main_figures(a: Assessment) -> list[Figure]:
    """Return the sizes and tests that every assessment has, and those that only some have."""
    return [
        Figure("rows judged", f"{a.rows:,}, {len(a.bins['n'])} bins", f"{percent(a.level)} intervals in brackets"),
        Figure("calibration error", estimate(a.error, a.interval), _error_meaning(a)),
        Figure(
            "  squared",
            f"{number(a.error_squared)}, error {number(a.standard_error)}",
            "debiased, with its standard error",
        ),
        Figure(
            "  mean absolute",
            f"{number(a.l1.value)}, {number(a.l1.null)} if perfect",
            "partly debiased, beside what a perfect prediction would show",
        ),
        Figure(
            "  largest in a bin",
            f"{number(a.linf.value)}, band {number(a.linf.band)}",
            "with the simultaneous band, in standard errors",
        ),
        Figure("  detectable", number(a.minimum_detectable_error), "would have been seen with probability 0.8"),
        Figure("average effect", estimate(a.average.effect, a.average.interval), "of all rows together"),
        Figure("mean prediction", number(a.average.prediction), "the average effect, when calibrated"),
        *(_test_figure(name, test) for name, test in a.tests.items()),
        *_line_figures(a),
        *_ranking_figures(a),
        *_loss_figures(a),
        *_value_figures(a),
    ]


def comparison_figures(c: Comparison) -> list[Figure]:
    """Return the figures of a comparison."""
    loss = Figure("mean loss, after - before", estimate(c.risk_difference, c.interval), "negative is better")
    harm = Figure("test for harm", p_value(c.p_value_harm), "small means evidence of harm")
    return [loss, harm, *([] if c.decision is None else _decision_figures(c.decision))]


def group_figure(group: Group) -> Figure:
    """Return the error of a subgroup."""
    excess = f"too high by {estimate(group.excess, group.excess_interval)}"
    meaning = f"{excess}, adjusted {p_value(group.p_value_adjusted)}, {group.rows:,} rows"
    return Figure(f"error, {group.column} = {group.level}", estimate(group.error, group.interval), meaning)


def overlap_figures(overlap: Overlap | None) -> Iterator[Figure]:
    """Yield the ranges of the propensities, how many were clipped, and what else is to be said of overlap."""
    if overlap is None:
        return
    for name, ends in overlap.propensity.items():
        rows = f"effective sample size {overlap.effective_rows[name]:,.0f} of {overlap.rows[name]:,} rows"
        yield Figure(f"propensity, {name}", between(ends), rows)
    for name, share in overlap.clipped.items():
        yield Figure(f"{name} clipped", f"{share:.1%}", f"of rows, at {overlap.clip:g}")
    notes = overlap.notes if overlap.balance is None else (*overlap.notes, str(overlap.balance))
    for note in notes:
        yield Figure("overlap", "", note)


def _error_meaning(a: Assessment) -> str:
    if a.error > 0:
        return "root mean square over the bins"
    return f"not distinguishable from 0; errors above {number(a.minimum_detectable_error)} would have been seen"


def _test_figure(name: str, test: TestResult) -> Figure:
    statistic = "" if test.statistic is None else f", statistic {number(test.statistic)}"
    return Figure(f"{name} test", f"{p_value(test.p_value)}{statistic}", test.note)


def _line_figures(a: Assessment) -> list[Figure]:
    if a.linear_predictor is None:
        return []
    one, two = a.linear_predictor.intercept, a.linear_predictor.slope
    return [
        Figure("intercept", estimate(one.value, one.interval), "of the best line; 0 when calibrated"),
        Figure("slope", estimate(two.value, two.interval), "1 when calibrated, below when it exaggerates"),
    ]


def _ranking_figures(a: Assessment) -> list[Figure]:
    if a.rate is None:
        return []
    named = (("AUTOC", a.rate.autoc), ("Qini", a.rate.qini))
    return [Figure(f"ranking, {name}", estimate(c.value, c.interval), "0 by chance") for name, c in named]


def _loss_figures(a: Assessment) -> list[Figure]:
    d = a.decomposition
    if d.miscalibration is None:
        return [Figure("mean loss", number(a.risk), "too little mass to take it apart")]
    return [
        Figure("mean loss", number(a.risk), "the sum of the next three"),
        Figure("  = miscalibration", number(d.miscalibration), "what the best map would remove"),
        Figure("  - discrimination", number(d.discrimination), "what telling people apart gains"),
        Figure("  + uncertainty", number(d.uncertainty), "loss of the best constant"),
    ]


def _value_figures(a: Assessment) -> list[Figure]:
    if a.value is None:
        return []
    v = a.value
    return [
        Figure(f"value at cost {number(v.cost)}", estimate(v.value, v.interval), "per row; treating no one is worth 0"),
        Figure("  share treated", f"{v.share_treated:.1%}", "of rows, those predicted to gain more than the cost"),
        Figure("  of treating all", number(v.treating_everyone), "per row"),
    ]


def _decision_figures(d: Decision) -> list[Figure]:
    return [
        Figure(f"decisions changed at cost {number(d.cost)}", f"{d.share_flipped:.1%}", "of rows"),
        Figure("gain of that, per row", estimate(d.gain, d.interval), ""),
    ]


WIDEST = 32
"""Characters of a column, beyond which one line may stick out."""


def summary(assessment: Assessment) -> str:
    """Return the verdict and the figures behind it as text."""
    return f"{assessment.verdict}\n\n{as_text(figures_of(assessment))}"


def as_text(figures: list[Figure]) -> str:
    """Return figures as lines, in aligned columns."""
    names, numbers = (max(len(line[k]) for line in figures if len(line[k]) <= WIDEST) for k in (0, 1))
    return "\n".join(f"{line.name:<{names}}  {line.figure:<{numbers}}  {line.meaning}".rstrip() for line in figures)
