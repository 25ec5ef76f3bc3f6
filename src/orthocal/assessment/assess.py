"""assess: the verdict on one prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, overload

import numpy as np

from orthocal.arrays import Floats, is_nearly_constant
from orthocal.assessment.average import average_effect, mean_mass_of_rows
from orthocal.assessment.best_line import best_line
from orthocal.assessment.bin_edges import cut, settled_order
from orthocal.assessment.bin_table import intervals, monotone_curve, shown_bins, table
from orthocal.assessment.bins import Binned, residual_moments
from orthocal.assessment.bins_test import bins_test
from orthocal.assessment.decomposition import decompose
from orthocal.assessment.error import (
    error_interval,
    largest_error,
    mean_absolute_error,
    minimum_detectable_error,
    rows_to_meet,
    size_interval,
    squared_error,
)
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.omitted_variable import scale_of
from orthocal.assessment.parts import Average, TestResult
from orthocal.assessment.pieces import Piece
from orthocal.assessment.range_test import range_test
from orthocal.assessment.rate import rate
from orthocal.assessment.ratios import MeanMass, Shown, against_all, mean_mass
from orthocal.assessment.records import Assessment, Settings
from orthocal.assessment.robustness import robustness_to_bias, with_robustness
from orthocal.assessment.sentences import verdict
from orthocal.assessment.status import INCONCLUSIVE, ranking_of, status_of
from orthocal.assessment.subgroups import judge_groups, subgroups
from orthocal.assessment.sweeps import (
    Rows,
    SortedRows,
    Stage,
    answer,
    answered,
    count_rows,
    count_units,
    predictions_at,
)
from orthocal.assessment.tolerance import Tolerance, usual_tolerance
from orthocal.assessment.value import decision_value
from orthocal.errors import SMALLEST, OrthocalError, require_positive_mass
from orthocal.folds import generator
from orthocal.losses import Loss, Overlap, require_loss, rows_that_count, without_overlap
from orthocal.observations import as_groups, as_numbers


@overload
def assess(
    prediction: Mapping[str, Any],
    loss: Loss,
    *,
    bins: int = ...,
    level: float = ...,
    tolerance: float | None = ...,
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
    tolerance: float | None = ...,
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
    tolerance: float | None = None,
    cost: float | None = None,
    by: Mapping[str, Any] | None = None,
    draws: int = 1000,
    random_state: Any = None,
) -> Assessment | dict[str, Assessment]:
    """Judge whether predictions of a causal effect are calibrated.

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
    tolerance : float, optional
        The error that would matter, in units of the effect, that `Assessment.status` is judged against. Half the standard
        deviation of the predictions by default, or half the root mean square of the estimated effects if that is smaller.
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
    >>> round(verdict.error, 1), verdict.status, verdict.ranking
    (1.0, 'miscalibrated', 'ranks')
    """
    named = {} if by is None else by
    settings = Settings(
        bins=bins, level=level, tolerance=tolerance, cost=cost, by=named, draws=draws, random_state=random_state
    )
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
    skewness: float


def assess_rows(prediction: Any, loss: Loss, settings: Settings) -> Assessment:
    """Return the verdict on one prediction."""
    require_loss(loss)
    every = as_numbers(prediction, "prediction", len(loss))
    by = {name: as_groups(values, f"by[{name!r}]", len(loss))[loss.weight > 0] for name, values in settings.by.items()}
    prediction, loss = rows_that_count(every, loss)
    overlap, scale, loss = loss.overlap, scale_of(loss.overlap), without_overlap(loss)
    order, prediction = settled_order(prediction, loss)  # sorted once, for all that follows
    if not isinstance(order, slice):
        loss, by = loss[order], {name: values[order] for name, values in by.items()}
        scale = None if scale is None else scale.of(order)
    del order
    loss = loss.at(prediction)
    found = judge(SortedRows(prediction, loss), settings, subgroups(prediction, loss, by), overlap)
    return with_robustness(found, prediction, loss, scale, settings)


def judge(
    rows: Rows, settings: Settings, groups: Iterable[tuple[str, str, Rows]], overlap: Overlap | None
) -> Assessment:
    """Return the verdict on sorted rows, wherever they are, and on their subgroups."""
    known = answered(rows, {"units": count_units(rows), "mass": mean_mass(rows), "ends": _ends()})
    units, mass, ends = known["units"], known["mass"], known["ends"]
    if units < 2:
        raise OrthocalError(f"A verdict must rest on at least two rows, or clusters; there is {units}. Use more data.")
    if mass is not None:
        require_positive_mass(mass.value)
    rng, level, like = generator(settings.random_state), settings.level, rows.like
    is_constant = is_nearly_constant(ends)
    found = answered(rows, _stages(rows, replace(settings, bins=1) if is_constant else settings, mass, rng))
    if is_constant:
        found |= {"range": CONSTANT, "rate": None}
    bins: Bins = found["bins"]
    linear, predictor = found["linear"][0], found.get("line", found["linear"])[1]
    if not is_constant and predictor is None:
        predictor = answer(rows, best_line(rows, bins.columns, found["average"], level))
    widest = largest_error(bins.tested, level, settings.draws, rng)
    columns = bins.columns | intervals(bins.tested, bins.shown, level, widest.band or 0.0)
    estimate, standard_error = squared_error(bins.sized)
    detectable = minimum_detectable_error(bins.tested, level)
    interval = size_interval(found["average"].excess_interval) if is_constant else error_interval(bins.sized, level)
    if interval[1] == 0:  # the bins agree better than chance would have it, which shows no error, not an error of 0
        interval = (0.0, detectable)
    risk, decomposition = found["decomposition"]
    count, shown = found["shown"]
    tolerance = _tolerance(rows, settings, bins.tested.edges, found["average"])
    numbers: dict[str, Any] = {
        "error": float(np.sqrt(max(estimate, 0.0))),
        "error_squared": estimate,
        "standard_error": standard_error,
        "interval": interval,
        "l1": mean_absolute_error(bins.tested),
        "linf": widest,
        "bins": columns,
        "tests": {"linear": linear, "bins": CONSTANT if is_constant else bins.test, "range": found["range"]},
        "minimum_detectable_error": detectable,
        "tolerance": tolerance.value,
        "tolerance_note": tolerance.note,
        "ranking": ranking_of(found["rate"]),
        "is_constant": is_constant,
        "average": found["average"],
        "risk": risk,
        "decomposition": decomposition,
        "linear_predictor": predictor,
        "skewness": bins.skewness,
        "mass": found["mass"],
        "rate": found["rate"],
        "value": found.get("value"),
        "subgroups": judge_groups(
            groups, settings.bins, level, bins.skewness * float(np.sqrt(bins.columns["n"].mean()))
        ),
        "sensitivity": robustness_to_bias(interval, getattr(like, "origin", None)),
        "curve": None if is_constant else monotone_curve(like, columns),
        "overlap": overlap,
        "unit": like.unit,
        "level": level,
        "rows": count,
        "predictions": shown,
    }
    numbers["status"] = status_of(numbers)
    numbers["rows_needed"] = None
    if numbers["status"] == INCONCLUSIVE and not is_constant and tolerance.value > SMALLEST:  # none would do at 0
        numbers["rows_needed"] = rows_to_meet(bins.sized, tolerance.value, level, count)
    return Assessment(**numbers, verdict=verdict(numbers), origin=getattr(like, "origin", None))


def _stages(rows: Rows, settings: Settings, mass: MeanMass | None, rng: np.random.Generator) -> dict[str, Stage[Any]]:
    """What is asked of the rows all at once; of a constant prediction, which has one bin, neither walk nor ranking."""
    level = settings.level
    stages: dict[str, Stage[Any]] = {
        "bins": _bins(rows, mass, settings),
        "linear": against_all(linear_test(rows, level), mass),
        "range": range_test(rows, settings.draws, rng),
        "average": average_effect(rows, level),
        "decomposition": decompose(rows, rng),
        "rate": rate(rows.like, level),
        "shown": _shown(),
        "mass": mean_mass_of_rows(),
    }
    if settings.cost is not None:
        stages["value"] = decision_value(rows, settings.cost, level)
    if mass is not None:  # the test asks for no mass, the line of the effect does
        stages["line"] = linear_test(rows, level)
    return stages


def _tolerance(rows: Rows, settings: Settings, edges: Floats, average: Average) -> Tolerance:
    if settings.tolerance is not None:
        return Tolerance(settings.tolerance, "as given")
    return answer(rows, usual_tolerance(rows, edges, average))


CONSTANT = TestResult(None, None, "does not apply: the prediction is constant; see the linear test")


def _ends() -> Stage[Floats]:
    """The lowest and the highest prediction."""
    found = yield _ends_of
    return np.array([found[0][0], found[-1][1]])


def _ends_of(piece: Piece) -> tuple[float, float]:
    return piece.ends


def _bins(rows: Rows, mass: MeanMass | None, settings: Settings) -> Stage[Bins]:
    """What depends on the bins: moments, table, test."""
    edges = yield from cut(settings.bins)
    tested = yield from against_all(residual_moments(rows, edges), mass)
    shown, sized = yield from shown_bins(rows, tested, mass)
    columns = yield from table(rows, tested, shown, settings.level)
    test, skewness = yield from against_all(bins_test(rows, tested), mass)
    return Bins(tested, sized, shown, columns, test, skewness)


def _shown() -> Stage[tuple[int, Floats]]:
    """Number of rows, and predictions for the pictures."""
    count = sum((yield count_rows))
    places = np.linspace(0, count - 1, min(count, MOST_SHOWN)).astype(np.int64)
    return count, (yield from predictions_at(places))
