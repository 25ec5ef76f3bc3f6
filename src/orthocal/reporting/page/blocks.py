"""Blocks of a report: tables of records, and pictures with what they show in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment import Assessment
from orthocal.assessment.audit_records import SHOWN, Audit
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.parts import Check
from orthocal.audit_plots import drawn_cells
from orthocal.formats import between, number, off_by, p_value, percent
from orthocal.group_columns import value_in_words
from orthocal.group_maps import GroupMap
from orthocal.losses import Overlap
from orthocal.maps import Map
from orthocal.reporting.figures import Figure, main_figures, overlap_figures
from orthocal.reporting.page.document import Facts, Picture, Pictures, Table
from orthocal.reporting.page.render import picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BIN_COLUMNS = ("lower", "upper", "n", "prediction", "target", "residual", "standard_error")
GAP_ENDS = ("residual_lower", "residual_upper")


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
    return Table(caption, ("", *verdicts, "what it means"), rows, words=1)


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
            *(bins[name] for name in (*BIN_COLUMNS, *GAP_ENDS)), strict=True
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


def checks_table(checks: Sequence[Check]) -> Table:
    """Return what was checked, failures first."""
    order = {"failed": 0, "warning": 1, "passed": 2}
    rows = tuple(
        (check.name, check.result, check.figure, f"{check.sentence} {check.advice}".strip())
        for check in sorted(checks, key=lambda check: order[check.result])
    )
    return Table(
        "Checks of data, prediction, verdict and map", ("", "result", "figure", "what it means"), rows, words=3
    )


def shown_figures(caption: str, figures: Sequence[Figure]) -> Table:
    """Return a list of figures."""
    return Table(caption, ("", "figure", "what it means"), tuple(tuple(line) for line in figures), words=2)


def groups_table(assessment: Assessment) -> Table:
    """Return the subgroups, each judged apart."""
    rows = tuple(
        (
            f"{group.column} = {group.value}",
            f"{group.rows:,}",
            number(group.error),
            number(group.excess),
            "" if group.excess_interval is None else between(group.excess_interval),
            p_value(group.p_value_adjusted),
        )
        for group in assessment.subgroups
    )
    header = ("subgroup", "rows", "error", "prediction - effect", "interval", "p-value, adjusted")
    return Table("Subgroups; p-values are adjusted for their number", header, rows)


def overlap_table(overlap: Overlap) -> Table:
    """Return how well treatment levels overlap."""
    return Table("Overlap", ("", "figure", "what it means"), tuple(overlap_figures(overlap)), words=1)


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


HOW_TO_READ = (
    "Each mark is a bin of people with similar predictions. Thick bars: interval of that bin; thin bars: band for all bins "
    "at once. On the dashed line predictions are right."
)


def before_after_pictures(
    before: Assessment, after: Assessment, place: str = "reliability", band: EffectBand | None = None
) -> Pictures:
    """Draw two reliability curves on the same scale; pictures of one page differ by their place.

    The band is of predictions before calibration, and drawn there.
    """
    from orthocal import plots
    from orthocal.drawing import GREY

    axes = [
        plots.reliability(before, title="before", color=GREY, marker="s", band=band),
        plots.reliability(after, title="after"),
    ]
    plots.on_one_scale(axes, square=before.curve is not None)
    caption = f"{HOW_TO_READ}{about_band(band)}"
    drawn = [
        _of(ax, f"{name}: {_bins_in_words(verdict)}.", caption, f"{place}-{name}")
        for ax, (name, verdict) in zip(axes, {"before": before, "after": after}.items(), strict=True)
    ]
    return Pictures(tuple(drawn), caption)


def reliability_picture(assessment: Assessment, name: str, band: EffectBand | None = None) -> Picture:
    """Draw one reliability curve, over the band of the average effect where there is one."""
    from orthocal import plots

    ax = plots.reliability(assessment, band=band)
    return _of(ax, f"{_bins_in_words(assessment)}.", f"{HOW_TO_READ}{about_band(band)}", f"reliability-{name}")


def about_band(band: EffectBand | None) -> str:
    """Return what the shaded band of a picture is; nothing where there is none."""
    if band is None:
        return ""
    return f" Shaded: {percent(band.level)} band, from all rows, {band.meaning}; it holds for all predictions at once."


def map_picture(fitted: Map, assessment: Assessment, band: EffectBand | None = None) -> Picture:
    """Draw what the map does to the predictions there are."""
    from orthocal import plots

    predictions = assessment.predictions
    low, high = float(predictions[0]), float(predictions[-1])
    base = fitted.base_value if isinstance(fitted, GroupMap) else fitted.predict
    ends = base([low, high])
    words = f"The map takes a prediction of {low:.4g} to {ends[0]:.4g} and one of {high:.4g} to {ends[1]:.4g}."
    caption = "Calibrated against original prediction; the dashed line leaves predictions as they are."
    if isinstance(fitted, GroupMap):
        caption += " What is added in subgroups comes on top; see the table of shifts."
    caption += about_band(band)
    return _of(plots.calibration_map(fitted, predictions, band=band), words, caption, "map")


def forest_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the subgroups."""
    from orthocal import plots

    words = "; ".join(
        f"{group.column} = {group.value}: {off_by(group.excess, group.excess_interval)}"
        for group in assessment.subgroups
        if group.excess is not None and group.excess_interval is not None
    )
    caption = (
        "By how much predictions are too high in each subgroup, with intervals; filled where the adjusted test rejects."
    )
    return _of(plots.forest(assessment), f"{words}.", caption, f"forest-{name}")


