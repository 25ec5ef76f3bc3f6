"""Tables of a report: records in, tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orthocal.page.document import Facts, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.assessment import Assessment
    from orthocal.losses import Overlap

LARGE, HUGE = 1e4, 1e9
"""Numbers between these are written out."""
BIN_COLUMNS = (
    "lower",
    "upper",
    "n",
    "prediction",
    "target",
    "residual",
    "standard_error",
    "residual_lower",
    "residual_upper",
)


def numbers_table(verdicts: Mapping[str, Assessment]) -> Table:
    """Return the sizes behind each verdict, one column per verdict."""
    rows = {
        "rows judged": [f"{a.rows:,}" for a in verdicts.values()],
        "calibration error": [number(a.error) for a in verdicts.values()],
        "its interval": [between(a.interval) for a in verdicts.values()],
        "squared, debiased": [number(a.error_squared) for a in verdicts.values()],
        "mean absolute error, debiased": [number(a.l1.value) for a in verdicts.values()],
        "largest error in a bin": [number(a.linf.value) for a in verdicts.values()],
        "detectable error (probability 0.8)": [number(a.minimum_detectable_error) for a in verdicts.values()],
        "mean prediction": [number(a.average.prediction) for a in verdicts.values()],
        "estimated for all rows together": [number(a.average.effect) for a in verdicts.values()],
        "its interval ": [between(a.average.interval) for a in verdicts.values()],
        "slope (1 when calibrated)": [_slope(a) for a in verdicts.values()],
        "mean loss": [number(a.risk) for a in verdicts.values()],
        "= miscalibration": [number(a.decomposition.miscalibration) for a in verdicts.values()],
        "- discrimination": [number(a.decomposition.discrimination) for a in verdicts.values()],
        "+ uncertainty": [number(a.decomposition.uncertainty) for a in verdicts.values()],
        "ranking, AUTOC (0 by chance)": [_autoc(a) for a in verdicts.values()],
    }
    level = next(iter(verdicts.values())).level
    return Table(
        f"Sizes, with {100 * level:g}% intervals; unit of errors: {next(iter(verdicts.values())).unit}",
        ("", *verdicts),
        tuple((name.strip(), *cells) for name, cells in rows.items()),
    )


def tests_table(verdicts: Mapping[str, Assessment]) -> Table:
    """Return the tests of perfect calibration."""
    names = list(next(iter(verdicts.values())).tests)
    rows = tuple((name, *(p_value(a.tests[name].p_value) for a in verdicts.values())) for name in names)
    return Table("Tests of perfect calibration: p-values", ("test", *verdicts), rows)


def bins_table(assessment: Assessment) -> Table:
    """Return the bins of the prediction; what a bin does not show is left empty."""
    bins = assessment.bins
    rows = tuple(
        (
            f"{number(low)} to {number(high)}",
            f"{n:,.0f}",
            number(prediction),
            number(target),
            number(gap),
            number(error),
            between((least, most)) if least <= most else "",
        )
        for low, high, n, prediction, target, gap, error, least, most in zip(
            *(bins[name] for name in BIN_COLUMNS), strict=True
        )
    )
    header = (
        "prediction from, to",
        "rows",
        "mean prediction",
        "estimated",
        "gap",
        "its standard error",
        "its interval",
    )
    return Table(f"Bins of the prediction; unit of the gap: {assessment.unit}", header, rows)


def groups_table(assessment: Assessment) -> Table:
    """Return the subgroups, each judged apart."""
    rows = tuple(
        (
            f"{group.column} = {group.level}",
            f"{group.rows:,}",
            number(group.error),
            number(group.excess),
            "" if group.excess_interval is None else between(group.excess_interval),
            p_value(group.p_value_adjusted),
        )
        for group in assessment.groups
    )
    header = ("subgroup", "rows", "error", "too high by", "interval", "p-value, adjusted")
    return Table("Subgroups; p-values are adjusted for their number", header, rows)


def overlap_table(overlap: Overlap) -> Table:
    """Return how well treatment levels overlap."""
    effective = overlap.effective_rows
    rows = [
        (name, between(ends), f"{effective[name]:,.0f}", f"{overlap.rows[name]:,}")
        for name, ends in overlap.propensity.items()
    ]
    clipped = [
        (f"{name} clipped at {overlap.clip:g}", f"{share:.1%} of rows", "", "")
        for name, share in overlap.clipped.items()
    ]
    notes = [(note, "", "", "") for note in overlap.notes]
    notes += [] if overlap.balance is None else [(str(overlap.balance), "", "", "")]
    return Table("Overlap", ("level", "propensity", "effective rows", "rows"), (*rows, *clipped, *notes))


def how_facts(assessment: Assessment, how: Mapping[str, str]) -> Facts:
    """Return what another person needs in order to repeat the verdict; what the caller says goes first."""
    known = {}
    if assessment.origin is not None:
        origin = assessment.origin
        known = {
            "effect": origin.effect,
            "estimand": origin.estimand,
            "formula": origin.formula,
            "folds": str(origin.folds),
            "clip": f"fitted propensities are kept inside [{origin.clip:g}, {1 - origin.clip:g}]",
            "seed": origin.seed,
            "rows the nuisances come from": f"{origin.rows:,}",
            **{f"nuisance {name}": learner for name, learner in origin.learners.items()},
        }
    both = {**{name: value for name, value in known.items() if name not in how}, "bins": str(len(assessment.bins["n"]))}
    return Facts("So that another person can repeat it", tuple({**how, **both}.items()))


def number(value: float | None) -> str:
    """Return a number in four digits, or all the digits before the point; nothing where there is none."""
    if value is None or np.isnan(value):
        return ""
    return f"{value:,.0f}" if LARGE <= abs(value) < HUGE else f"{value:.4g}"


def between(ends: tuple[float, float]) -> str:
    """Return an interval in words."""
    return f"{number(ends[0])} to {number(ends[1])}"


def p_value(value: float | None) -> str:
    """Return a p-value, or that there is none."""
    if value is None:
        return "none"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _slope(assessment: Assessment) -> str:
    predictor = assessment.linear_predictor
    return "none" if predictor is None else f"{number(predictor.slope.value)} ({between(predictor.slope.interval)})"


def _autoc(assessment: Assessment) -> str:
    rate = assessment.rate
    return "none" if rate is None else f"{number(rate.autoc.value)} ({between(rate.autoc.interval)})"
