"""assess: the verdict on one prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from scipy.stats import t as t_law

from orthocal.assessment.bins import cut, residual_moments, table
from orthocal.assessment.error import (
    error_interval,
    largest_error,
    mean_absolute_error,
    minimum_detectable_error,
    squared_error,
)
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.records import Assessment, Average
from orthocal.assessment.wording import verdict
from orthocal.errors import require_inside, require_whole
from orthocal.folds import generator
from orthocal.losses import rows_that_count
from orthocal.observations import as_numbers
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
    draws: int = ...,
    random_state: Any = ...,
) -> Assessment: ...
def assess(
    prediction: Any,
    loss: Loss,
    *,
    bins: int = 10,
    level: float = 0.95,
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
    draws : int, default 1000
        Draws for the simultaneous band.
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
    if isinstance(prediction, Mapping):
        return {name: _assess(one, loss, bins, level, draws, random_state) for name, one in prediction.items()}
    return _assess(prediction, loss, bins, level, draws, random_state)


def _assess(prediction: Any, loss: Loss, bins: int, level: float, draws: int, random_state: Any) -> Assessment:
    prediction, loss = rows_that_count(as_numbers(prediction, "prediction", len(loss)), loss)
    loss, rng = loss.at(prediction), generator(random_state)
    binned = residual_moments(prediction, loss, *cut(prediction, loss, bins))
    estimate, standard_error = squared_error(binned)
    numbers: dict[str, Any] = {
        "error": float(np.sqrt(max(estimate, 0.0))),
        "error_squared": estimate,
        "standard_error": standard_error,
        "interval": error_interval(binned, level),
        "l1": mean_absolute_error(binned),
        "linf": largest_error(binned, level, draws, rng),
        "bins": table(binned, prediction, loss),
        "tests": {"linear": linear_test(prediction, loss)},
        "minimum_detectable_error": minimum_detectable_error(binned, level),
        "average": _average(prediction, loss, level),
        "risk": float(loss.value(prediction).sum() / loss.weight.sum()),
        "overlap": loss.overlap,
        "unit": loss.unit,
        "level": level,
        "rows": len(prediction),
        "predictions": np.sort(prediction)[np.linspace(0, len(prediction) - 1, min(len(prediction), 1000)).astype(int)],
    }
    return Assessment(**numbers, verdict=verdict(numbers))


def _average(prediction: Floats, loss: Loss, level: float) -> Average:
    """Mean prediction and average effect; the whole data is one bin."""
    everyone = np.zeros(len(prediction), dtype=np.int64)
    mean = float(loss.mass @ prediction / loss.mass.sum())
    effect = float(constants(loss, everyone, 1)[0])
    at_effect = residual_moments(np.full(len(prediction), effect), loss, np.empty(0), everyone)
    at_prediction = residual_moments(prediction, loss, np.empty(0), everyone)
    critical = float(t_law.ppf((1 + level) / 2, at_effect.clusters - 1))
    error, gap_error = (float(np.sqrt(one.variance[0])) for one in (at_effect, at_prediction))
    gap = -float(at_prediction.residual[0])
    return Average(
        mean,
        effect,
        error,
        (effect - critical * error, effect + critical * error),
        gap,
        (gap - critical * gap_error, gap + critical * gap_error),
    )
