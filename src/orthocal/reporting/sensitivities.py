"""What a sensitivity analysis shows: one list of figures, printed as text, in a notebook and in JSON."""

from __future__ import annotations

from orthocal.assessment.loss_pair import Bounds
from orthocal.formats import between, estimate, number, percent
from orthocal.reporting.figures import Figure, as_text
from orthocal.sensitivity.records import Benchmark, MarginalBounds, Sensitivity

STRENGTH = (
    "Strength, outcome: the share of the outcome's residual variance (given covariates and treatment) that an unmeasured "
    "confounder explains. Strength, treatment: the share of the variance of the treatment weights that knowing it would add."
)
"""What the two parts of the strength are."""


def sensitivity_summary(found: Sensitivity) -> str:
    """Return the sentence about robustness and the figures behind it as text."""
    if found.reason:
        return found.reason
    return f"{found.robustness.text}\n\n{as_text(sensitivity_figures(found))}\n\n{STRENGTH}"


def sensitivity_figures(found: Sensitivity) -> list[Figure]:
    """Return the figures: without confounding, robustness values, benchmarks, and factors of the odds of treatment."""
    if found.reason:
        return []
    still = found.at_product(0.0)
    return [
        Figure("rows", f"{found.rows:,}", f"{percent(found.level)} intervals in brackets"),
        Figure("average effect", _point(still["average"]), "if there is no unmeasured confounding"),
        _robustness("  robustness value", found.robustness.average, "could change its sign"),
        Figure("calibration error", _point(still["error"]), "likewise"),
        _robustness("  robustness value", found.robustness.error, "could explain all of it"),
        *_value_figures(found),
        *(_benchmark(found, one) for one in found.benchmarks),
        *(figure for one in found.marginal for figure in _marginal(one)),
    ]


def _point(bounds: Bounds) -> str:
    return estimate(bounds.lower, bounds.interval)


def _robustness(name: str, value: float | None, could: str) -> Figure:
    if value is None:
        return Figure(name, "none", "the interval includes 0 as it is")
    return Figure(name, f"{value:.1%}", f"a confounder of this strength in both parts {could}")


def _value_figures(found: Sensitivity) -> list[Figure]:
    if found.value is None:
        return []
    bounds = found.at_product(0.0)["value"]
    return [
        Figure(
            f"value at cost {number(found.cost)}", _point(bounds), "per person, of treating those predicted above it"
        )
    ]


def _benchmark(found: Sensitivity, one: Benchmark) -> Figure:
    bounds = found.at(one.outcome, one.treatment)["average"]
    low, high = bounds.interval
    moved = f"average effect {between(bounds.interval)}; leaving it out changes that by {number(one.change)}"
    if abs(one.change) > (high - low) / 2:
        moved += ", more than this strength allows: the learners do not capture its role"
    return Figure(f"  as strong as {one.covariate}", f"outcome {one.outcome:.1%}, treatment {one.treatment:.1%}", moved)


def _marginal(one: MarginalBounds) -> list[Figure]:
    average = f"{between((one.average.lower, one.average.upper))} ({between(one.average.interval)})"
    error = f"calibration error {between((one.error.lower, one.error.upper))} ({between(one.error.interval)})"
    return [Figure(f"odds of treatment x {one.strength:g}", average, f"average effect; {error}")]
