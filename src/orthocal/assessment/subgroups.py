"""The verdict in subgroups, with p-values adjusted for looking at several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import t as t_distribution

from orthocal.arrays import Booleans, Floats
from orthocal.assessment.bin_edges import cut
from orthocal.assessment.bin_table import shown_bins
from orthocal.assessment.bins import at_prediction, mean_residual, residual_moments
from orthocal.assessment.error import error_interval, squared_error
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.parts import Group
from orthocal.assessment.ratios import against_all, mean_mass
from orthocal.assessment.sweeps import Rows, SortedRows, Stage, answer, count_rows, count_units
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.losses import Loss
from orthocal.observations import MISSING, as_groups

MOST_LEVELS, QUARTERS = 12, 4
FEWEST_ROWS, ROWS_A_BIN = 20, 50
GROUP_SKEW = 0.12
"""Skewness of residuals over the root of the rows of a subgroup, beyond which its test would reject too often."""


def judge_groups(
    groups: Iterable[tuple[str, str, Rows]], bins: int, level: float, skewness: float = 0.0
) -> tuple[Group, ...]:
    """Judge each (column, value, rows); Holm's adjustment over all.

    `skewness` is that of the residuals of all rows: a subgroup of too few rows for it has a size and no test.
    """
    judged = [answer(rows, _judge(name, label, rows, bins, level)) for name, label, rows in groups]
    found = [replace(one, p_value=None) if skewness > GROUP_SKEW * np.sqrt(one.rows) else one for one in judged]
    tested = [j for j, group in enumerate(found) if group.p_value is not None]
    adjusted = holm(np.array([found[j].p_value for j in tested], dtype=np.float64))
    by_place = dict(zip(tested, adjusted.tolist(), strict=True))
    return tuple(replace(group, p_value_adjusted=by_place.get(j)) for j, group in enumerate(found))


def subgroups(prediction: Floats, loss: Loss, by: Mapping[str, Any]) -> Iterator[tuple[str, str, Rows]]:
    """Yield (column, value, sorted rows) of each value of each column; columns of many numbers are cut at their quartiles."""
    for name, values in by.items():
        for label, rows in _levels(name, values, len(loss)):
            yield name, label, SortedRows(prediction[rows], loss[np.flatnonzero(rows)])


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted so that the chance of any false alarm is at most the level."""
    order = np.argsort(p_values)
    steps = np.maximum.accumulate((len(p_values) - np.arange(len(p_values))) * p_values[order])
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _levels(name: str, values: Any, n: int) -> Iterator[tuple[str, Booleans]]:
    column = as_groups(values, f"by[{name!r}]", n)
    unknown = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    distinct = np.unique(column[~unknown])
    if len(distinct) <= MOST_LEVELS:
        for one in sorted(distinct.tolist(), key=missing_last):
            yield str(one), np.asarray(column == one)
        yield from _unknown(unknown)
        return
    if column.dtype.kind not in "fiu":
        raise OrthocalError(
            f"`by[{shown(name)}]` must have at most {MOST_LEVELS} values; it has {len(distinct)}. Group them."
        )
    cuts = np.unique(np.quantile(column[~unknown], np.linspace(0, 1, QUARTERS + 1)))
    for low, high in pairwise(cuts):
        rows = (column > low) & (column <= high)
        yield f"{low:.4g} to {high:.4g}", np.asarray(rows | (column == low) if low == cuts[0] else rows)
    yield from _unknown(unknown)


def _unknown(rows: Booleans) -> Iterator[tuple[str, Booleans]]:
    if rows.any():
        yield MISSING, rows


def missing_last(value: Any) -> tuple[bool, Any]:
    """Return what sorts the values of a column of subgroups, rows whose subgroup is not known last."""
    return (True, "") if isinstance(value, str) and value == MISSING else (False, value)


def _judge(name: str, label: str, rows: Rows, bins: int, level: float) -> Stage[Group]:
    count, units = sum((yield count_rows)), (yield from count_units(rows))
    if units < FEWEST_ROWS:
        return Group(column=name, value=label, rows=count)
    mass = yield from mean_mass(rows)
    if mass is not None and not mass.is_clear(level):  # no size without a mass, but a test: it needs none
        test, _ = yield from against_all(linear_test(rows, level), mass._replace(value=1.0))
        return Group(column=name, value=label, rows=count, p_value=test.p_value)
    edges = yield from cut(max(1, min(bins, count // ROWS_A_BIN)))
    tested = yield from against_all(residual_moments(rows, edges), mass)
    _, binned = yield from shown_bins(rows, tested, mass)
    excess, error, effective = yield from mean_residual(rows, at_prediction)
    size = float(np.sqrt(max(squared_error(binned)[0], 0.0)))
    reach = float(t_distribution.ppf((1 + level) / 2, effective - 1)) * error
    test, _ = yield from against_all(linear_test(rows, level), mass)
    interval = error_interval(binned, level)
    return Group(
        column=name,
        value=label,
        rows=count,
        error=size,
        interval=interval,
        excess=excess,
        excess_interval=(excess - reach, excess + reach),
        p_value=test.p_value,
        p_value_adjusted=None,
    )
