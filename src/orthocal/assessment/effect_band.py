"""A band for the calibrated effect: intervals for the average effect of people with the same prediction (mathematics 10.10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats, Integers, sorting_order, step_of
from orthocal.assessment.band_intervals import (
    AROUND,
    LEAST,
    BandRows,
    IntervalMeans,
    binned_residuals,
    critical_values,
    growing_lengths,
    interval_means,
    interval_sums,
    local_residuals,
    tied_starts,
)
from orthocal.assessment.limits import MOST_DRAWS
from orthocal.calibrators import Histogram
from orthocal.errors import OrthocalError, require_inside, require_truth, require_whole
from orthocal.folds import require_seed
from orthocal.formats import shown
from orthocal.losses import Loss, QuadraticLoss, is_ratio, require_loss
from orthocal.maps import OpenStepMap
from orthocal.observations import as_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OF_WHOM = "for the average effect of people {whom}, never for a person's own effect"
"""What every place that shows a band says of it."""


@dataclass(frozen=True, eq=False)
class EffectBand:
    r"""Lower and upper ends for :math:`v \mapsto E[\text{effect} \mid \text{prediction} = v]` at all predictions at once.

    With probability `level` the whole curve lies between both ends. It is for the average effect of people with that
    prediction, never for a person's own effect.

    Parameters
    ----------
    lower, upper : OpenStepMap
        The ends; NaN where one is open.
    level : float
        The confidence level, simultaneous over all predictions.
    monotone : bool
        Whether it is valid where the curve does not decrease (else: for the averages of bins).
    rows : int
        How many rows it was made of.

    Examples
    --------
    >>> from orthocal.maps import OpenStepMap
    >>> nan = float("nan")
    >>> band = EffectBand(OpenStepMap([0.0], [nan, 1.0]), OpenStepMap([2.0], [3.0, nan]), 0.95, True, 100)
    >>> band.interval([-1.0, 1.0])
    (array([nan,  1.]), array([3., 3.]))
    >>> band.meaning
    "for the average effect of people with that prediction, never for a person's own effect"
    """

    lower: OpenStepMap
    upper: OpenStepMap
    level: float
    monotone: bool
    rows: int

    @property
    def whom(self) -> str:
        """The people whose average effect it is for, in words."""
        return "with that prediction" if self.monotone else "in the same bin of predictions"

    @property
    def meaning(self) -> str:
        """What it is for, in words."""
        return OF_WHOM.format(whom=self.whom)

    def interval(self, prediction: Any) -> tuple[Floats, Floats]:
        """Return both ends for the average effect of people with each prediction, never for a person's own; NaN where open."""
        values = as_numbers(prediction, "prediction")
        return self.lower.predict(values), self.upper.predict(values)

    def outside(self, calibrated: Any, prediction: Any) -> float:
        """Return the share of predictions whose calibrated value lies outside the band: the map is doubtful there."""
        low, high = self.interval(prediction)
        values = as_numbers(calibrated, "calibrated", len(low))
        return float(np.mean((values < low) | (values > high)))

    def crossed(self, prediction: Any) -> float:
        """Return the share of predictions at which the lower end is above the upper: the average effect falls there."""
        low, high = self.interval(prediction)
        return float(np.mean(low > high))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, ready for JSON; an open end is None."""
        ends = {name: getattr(self, name).to_dict() for name in ("lower", "upper")}
        return {"level": self.level, "monotone": self.monotone, "rows": self.rows, "meaning": self.meaning, **ends}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> EffectBand:
        """Return the band that `to_dict` described."""
        try:
            level, monotone, rows = (record[name] for name in ("level", "monotone", "rows"))
            lower, upper = (OpenStepMap.from_dict(record[name]) for name in ("lower", "upper"))
        except (KeyError, TypeError):
            raise OrthocalError("A band must have level, monotone, rows, lower and upper; this one does not.") from None
        require_inside(level, 0, 1, "level")
        require_truth(monotone, "monotone")
        require_whole(rows, 1, "rows")
        return cls(lower, upper, level, monotone, rows)

    def plot(self, prediction: Any, ax: Axes | None = None) -> Axes:
        """Draw the band over the range of some predictions."""
        from orthocal.plots import shaded_band

        return shaded_band(self, prediction, ax)


def effect_band(
    prediction: Any,
    loss: Loss,
    *,
    bins: Floats | None = None,
    level: float = 0.95,
    draws: int = 1000,
    random_state: int = 0,
) -> EffectBand:
    r"""Return a band for the average effect of people with each prediction, valid for all predictions at once.

    It holds for the average effect of people with that prediction, never for a person's own effect. The curve
    :math:`E[\text{effect} \mid \text{prediction} = v]` must not decrease in v, unless `bins` are given; nothing is smoothed.
    Valid under the assumptions of the effect and with nuisances estimated without the rows they serve (mathematics 10.10).

    Parameters
    ----------
    prediction : array of shape (rows,)
    loss : QuadraticLoss
        Of those rows, not of a ratio effect: quantiles, expectiles and ratios are refused.
    bins : array, optional
        Inner edges of bins ( , ]: the band is then that of the bins' averages, and the curve may decrease.
    level : float, default 0.95
    draws : int, default 1000
        Of the normal multipliers behind the critical value.
    random_state : int, default 0

    Returns
    -------
    EffectBand

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> rng = np.random.default_rng(0)
    >>> prediction = rng.uniform(size=4000)
    >>> loss = QuadraticLoss(2 * prediction + rng.standard_normal(4000), np.ones(4000))
    >>> low, high = effect_band(prediction, loss).interval([0.0, 0.5])
    >>> np.round(low, 1), np.round(high, 1)
    (array([nan, 0.7]), array([0.2, 1.4]))
    """
    require_loss(loss)
    require_inside(level, 0, 1, "level")
    require_whole(draws, 1, "draws", MOST_DRAWS)
    require_seed(random_state)
    bins = None if bins is None else _edges(bins)
    rows = sorted_rows(loss, as_numbers(prediction, "prediction", len(loss)), random_state)
    starts = tied_starts(rows.prediction) if bins is None else _bin_starts(rows, bins)
    residual = local_residuals(rows) if bins is None else binned_residuals(rows, starts)
    cells = interval_sums(rows, starts, residual)
    shape = (growing_lengths(len(starts)), AROUND) if bins is None else ([1], 0)
    means = interval_means(cells, *shape)
    if not len(means.mean):
        raise OrthocalError(
            f"A band must have an interval with an effective sample size of {LEAST}; these {len(loss)} rows have none. "
            "Gather more rows, or use fewer bins."
        )
    freedom = means.size / 2 if bins is None else means.size - 1
    half = means.error * critical_values(cells, means, freedom, level=level, draws=draws, random_state=random_state)
    ends = _monotone_ends(means, half) if bins is None else _bin_ends(means, half)
    return EffectBand(*ends, level, bins is None, len(loss))


@singledispatch
def sorted_rows(loss: Loss, prediction: Floats, random_state: int) -> BandRows:
    """Return the rows that count, sorted; only losses whose minimiser is a mean have pseudo-outcomes."""
    del prediction, random_state
    raise OrthocalError(
        f"A band must be of an effect that is a mean of pseudo-outcomes; a {type(loss).__name__} (quantiles, expectiles) is not. "
        "Use the intervals of the bins of `assess` instead."
    )


@sorted_rows.register
def _(loss: QuadraticLoss, prediction: Floats, random_state: int) -> BandRows:
    if is_ratio(loss) or bool((loss.denominator < 0).any()):
        raise OrthocalError(
            "A band must be of an effect that is a mean of pseudo-outcomes; this one is a ratio of means. "
            "Use the intervals of the bins of `assess` instead."
        )
    # In random order among ties: a table sorted by arm or outcome would put rows beside others that share their noise.
    counts = np.random.default_rng(random_state).permutation(np.flatnonzero(loss.denominator > 0))
    order = counts[sorting_order(prediction[counts])]
    groups = None if loss.groups is None else np.unique(loss.groups[order], return_inverse=True)[1].astype(np.int64)
    weight = loss.denominator[order]
    return BandRows(prediction[order], loss.numerator[order] / weight, weight, groups)


def _edges(bins: Any) -> Floats:
    """Return the inner edges of bins, which increase."""
    edges = as_numbers(bins, "bins")
    if not (np.diff(edges) > 0).all():
        raise OrthocalError(f"`bins` must be inner edges of bins that increase; they are {shown(edges.tolist())}.")
    return edges


def _bin_starts(rows: BandRows, edges: Floats) -> Integers:
    """Return where each bin that holds rows starts."""
    return np.unique(step_of(rows.prediction, edges), return_index=True)[1].astype(np.int64)


def _monotone_ends(means: IntervalMeans, half: Floats) -> tuple[OpenStepMap, OpenStepMap]:
    """The best lower end of all intervals that end at or below v, and the best upper end of those that start at or above it."""
    order = np.argsort(means.highest, kind="stable")
    best = np.maximum.accumulate((means.mean - half)[order])
    lower = _compressed(np.nextafter(means.highest[order], -np.inf), np.append(np.nan, best))
    order = np.argsort(means.lowest, kind="stable")
    best = np.minimum.accumulate((means.mean + half)[order][::-1])[::-1]
    return lower, _compressed(means.lowest[order], np.append(best, np.nan))


def _bin_ends(means: IntervalMeans, half: Floats) -> tuple[OpenStepMap, OpenStepMap]:
    """The interval of each bin between its lowest and its highest prediction; between bins and beyond them both ends are open."""
    edges = np.column_stack([np.nextafter(means.lowest, -np.inf), means.highest]).ravel()
    values = np.full((2, len(edges) + 1), np.nan)
    values[:, 1::2] = means.mean - half, means.mean + half
    lower, upper = (_compressed(edges, own) for own in values)
    return lower, upper


def _compressed(edges: Floats, values: Floats) -> OpenStepMap:
    """Return the steps without those of no width, and without edges between equal values."""
    wide = np.append(np.diff(edges) > 0, True)
    # of edges that are equal the last is kept, and with it the values beside the whole stack of them
    kept, first = edges[wide], values[0]
    after = values[1:][wide]
    before = np.append(values[:1], after[:-1])
    changes = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    return OpenStepMap(kept[changes], np.append(first, after[changes]))


@singledispatch
def bins_of(calibrator: Any, map_: Any) -> Floats | None:
    """Return the edges of the bins that a calibrator's map holds means of; None where its map does not decrease."""
    del calibrator, map_
    return None


@bins_of.register
def _(calibrator: Histogram, map_: Any) -> Floats | None:
    del calibrator
    return np.asarray(map_.edges)
