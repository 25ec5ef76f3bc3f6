"""Tables of a report: records in, tables out."""

from __future__ import annotations

from collections.abc import Mapping

from orthocal.assessment import Assessment
from orthocal.formats import between, number, p_value, percent
from orthocal.losses import Overlap
from orthocal.reporting.figures import Figure, main_figures, overlap_figures
from orthocal.reporting.page.document import Facts, Table

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


def figures_table(verdicts: Mapping[str, Assessment]) -> Table:
    """Return the figures of each verdict, one column per verdict, and what to make of them."""
    each = {name: {line.name: line for line in main_figures(a)} for name, a in verdicts.items()}
    names = dict.fromkeys(name for own in each.values() for name in own)
    first, last = next(iter(verdicts.values())), list(each.values())[-1]
    rows = tuple(
        (name.strip(), *(own[name].figure if name in own else "" for own in each.values()), _meaning(name, last, each))
        for name in names
    )
    caption = f"Figures, with {percent(first.level)} intervals in brackets; unit of errors: {first.unit}"
    return Table(caption, ("", *verdicts, "what it means"), rows)


def _meaning(name: str, last: Mapping[str, Figure], each: Mapping[str, Mapping[str, Figure]]) -> str:
    own = [found[name].meaning for found in (last, *each.values()) if name in found]
    return own[0]


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
    return Table("Overlap", ("", "figure", "what it means"), tuple(overlap_figures(overlap)))


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