def audit_picture(before: Audit, after: Audit | None) -> Picture:
    """Draw the subgroups that were named, before and after."""
    from orthocal import plots

    when = {"before": before} if after is None else {"before": before, "after": after}
    words = "; ".join(
        f"{name}: {', '.join(str(cell) for cell in drawn_cells(audit)[::-1])}" for name, audit in when.items()
    )
    caption = (
        "By how much predictions are too high in each subgroup, with intervals that hold for all of them at once; filled where "
        "the adjusted test rejects."
    )
    return _of(plots.audit_forest(before, after=after), f"{words}.", caption, "audit")


def audit_table(when: str, audit: Audit) -> Table:
    """Return the cells that are off."""
    rows = tuple(
        (cell.name, f"{cell.rows:,.0f}", number(cell.excess), between(cell.interval), p_value(cell.p_value))
        for cell in audit.found[:SHOWN]
    )
    header = ("subgroup", "rows", "too high by", "interval", "p-value, adjusted")
    most = f" The {SHOWN} most surprising:" if len(audit.found) > SHOWN else ""
    return Table(f"{when}: {audit.headline}{most}", header, rows)


def shifts_table(fitted: GroupMap) -> Table:
    """Return what the map adds in each subgroup, round by round; of several bins the least and the most."""
    rows = []
    for number_of_round, one in enumerate(fitted.rounds, 1):
        names = [
            str(value) if one.column in fitted.made else f"{one.column} = {value_in_words(value)}"
            for value in one.values
        ]
        for name, row in zip(names or ["all rows"], one.shifts, strict=False):
            if row.any():
                added = number(row[0]) if len(row) == 1 else f"{number(row.min())} to {number(row.max())}"
                rows.append((f"{number_of_round}. {name}", added, "" if len(row) == 1 else f"{len(row)} bins"))
    return Table("What the map adds in subgroups, in turn", ("subgroup", "added", "by prediction"), tuple(rows))


def decision_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the net gain of deciding by the prediction."""
    from orthocal import plots

    value: Any = assessment.value
    words = (
        f"At cost {value.cost:.4g}: by prediction {value.value:.4g}, everyone {value.treating_everyone:.4g}, no one 0."
    )
    caption = "Net gain per row of treating where the prediction exceeds the cost, of treating everyone, and of treating no one."
    return _of(plots.decision_curve(assessment), words, caption, f"decision-{name}")


def overlap_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the propensities."""
    from orthocal import plots

    spread: Any = assessment.overlap
    words = "; ".join(f"{level}: {low:.3g} to {high:.3g}" for level, (low, high) in spread.propensity.items())
    caption = "Propensities of the level people got: mass near 0 means that some rows had hardly any chance of it."
    return _of(plots.overlap(assessment), f"Propensities, {words}.", caption, f"overlap-{name}")


def survival_pictures(assessment: Assessment, name: str) -> list[Picture]:
    """Draw the survival curves of both arms, where the effect is one on censored times."""
    from orthocal import plots

    curves = getattr(assessment.overlap, "curves", None)
    if curves is None:
        return []
    words = "; ".join(f"{arm}: {mean[-1]:.3g} at {curves.times[-1]:.4g}" for arm, (mean, _) in curves.arms.items())
    caption = "Chance of no event over time had everyone got each arm, doubly robust, with 95% intervals at each time."
    return [_of(plots.survival_curves(assessment), f"Survival curves, {words}.", caption, f"survival-{name}")]


def _of(ax: Axes, words: str, caption: str, name: str) -> Picture:
    return picture(ax.figure, words, caption, name)  # type: ignore[arg-type]


def _bins_in_words(assessment: Assessment) -> str:
    bins = assessment.bins
    pairs = zip(bins["prediction"], bins["target"], strict=True)
    return "predicted and estimated, bin by bin, " + ", ".join(
        f"{p:.3g} and {t:.3g}" if np.isfinite(t) else f"{p:.3g} and nothing certain" for p, t in pairs
    )
