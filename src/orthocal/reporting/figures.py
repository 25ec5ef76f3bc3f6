"""What a verdict shows: one list of figures, which text, notebook, page and JSON all print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from orthocal.assessment.parts import Decision, Group, Robustness, TestResult
from orthocal.assessment.records import Assessment, Comparison
from orthocal.assessment.sentences import decision_in_words
from orthocal.assessment.status import CALIBRATED, INCONCLUSIVE, MISCALIBRATED
from orthocal.formats import between, estimate, number, off_by, p_value, percent, whole
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
        *(group_figure(group) for group in a.subgroups),
        robustness_figure(a.sensitivity),
        *overlap_figures(a.overlap),
    ]


def robustness_figure(found: Robustness) -> Figure:
    """Return how strong unmeasured confounding would have to be: as a robustness value where there is one, else as a bias."""
    value = found.error if found.error is not None else found.average
    size = "none, by design" if found.bias is None else number(found.bias) if value is None else f"{value:.1%}"
    return Figure("unmeasured confounding", size, found.text)


def main_figures(a: Assessment) -> list[Figure]:
    """Return the sizes and tests that every assessment has, and those that only some have."""
    is_mean = a.unit in ("effect", "ratio")
    return [
        _rows_figure(a),
        Figure("status", a.status, _status_meaning(a)),
        Figure("calibration error", estimate(a.error, a.interval), _error_meaning(a)),
        Figure("  tolerance", number(a.tolerance), f"an error this large would matter; {a.tolerance_note}"),
        *([] if a.is_constant else _distance_figures(a)),
        *_redraws_figure(a),
        Figure("  detectable", number(a.minimum_detectable_error), "would have been seen with probability 0.8"),
        Figure(
            "average effect" if is_mean else "best constant",
            estimate(a.average.effect, a.average.interval),
            _average_meaning(a),
        ),
        Figure(
            "mean prediction",
            number(a.average.prediction),
            "the average effect, when calibrated" if is_mean else NO_MEAN,
        ),
        *(
            _test_figure(name, test)
            for name, test in a.tests.items()
            if test.statistic is not None or not a.is_constant
        ),
        *_line_figures(a),
        *_ranking_figures(a),
        *_loss_figures(a),
        *_value_figures(a),
    ]


NO_MEAN = "need not be that constant when calibrated: quantiles and expectiles do not average"


def _average_meaning(a: Assessment) -> str:
    is_difference = a.origin is not None and a.origin.effect.startswith("CATE(")
    return "average treatment effect (ATE) of these rows" if is_difference else "of all rows together"


def _rows_figure(a: Assessment) -> Figure:
    bins = "one prediction for all" if a.is_constant else f"{len(a.bins['n'])} bins"
    if len(a.bins["n"]) == 1 and not a.is_constant:
        bins = "one bin"
    return Figure("rows judged", f"{a.rows:,}, {bins}", f"{percent(a.level)} intervals in brackets")


def _status_meaning(a: Assessment) -> str:
    if a.rows_needed is not None:
        return f"about {whole(a.rows_needed)} rows would show it, if there is no error"
    return STATUS_MEANINGS[a.status]


STATUS_MEANINGS = {
    CALIBRATED: "the error is within the tolerance",
    MISCALIBRATED: "an error was detected",
    INCONCLUSIVE: "no error was detected, and one beyond the tolerance is not ruled out",
}


def _redraws_figure(a: Assessment) -> list[Figure]:
    if not a.redraws:
        return []
    errors = ", ".join(number(error) for error in a.redraws)
    return [Figure("  by draw of the folds", errors, "the error, with this draw of the folds and others")]


def _distance_figures(a: Assessment) -> list[Figure]:
    return [
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
    ]


def comparison_figures(c: Comparison) -> list[Figure]:
    """Return the figures of a comparison."""
    first, second = c.rivals or ("before", "after")
    meaning = "negative is better" if c.rivals is None else f"negative is better for {second}"
    loss = Figure(f"mean loss, {second} - {first}", estimate(c.risk_difference, c.interval), meaning)
    harm = Figure("test for harm", p_value(c.p_value_harm), "small means evidence of harm")
    if c.rivals is not None:
        harm = Figure(f"test that {second} is not worse", p_value(c.p_value_harm), "small means evidence that it is")
    return [loss, harm, *([] if c.decision is None else _decision_figures(c.decision))]


def comparison_summary(c: Comparison) -> str:
    """Return the verdict of a comparison and the figures behind it as text."""
    first = c.verdict if c.rivals else f"{c.verdict[0].upper()}{c.verdict[1:]}"
    words = " ".join([f"{first}.", *decision_in_words(c)])
    return f"{words}\n\n{as_text(comparison_figures(c))}"


def group_figure(group: Group) -> Figure:
    """Return the error of a subgroup."""
    parts = [f"adjusted {p_value(group.p_value_adjusted)}", f"{group.rows:,} rows"]
    if group.excess is not None and group.excess_interval is not None:
        parts = [off_by(group.excess, group.excess_interval), *parts]
    return Figure(f"error, {group.column} = {group.value}", estimate(group.error, group.interval), ", ".join(parts))


def overlap_figures(overlap: Overlap | None) -> Iterator[Figure]:
    """Yield the ranges of the propensities, how many were clipped, and what else is to be said of overlap."""
    if overlap is None:
        return
    for name, ends in overlap.propensity.items():
        rows = f"effective sample size {overlap.effective_rows[name]:,.0f} of {overlap.rows[name]:,} rows"
        yield Figure(f"propensity, {name}", between(ends), rows)
    for name, share in overlap.clipped.items():
        if "propensity" in name:  # what else is kept away from 0 has a floor of its own, and a note
            yield Figure(f"{name} clipped", f"{share:.1%}", f"of rows, at {overlap.clip:g}")
    notes = overlap.notes if overlap.balance is None else (*overlap.notes, str(overlap.balance))
    for note in notes:
        yield Figure("overlap", "", note)


def _error_meaning(a: Assessment) -> str:
    if a.error > 0:
        return "debiased distance from the average effect" if a.is_constant else "root mean square over the bins"
    return f"not distinguishable from 0; errors above {number(a.minimum_detectable_error)} would have been seen"


def _test_figure(name: str, test: TestResult) -> Figure:
    statistic = "" if test.statistic is None else f", statistic {number(test.statistic)}"
    return Figure(f"{name} test", f"{p_value(test.p_value)}{statistic}", test.note)


def _line_figures(a: Assessment) -> list[Figure]:
    if a.linear_predictor is None:
        return []
    one, two = a.linear_predictor.intercept, a.linear_predictor.slope
    return [
        Figure("intercept", estimate(one.value, one.interval), "of the best linear predictor; 0 when calibrated"),
        Figure("slope", estimate(two.value, two.interval), "1 when calibrated, below 1 when effects are exaggerated"),
    ]


def _ranking_figures(a: Assessment) -> list[Figure]:
    if a.rate is None:
        return []
    one, two = a.rate.autoc, a.rate.qini
    return [
        Figure("ranking, AUTOC", estimate(one.value, one.interval), f"0 for a random order: {a.ranking}"),
        Figure("ranking, Qini", estimate(two.value, two.interval), "0 for a random order"),
    ]


def _loss_figures(a: Assessment) -> list[Figure]:
    d = a.decomposition
    if d.miscalibration is None:
        return [Figure("mean loss", number(a.risk), "too little mass to decompose it")]
    return [
        Figure("mean loss", number(a.risk), "the sum of the next three"),
        Figure("  = miscalibration", number(d.miscalibration), "what the best map would remove"),
        Figure("  - discrimination", number(d.discrimination), "what distinguishing people gains"),
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
