"""assess: the verdict on one prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
from scipy.stats import t as t_law

from orthocal.arrays import Floats
from orthocal.assessment.best_line import best_line
from orthocal.assessment.bin_edges import cut, settled_order
from orthocal.assessment.bin_table import intervals, minimisers, monotone_curve, shown_bins, table
from orthocal.assessment.bins import Binned, at_constant, at_prediction, mean_residual, residual_moments
from orthocal.assessment.bins_test import bins_test
from orthocal.assessment.crossings import score_interval
from orthocal.assessment.decomposition import decompose
from orthocal.assessment.error import (
    error_interval,
    largest_error,
    mean_absolute_error,
    minimum_detectable_error,
    squared_error,
)
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.parts import Average, TestResult
from orthocal.assessment.range_test import range_test
from orthocal.assessment.rate import rate
from orthocal.assessment.ratios import MeanMass, Shown, against_all, mean_mass
from orthocal.assessment.records import Assessment, Settings
from orthocal.assessment.status import sensitivity, verdict
from orthocal.assessment.subgroups import judge_groups, subgroups
from orthocal.assessment.sweeps import (
    Piece,
    Rows,
    SortedRows,
    Stage,
    answer,
    answered,
    count_rows,
    count_units,
    predictions_at,
)
from orthocal.assessment.value import decision_value
from orthocal.errors import OrthocalError, require_rows
from orthocal.folds import generator
from orthocal.losses import Loss, Overlap, rows_that_count, without_overlap
from orthocal.observations import as_labels, as_numbers


@overload
def assess(
    prediction: Mapping[str, Any],
    loss: Loss,
    *,
    bins: int = ...,
    level: float = ...,
    cost: float | None = ...,
    by: Mapping[str, Any] | None = ...,
    draws: int = ...,
    random_state: Any = ...,
) -> dict[str, Assessment]: ...
@overload
def assess(
    prediction: Any,
    loss: Loss,
    *,
    bins: int = ...,
    level: float = ...,
    cost: float | None = ...,
    by: Mapping[str, Any] | None = ...,
    draws: int = ...,
    random_state: Any = ...,
) -> Assessment: ...
def assess(
    prediction: Any,
    loss: Loss,
    *,
    bins: int = 10,
    level: float = 0.95,
    cost: float | None = None,
    by: Mapping[str, Any] | None = None,
    draws: int = 1000,
    random_state: Any = None,
) -> Assessment | dict[str, Assessment]:
    """Judge whether predictions of a causal effect can be believed.

    Estimates the binned calibration error: the root mean square, over bins of the prediction, of mean effect minus mean
    prediction; a lower bound of the error over all level sets. **The rows must be unseen** by the model that made the
    predictions and, after calibration, by the map.

    Parameters
    ----------
    prediction : array of shape (rows,), or mapping of str to array
        A mapping gives a dict of verdicts.
    loss : Loss
        From `orthogonal_loss`, of the same rows.
    bins : int, default 10
        Bins of nearly equal weight. Rows with the same prediction stay together, so ties can leave fewer bins.
    level : float, default 0.95
        Confidence level of intervals and bands.
    cost : float, optional
        What treating one person costs, in units of the effect: adds the value of deciding by the prediction.
    by : mapping of str to array of shape (rows,), optional
        Subgroups to judge apart; columns of many numbers are cut at their quartiles.
    draws : int, default 1000
        Draws for the simultaneous band and for tests that simulate.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Assessment, or dict of str to Assessment

    Examples
    --------
    >>> from orthocal import assess, orthogonal_loss
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, random_state=0)
    >>> loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    >>> verdict = assess(data.effect + 1, loss, random_state=0)
    >>> round(verdict.error, 1), verdict.tests["linear"].p_value < 0.001
    (1.0, True)
    """
    settings = Settings(bins=bins, level=level, cost=cost, by=by or {}, draws=draws, random_state=random_state)
    if isinstance(prediction, Mapping):
        return {name: assess_rows(one, loss, settings) for name, one in prediction.items()}
    return assess_rows(prediction, loss, settings)


MOST_SHOWN = 1000
"""Predictions kept for pictures."""


class Bins(NamedTuple):
    """Moments of the bins for tests and for sizes, what their gaps are made of, their table and their test."""

    tested: Binned
    sized: Binned
    shown: Shown
    columns: dict[str, Floats]
    test: TestResult


def assess_rows(prediction: Any, loss: Loss, settings: Settings) -> Assessment:
    """Return the verdict on one prediction."""
    require_rows(len(loss))
    every = as_numbers(prediction, "prediction", len(loss))
    by = {name: as_labels(values, f"by[{name!r}]", len(loss))[loss.weight > 0] for name, values in settings.by.items()}
    prediction, loss = rows_that_count(every, loss)
    overlap, loss = loss.overlap, without_overlap(loss)
    order = settled_order(prediction, loss)  # sorted once, for all that follows
    if not isinstance(order, slice):
        prediction, loss, by = prediction[order], loss[order], {name: values[order] for name, values in by.items()}
    del order
    loss = loss.at(prediction)
    return judge(SortedRows(prediction, loss), settings, subgroups(prediction, loss, by), overlap)


def judge(
    rows: Rows, settings: Settings, groups: Iterable[tuple[str, str, Rows]], overlap: Overlap | None
) -> Assessment:
    """Return the verdict on sorted rows, wherever they are, and on their subgroups."""
    known = answered(rows, {"units": count_units(rows), "mass": mean_mass(rows)})
    units, mass = known["units"], known["mass"]
    if units < 2:
        raise OrthocalError(f"A verdict must rest on at least two rows, or clusters; there is {units}. Use more data.")
    rng, level, like = generator(settings.random_state), settings.level, rows.like
    stages: dict[str, Stage[Any]] = {
        "bins": _bins(rows, mass, settings),
        "linear": against_all(linear_test(rows, level), mass),
        "range": range_test(rows, settings.draws, rng),
        "average": _average(rows, level),
        "decomposition": decompose(rows, rng),
        "rate": rate(like, level),
        "shown": _shown(),
    }
    if settings.cost is not None:
        stages["value"] = decision_value(rows, settings.cost, level)
    if mass is not None:  # the test asks for no mass, the line of the effect does
        stages["line"] = linear_test(rows, level)
    found = answered(rows, stages)
    bins: Bins = found["bins"]
    linear, predictor = found["linear"][0], found.get("line", found["linear"])[1]
    predictor = predictor or answer(rows, best_line(rows, bins.columns, found["average"], level))
    widest = largest_error(bins.tested, level, settings.draws, rng)
    columns = bins.columns | intervals(bins.tested, bins.shown, level, widest.band or 0.0)
    estimate, standard_error = squared_error(bins.sized)
    detectable = minimum_detectable_error(bins.tested, level)
    interval = error_interval(bins.sized, level)
    if interval[1] == 0:  # the bins agree better than chance would have it, which shows no error, not an error of 0
        interval = (0.0, detectable)
    risk, decomposition = found["decomposition"]
    count, shown = found["shown"]
    numbers: dict[str, Any] = {
        "error": float(np.sqrt(max(estimate, 0.0))),
        "error_squared": estimate,
        "standard_error": standard_error,
        "interval": interval,
        "l1": mean_absolute_error(bins.tested),
        "linf": widest,
        "bins": columns,
        "tests": {"linear": linear, "bins": bins.test, "range": found["range"]},
        "minimum_detectable_error": detectable,
        "average": found["average"],
        "risk": risk,
        "decomposition": decomposition,
        "linear_predictor": predictor,
        "rate": found["rate"],
        "value": found.get("value"),
        "groups": judge_groups(groups, settings.bins, level),
        "sensitivity": sensitivity(interval),
        "curve": monotone_curve(like, columns),
        "overlap": overlap,
        "unit": like.unit,
        "level": level,
        "rows": count,
        "predictions": shown,
    }
    return Assessment(**numbers, verdict=verdict(numbers), origin=getattr(like, "origin", None))


def _bins(rows: Rows, mass: MeanMass | None, settings: Settings) -> Stage[Bins]:
    """What depends on the bins: moments, table, test."""
    edges = yield from cut(settings.bins)
    tested = yield from against_all(residual_moments(rows, edges), mass)
    shown, sized = yield from shown_bins(rows, tested, mass)
    columns = yield from table(rows, tested, shown, settings.level)
    test = yield from against_all(bins_test(rows, tested), mass)
    return Bins(tested, sized, shown, columns, test)


def _shown() -> Stage[tuple[int, Floats]]:
    """Number of rows, and predictions for the pictures."""
    count = sum((yield count_rows))
    places = np.linspace(0, count - 1, min(count, MOST_SHOWN)).astype(np.int64)
    return count, (yield from predictions_at(places))


def _average(rows: Rows, level: float) -> Stage[Average]:
    """Mean prediction and average effect; the whole data is one bin."""
    pulled, total = np.sum((yield _masses), axis=0)
    effect = float((yield from minimisers(rows, np.empty(0)))[0])
    _, error, units = yield from mean_residual(rows, partial(at_constant, value=effect))
    gap, gap_error, _ = yield from mean_residual(rows, at_prediction)
    critical = float(t_law.ppf((1 + level) / 2, units - 1))
    interval = (effect - critical * error, effect + critical * error)
    if np.isfinite(rows.like.bounds).all():  # a minimiser that is searched for: its score is in other units than itself
        interval = yield from score_interval(rows, effect, error, critical)
    return Average(
        prediction=float(pulled / total),
        effect=effect,
        standard_error=error,
        interval=interval,
        excess=gap,
        excess_interval=(gap - critical * gap_error, gap + critical * gap_error),
    )


def _masses(piece: Piece) -> tuple[float, float]:
    return float(piece.loss.mass @ piece.prediction), float(piece.loss.mass.sum())
