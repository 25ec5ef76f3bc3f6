"""Tables of a report: the figures of records, and those that pictures are drawn from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.parts import Check, Group
from orthocal.formats import between, estimate, number, p_value, percent
from orthocal.group_maps import GroupMap
from orthocal.losses import Overlap
from orthocal.losses.average_curves import AverageCurves
from orthocal.maps import Map
from orthocal.reporting.calibrations import calibration_figures
from orthocal.reporting.figures import Figure, main_figures, overlap_figures
from orthocal.reporting.page.document import Facts, Table, csv_of_columns
from orthocal.reporting.page.top import RESULTS, TONES
from orthocal.study import Calibration

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
    return Table(caption, ("", *verdicts, "what it means"), rows, words=1, file="figures.csv")


def _meaning(name: str, last: Mapping[str, Figure], each: Mapping[str, Mapping[str, Figure]]) -> str:
    own = [found[name].meaning for found in (last, *each.values()) if name in found]
    return own[0]


def bins_table(assessment: Assessment, name: str = "") -> Table:
    """Return the bins of the prediction; what a bin does not show is left empty. `name` tells several tables apart."""
    bins, which = assessment.bins, f", {name}" if name else ""
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
    caption = f"Bins of the prediction{which} (unit of the gap: {assessment.unit})"
    return Table(caption, header, rows, file=file_of("bins", name), figures=csv_of_columns(bins))


def checks_table(checks: Sequence[Check]) -> Table:
    """Return what was checked, failures first, each result in its colour."""
    found = sorted(checks, key=lambda check: RESULTS.index(check.result))
    rows = tuple(
        (check.name, check.result, check.figure, f"{check.sentence} {check.advice}".strip()) for check in found
    )
    header = ("", "result", "figure", "what it means")
    tones = tuple(TONES[check.result] for check in found)
    return Table("Checks of data, prediction, verdict and map", header, rows, words=3, tones=tones)


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
    names = [one.name for one in fields(Group) if "interval" not in one.name]
    columns = {name: [getattr(group, name) for group in assessment.subgroups] for name in names}
    for end, place in (("lower", 0), ("upper", 1)):
        columns[f"excess_{end}"] = [(group.excess_interval or (None, None))[place] for group in assessment.subgroups]
    caption = "Subgroups; p-values are adjusted for their number"
    return Table(caption, header, rows, file="subgroups.csv", figures=csv_of_columns(columns))


def ranking_table(assessment: Assessment) -> Table:
    """Return the estimated effects of people from the highest prediction down."""
    bins = assessment.bins
    share = 100 * np.cumsum(bins["n"][::-1]) / bins["n"].sum()
    low, high = (bins["target"] - bins["residual"] + bins[f"residual_{end}"] for end in ("lower", "upper"))
    columns = {
        "share_of_people": share / 100,
        "rows": bins["n"][::-1],
        "prediction": bins["prediction"][::-1],
        "estimated": bins["target"][::-1],
        "lower": low[::-1],
        "upper": high[::-1],
    }
    rows = tuple(
        (f"{first:.0f}% to {last:.0f}%", f"{n:,.0f}", number(mean), estimate(target, (least, most)))
        for first, (last, n, mean, target, least, most) in zip(
            [0.0, *share[:-1]], zip(share, *list(columns.values())[1:], strict=True), strict=True
        )
    )
    header = ("people, the highest predictions first", "rows", "mean prediction", "estimated effect (interval)")
    return Table(
        "Effects from the highest prediction down", header, rows, file="ranking.csv", figures=csv_of_columns(columns)
    )


SHOWN_OF_MAP = 21
"""Predictions at which a table shows a map, evenly between the lowest and the highest."""


def base_of(fitted: Any) -> Callable[[Any], Floats]:
    """Return what a map makes of predictions; of a map of subgroups what it does before it shifts them."""
    found: Callable[[Any], Floats] = fitted.base_value if isinstance(fitted, GroupMap) else fitted.predict
    return found


def map_table(fitted: Map, assessment: Assessment, band: EffectBand | None) -> Table:
    """Return what the map makes of predictions from the lowest to the highest, with the ends of the band where there is one."""
    grid = np.linspace(assessment.predictions[0], assessment.predictions[-1], SHOWN_OF_MAP)
    columns = {"prediction": grid, "calibrated": np.asarray(base_of(fitted)(grid))}
    if band is not None:
        columns |= dict(zip(("lower", "upper"), band.interval(grid), strict=True))
    rows = tuple(tuple(number(value) for value in row) for row in zip(*columns.values(), strict=True))
    return Table("The map", tuple(columns), rows, file="map.csv", figures=csv_of_columns(columns))


def decision_table(assessment: Assessment) -> Table:
    """Return net gains over costs."""
    curve: Mapping[str, Any] = assessment.value.curve if assessment.value else {}
    rows = tuple((*map(number, row), "0") for row in zip(*curve.values(), strict=True))
    header = ("cost", "by prediction", "everyone", "no one")
    return Table("Net gain per row over costs", header, rows, file="decisions.csv", figures=csv_of_columns(curve))


def propensities_table(overlap: Overlap, edges: Floats) -> Table:
    """Return how many rows of each treatment have which propensity, from the lowest to the highest that there is."""
    counts = {name: np.histogram(own[got], edges)[0] for name, (got, own) in overlap.levels.items()}
    some = np.flatnonzero(np.sum(list(counts.values()), axis=0))
    shown = slice(some[0], some[-1] + 1)
    columns = {
        "from": edges[:-1][shown],
        "to": edges[1:][shown],
        **{name: all_[shown] for name, all_ in counts.items()},
    }
    rows = tuple(
        (f"{low:.3g} to {high:.3g}", *(f"{count:,}" for count in row))
        for low, high, *row in zip(*columns.values(), strict=True)
    )
    header = ("propensity of the treatment received", *(f"rows, {name}" for name in counts))
    return Table("Propensities", header, rows, file="propensities.csv", figures=csv_of_columns(columns))


def survival_table(curves: AverageCurves) -> Table:
    """Return the survival curves of both arms."""
    columns = {"time": curves.times, **{name: mean for name, (mean, _) in curves.arms.items()}}
    for name in curves.arms:
        low, high = curves.band(name)
        columns |= {f"{name} lower": low, f"{name} upper": high}
    rows = tuple(tuple(number(value) for value in row) for row in zip(*columns.values(), strict=True))
    caption = "Survival probability over time"
    return Table(caption, tuple(columns), rows, file="survival.csv", figures=csv_of_columns(columns))


def errors_table(verdicts: Mapping[str, Assessment]) -> Table:
    """Return the error of each verdict beside its tolerance."""
    rows = tuple(
        (name, estimate(one.error, one.interval), number(one.tolerance), f"{one.rows:,}", one.status)
        for name, one in verdicts.items()
    )
    columns = {
        "verdict": list(verdicts),
        **{
            name: [getattr(one, name) for one in verdicts.values()] for name in ("error", "tolerance", "rows", "status")
        },
        "lower": [one.interval[0] for one in verdicts.values()],
        "upper": [one.interval[1] for one in verdicts.values()],
    }
    header = ("", "error (interval)", "tolerance", "rows judged", "status")
    return Table("Calibration errors", header, rows, words=1, file="errors.csv", figures=csv_of_columns(columns))


def calibrations_table(done: Mapping[str, Calibration]) -> Table:
    """Return the figures of several calibrations side by side."""
    each = {name: {"rows judged": f"{len(one.judged):,}"} | _of_calibration(one) for name, one in done.items()}
    names = dict.fromkeys(name for own in each.values() for name in own)
    rows = tuple((name, *(own.get(name, "") for own in each.values())) for name in names)
    return Table("Calibrations side by side", ("", *done), rows, file="side-by-side.csv")


def _of_calibration(done: Calibration) -> dict[str, str]:
    """Return recommendation, status, error, ranking and value of a calibration, by name."""
    last = done.after or done.before
    found = {line.name: line.figure for line in calibration_figures(done)}
    for when, one in {"before": done.before, "after": done.after}.items():
        if one is not None:
            found[f"error {when}"] = estimate(one.error, one.interval)
    found["tolerance"] = number(done.before.tolerance)
    kept = ("ranking, AUTOC", "slope", "average effect")
    found |= {
        line.name: line.figure for line in main_figures(last) if line.name in kept or line.name.startswith("value")
    }
    return found


def file_of(what: str, name: str) -> str:
    """Return the name of a file to save a table as."""
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', f'{what}-{name}').strip('-')}.csv"


def overlap_table(overlap: Overlap) -> Table:
    """Return how well treatment arms overlap."""
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
            "clip": f"fitted propensities are clipped to [{origin.clip:g}, {1 - origin.clip:g}]",
            "seed": origin.seed,
            "rows the nuisances come from": f"{origin.rows:,}",
            **{f"nuisance {name}": learner for name, learner in origin.learners.items()},
        }
    both = {**{name: value for name, value in known.items() if name not in how}, "bins": str(len(assessment.bins["n"]))}
    return Facts("So that another person can repeat it", tuple({**how, **both}.items()))
