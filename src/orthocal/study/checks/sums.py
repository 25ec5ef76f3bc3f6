"""What checks must know of all rows: counts, moments and ranges of partitions, which merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats
from orthocal.assessment.compare import WEIGHT, Clusters, Moments, moments_of
from orthocal.effects.late import arm_contrast
from orthocal.losses import Overlap
from orthocal.observations import Observations

SAME = 1e-9
"""Share of their size within which numbers are the same."""


class Course(NamedTuple):
    """Of columns, row after row: first and last number, the ends of all, and whether they rise, or fall, at every step."""

    first: Floats
    last: Floats
    low: Floats
    high: Floats
    rises: Booleans
    falls: Booleans

    @classmethod
    def of(cls, columns: Floats) -> Course:
        """Of some rows, one column each."""
        steps = np.diff(columns, axis=0)
        rises, falls = (np.asarray(one.all(axis=0)) for one in (steps > 0, steps < 0))
        return cls(columns[0], columns[-1], columns.min(axis=0), columns.max(axis=0), rises, falls)

    def merge(self, other: Course) -> Course:
        """Of these rows and the next."""
        return Course(
            self.first,
            other.last,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.rises & other.rises & (self.last < other.first),
            self.falls & other.falls & (self.last > other.first),
        )


@dataclass(frozen=True, eq=False)
class DataSums:
    """What checks of the data must know of all rows.

    Parameters
    ----------
    rows : int
    weight : Moments
        Of the sample weights.
    weights : Course
        Of these, too.
    covariates : Course or None
        Of the covariates; None where there are none.
    likeness : tuple of Moments
        Of each covariate, and of the outcome beside it.
    clusters : Clusters or None
        How many rows each has.
    first_stage : Moments or Clusters or None
        Of weights, and of weights times how far the instrument moves the treatment.
    overlap : Overlap or None
        How well treatment arms overlap.
    """

    rows: int
    weight: Moments
    weights: Course
    covariates: Course | None
    likeness: tuple[Moments, ...]
    clusters: Clusters | None
    first_stage: Moments | Clusters | None
    overlap: Any

    @classmethod
    def of(cls, rows: Observations, nuisances: Mapping[str, Any], overlap: Overlap | None) -> DataSums:
        """Of some rows."""
        has_covariates = rows.covariates.shape[1] > 0
        return cls(
            rows=len(rows),
            weight=moments_of([rows.weight], None),  # type: ignore[arg-type]
            weights=Course.of(rows.weight[:, None]),
            covariates=Course.of(rows.covariates) if has_covariates else None,
            likeness=tuple(likeness_of(column, rows.outcome) for column in rows.covariates.T),
            clusters=None if rows.groups is None else moments_of([np.ones(len(rows))], rows.groups),  # type: ignore[arg-type]
            first_stage=_first_stage(rows, nuisances),
            overlap=overlap,
        )

    def merge(self, other: DataSums) -> DataSums:
        """Of these rows and the next."""
        return DataSums(
            rows=self.rows + other.rows,
            weight=self.weight.merge(other.weight),
            weights=self.weights.merge(other.weights),
            covariates=merged_if(self.covariates, other.covariates),
            likeness=tuple(one.merge(two) for one, two in zip(self.likeness, other.likeness, strict=True)),
            clusters=merged_if(self.clusters, other.clusters),
            first_stage=merged_if(self.first_stage, other.first_stage),
            overlap=merged_if(self.overlap, other.overlap),
        )

    @property
    def effective_rows(self) -> float:
        """The effective sample size by the weights: the square of their sum over the sum of their squares."""
        total = float(self.weight.total[WEIGHT])
        return total**2 / (float(self.weight.scatter[WEIGHT, WEIGHT]) + total**2 / self.rows)

    @property
    def heaviest(self) -> float:
        """The largest share of the weight that one row has."""
        return float(self.weights.high[0] / self.weight.total[WEIGHT])


def merged_if(one: Any, other: Any) -> Any:
    """Merge what both have."""
    return one if other is None else other if one is None else one.merge(other)


def likeness_of(column: Floats, outcome: Floats) -> Moments:
    """Return what a correlation with the outcome is made of."""
    return Moments.of(np.array([column, outcome]))


def correlation_of(likeness: Moments) -> float:
    """Return the size of a correlation; 0 where nothing varies or something is missing."""
    scatter = likeness.scatter
    least = np.finfo(float).eps ** 2 * likeness.total**2 / likeness.units  # squares that are rounding of the mean
    size = float(np.sqrt(scatter[0, 0] * scatter[1, 1]))
    varies = bool((np.diag(scatter) > least).all()) and np.isfinite(size) and size > 0
    return abs(float(scatter[0, 1])) / size if varies else 0.0


def _first_stage(rows: Observations, nuisances: Mapping[str, Any]) -> Moments | Clusters | None:
    if rows.instrument is None or "treatment_z1" not in nuisances:
        return None
    learnt = (nuisances[name] for name in ("instrument_propensity", "treatment_z1", "treatment_z0"))
    moved = arm_contrast(rows.treatment.astype(float), rows.instrument == 1, *learnt)
    return moments_of([rows.weight, rows.weight * moved], rows.groups)


class Outside(NamedTuple):
    """Predictions beyond what is possible: how many, the one that is farthest beyond, and how far."""

    rows: int
    worst: float
    distance: float

    @classmethod
    def of(cls, prediction: Floats, ends: tuple[float, float]) -> Outside:
        """Of some rows."""
        beyond = np.maximum(ends[0] - prediction, prediction - ends[1])
        place = int(np.argmax(beyond))
        return cls(int((beyond > 0).sum()), float(prediction[place]), float(beyond[place]))

    def merge(self, other: Outside) -> Outside:
        """Of both."""
        far = self if self.distance >= other.distance else other
        return Outside(self.rows + other.rows, far.worst, far.distance)


@dataclass(frozen=True, eq=False)
class PredictionSums:
    """What checks of a prediction must know of all rows.

    Parameters
    ----------
    rows : int
    likeness : Moments
        Of the prediction, and of the outcome beside it.
    size : float
        The largest prediction, whatever its sign.
    gaps : array
        How far each covariate is from the prediction at most.
    is_binary : bool
        Whether every outcome is 0 or 1.
    outside : Outside or None
        Of the range that was assumed; None where none was.
    """

    rows: int
    likeness: Moments
    size: float
    gaps: Floats
    is_binary: bool
    outside: Outside | None

    @classmethod
    def of(cls, rows: Observations, prediction: Floats, ends: tuple[float, float] | None) -> PredictionSums:
        """Of some rows."""
        return cls(
            rows=len(rows),
            likeness=likeness_of(prediction, rows.outcome),
            size=float(np.abs(prediction).max()),
            gaps=np.array([np.abs(column - prediction).max() for column in rows.covariates.T]),
            is_binary=bool(np.isin(rows.outcome, (0.0, 1.0)).all()),
            outside=None if ends is None else Outside.of(prediction, ends),
        )

    def merge(self, other: PredictionSums) -> PredictionSums:
        """Of both."""
        return PredictionSums(
            rows=self.rows + other.rows,
            likeness=self.likeness.merge(other.likeness),
            size=max(self.size, other.size),
            gaps=np.maximum(self.gaps, other.gaps),
            is_binary=self.is_binary and other.is_binary,
            outside=merged_if(self.outside, other.outside),
        )

    @property
    def same(self) -> int | None:
        """The first covariate that is the prediction itself, if there is one."""
        places = np.flatnonzero(self.gaps <= SAME * self.size)
        return int(places[0]) if len(places) else None
