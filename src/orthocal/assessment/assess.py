"""assess: the verdict on one prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from scipy.stats import t as t_law

from orthocal.arrays import sorting_order
from orthocal.assessment.bins import cut, mean_residual, residual_moments, table
from orthocal.assessment.bins_test import bins_test
from orthocal.assessment.curve import monotone_curve
from orthocal.assessment.decomposition import decompose
from orthocal.assessment.error import (
    error_interval,
    largest_error,
    mean_absolute_error,
    minimum_detectable_error,
    squared_error,
)
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.parts import Average
from orthocal.assessment.range_test import range_test
from orthocal.assessment.rate import rate
from orthocal.assessment.records import Assessment
from orthocal.assessment.subgroups import judge_groups
from orthocal.assessment.value import decision_value
from orthocal.assessment.wording import sensitivity, verdict
from orthocal.errors import require_inside, require_whole
from orthocal.folds import generator
from orthocal.losses import rows_that_count, without_overlap
from orthocal.observations import as_labels, as_numbers
from orthocal.solvers import constants

if TYPE_CHECKING:
    from orthocal.arrays import Floats
    from orthocal.losses import Loss


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
    require_whole(bins, 1, "bins")
    require_inside(level, 0, 1, "level")
    require_whole(draws, 1, "draws")
    settings = Settings(bins, level, cost, by or {}, draws, random_state)
    if isinstance(prediction, Mapping):
        return {name: _assess(one, loss, settings) for name, one in prediction.items()}
    return _assess(prediction, loss, settings)


HALVINGS = 40
"""Of the search for the ends of an interval: to a millionth of a millionth of where it may lie."""


@dataclass(frozen=True)
class Settings:
    """How a verdict is reached: everything that is not data."""

    bins: int
    level: float
    cost: float | None
    by: Mapping[str, Any]
    draws: int
    random_state: Any


def _assess(prediction: Any, loss: Loss, settings: Settings) -> Assessment:
    every = as_numbers(prediction, "prediction", len(loss))
    by = {name: as_labels(values, f"by[{name!r}]", len(loss))[loss.weight > 0] for name, values in settings.by.items()}
    prediction, loss = rows_that_count(every, loss)
    overlap, loss = loss.overlap, without_overlap(loss)
    order = sorting_order(prediction)  # sorted once, for all that follows
    if not isinstance(order, slice):
        prediction, loss, by = prediction[order], loss[order], {name: values[order] for name, values in by.items()}
    del order
    loss, rng, level = loss.at(prediction), generator(settings.random_state), settings.level
    binned = residual_moments(prediction, loss, *cut(prediction, loss, settings.bins))
    estimate, standard_error = squared_error(binned)
    linear, predictor = linear_test(prediction, loss, level)
    columns, widest = table(binned, prediction, loss), largest_error(binned, level, settings.draws, rng)
    detectable = minimum_detectable_error(binned, level)
    interval = error_interval(binned, level)
    if interval[1] == 0:  # the bins agree better than chance would have it, which shows no error, not an error of 0
        interval = (0.0, detectable)
    numbers: dict[str, Any] = {
        "error": float(np.sqrt(max(estimate, 0.0))),
        "error_squared": estimate,
        "standard_error": standard_error,
        "interval": interval,
        "l1": mean_absolute_error(binned),
        "linf": widest,
        "bins": columns,
        "tests": {
            "linear": linear,
            "bins": bins_test(binned, prediction, loss),
            "range": range_test(prediction, loss, settings.draws, rng),
        },
        "minimum_detectable_error": detectable,
        "average": _average(prediction, loss, level),
        "risk": float(loss.value(prediction).sum() / loss.weight.sum()),
        "decomposition": decompose(prediction, loss, rng),
        "linear_predictor": predictor,
        "rate": rate(loss, prediction, level),
        "value": None if settings.cost is None else decision_value(prediction, loss, settings.cost, level),
        "groups": judge_groups(prediction, loss, by, settings.bins, level),
        "sensitivity": sensitivity(interval),
        "curve": monotone_curve(loss, columns, widest.band or 0.0),
        "overlap": overlap,
        "unit": loss.unit,
        "level": level,
        "rows": len(prediction),
        "predictions": prediction[np.linspace(0, len(prediction) - 1, min(len(prediction), 1000)).astype(int)],
    }
    return Assessment(**numbers, verdict=verdict(numbers), origin=getattr(loss, "origin", None))


def _average(prediction: Floats, loss: Loss, level: float) -> Average:
    """Mean prediction and average effect; the whole data is one bin."""
    mass, total = loss.mass, float(loss.mass.sum())
    mean = float(mass @ prediction) / total
    effect = float(constants(loss, np.zeros(len(prediction), dtype=np.int64), 1)[0])
    _, error, units = mean_residual(loss.derivative(np.full(len(prediction), effect)), mass, loss.groups)
    gap, gap_error, _ = mean_residual(loss.derivative(prediction), mass, loss.groups)
    critical = float(t_law.ppf((1 + level) / 2, units - 1))
    interval = (effect - critical * error, effect + critical * error)
    if np.isfinite(loss.bounds).all():  # a minimiser that is searched for: its score is in other units than itself
        interval = _score_interval(loss, effect, critical)
    return Average(
        mean,
        effect,
        error,
        interval,
        gap,
        (gap - critical * gap_error, gap + critical * gap_error),
    )


def _score_interval(loss: Loss, effect: float, critical: float) -> tuple[float, float]:
    """Return the constants at which the mean score is not significantly different from 0, by halving between the bounds."""

    def low_enough(v: float, side: float) -> bool:
        mean, error, _ = mean_residual(loss.derivative(np.full(len(loss), v)), loss.mass, loss.groups)
        return mean < side * critical * error

    ends = []
    for side, bound in zip((-1.0, 1.0), loss.bounds, strict=True):
        below, above = min(bound, effect), max(bound, effect)
        for _ in range(HALVINGS):
            middle = (below + above) / 2
            below, above = (middle, above) if low_enough(middle, side) else (below, middle)
        ends.append((below + above) / 2)
    return ends[0], ends[1]
