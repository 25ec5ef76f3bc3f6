"""Maps: what a calibrator learns. A map is a small frozen record that turns predictions into calibrated ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import expit

from orthocal.arrays import Floats, as_floats, step_of
from orthocal.errors import OrthocalError, are_numbers, require_number
from orthocal.formats import shown
from orthocal.observations import as_numbers

HOLDS_MAPS = {"holds": "maps"}
"""Marks a field of a map that holds other maps."""
WEIGHTS_TOLERANCE = 1e-9


class Map(Protocol):
    """A fitted one-dimensional map."""

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        ...


@dataclass(frozen=True)
class IdentityMap:
    """The map that changes nothing."""

    def predict(self, prediction: Any) -> Floats:
        """Return the prediction itself."""
        return as_numbers(prediction, "prediction").copy()


@dataclass(frozen=True)
class AffineMap:
    """The map intercept + slope * prediction."""

    intercept: float
    slope: float

    def __post_init__(self) -> None:
        _require_finite_numbers(self, "intercept", "slope")

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.intercept + self.slope * as_numbers(prediction, "prediction")


@dataclass(frozen=True, eq=False)
class StepMap:
    """A step function: block b covers (edges[b-1], edges[b]], the outer blocks reach to infinity.

    Parameters
    ----------
    edges : array of shape (blocks - 1,)
        Upper ends of all blocks but the last, increasing.
    values : array of shape (blocks,)
    """

    edges: Floats
    values: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", as_floats(self.edges, "edges"))
        object.__setattr__(self, "values", as_floats(self.values, "values"))
        if self.edges.ndim != 1 or self.values.ndim != 1 or len(self.values) != len(self.edges) + 1:
            raise OrthocalError(
                f"A step map must have one value more than edges; they have shapes {self.values.shape} and {self.edges.shape}."
            )
        if not are_numbers(self.edges, self.values):
            raise OrthocalError("The edges and values of a step map must be finite; at least one is not.")
        if not (np.diff(self.edges) > 0).all():
            raise OrthocalError("The edges of a step map must increase; they do not.")

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.values[step_of(as_numbers(prediction, "prediction"), self.edges)]


@dataclass(frozen=True, eq=False)
class OpenStepMap:
    """A step function that is not known everywhere: one end of a band.

    Parameters
    ----------
    edges : array of shape (blocks - 1,)
        Upper ends of all blocks but the last, increasing.
    values : array of shape (blocks,)
        NaN where the end is open.

    Examples
    --------
    >>> OpenStepMap([0.0], [float("nan"), 2.0]).predict([0.0, 1.0])
    array([nan,  2.])
    """

    edges: Floats
    values: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", as_floats(self.values, "values"))
        known = StepMap(self.edges, np.nan_to_num(self.values, nan=0.0, posinf=np.inf, neginf=-np.inf))
        object.__setattr__(self, "edges", known.edges)

    def predict(self, prediction: Any) -> Floats:
        """End of the band at each prediction; NaN where it is open."""
        return self.values[step_of(as_numbers(prediction, "prediction"), self.edges)]

    def to_dict(self) -> dict[str, Any]:
        """Return edges and values as lists, None where the end is open."""
        known = [None if np.isnan(value) else value for value in self.values.tolist()]
        return {"edges": self.edges.tolist(), "values": known}

    @classmethod
    def from_dict(cls, record: Any) -> OpenStepMap:
        """Return the map that `to_dict` described."""
        return cls(record["edges"], record["values"])


@dataclass(frozen=True)
class SigmoidMap:
    """The map lower + (upper - lower) / (1 + exp(-(intercept + slope * prediction)))."""

    lower: float
    upper: float
    intercept: float
    slope: float

    def __post_init__(self) -> None:
        _require_finite_numbers(self, "lower", "upper", "intercept", "slope")
        if not self.lower < self.upper:
            raise OrthocalError(f"`lower` must be below `upper`; they are {self.lower} and {self.upper}.")

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        score = self.intercept + self.slope * as_numbers(prediction, "prediction")
        return self.lower + (self.upper - self.lower) * np.asarray(expit(score))


@dataclass(frozen=True, eq=False)
class SplineMap:
    """A cubic spline, constant outside its knots.

    Parameters
    ----------
    knots : array
        Nondecreasing, the end knots four times.
    coefficients : array of shape (knots - 4,)
    """

    knots: Floats
    coefficients: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "knots", as_floats(self.knots, "knots"))
        object.__setattr__(self, "coefficients", as_floats(self.coefficients, "coefficients"))
        if (
            self.knots.ndim != 1
            or self.coefficients.ndim != 1
            or not 8 <= len(self.knots) == len(self.coefficients) + 4
        ):
            raise OrthocalError(
                "A spline map must have four knots more than coefficients, and four of those; they have shapes "
                f"{self.knots.shape} and {self.coefficients.shape}."
            )
        if not are_numbers(self.knots, self.coefficients):
            raise OrthocalError("The knots and coefficients of a spline map must be finite; at least one is not.")
        if not (np.diff(self.knots) >= 0).all():
            raise OrthocalError("The knots of a spline map must not decrease; they do.")
        low, high = self.knots[[0, -1]]
        more = self.knots[4] == low or self.knots[-5] == high  # at a fifth its value at the end would be that beyond it
        if low == high or (self.knots[:4] != low).any() or (self.knots[-4:] != high).any() or more:
            raise OrthocalError("A spline map must have two different end knots, each four times; this one does not.")

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        inside = np.clip(as_numbers(prediction, "prediction"), self.knots[0], self.knots[-1])
        # What a worker of a cluster receives may lie at any byte, which scipy refuses.
        knots, coefficients = (np.require(one, requirements=["C", "A"]) for one in (self.knots, self.coefficients))
        return np.asarray(BSpline(knots, coefficients, 3)(inside))


@dataclass(frozen=True, eq=False)
class MixtureMap:
    """The weighted mean of several maps.

    Parameters
    ----------
    weights : array of shape (maps,)
        Positive, adding up to 1.
    maps : tuple of maps
        None of them a mixture.
    """

    weights: Floats
    maps: tuple[Map, ...] = field(metadata=HOLDS_MAPS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", as_floats(self.weights, "weights"))
        object.__setattr__(self, "maps", tuple(self.maps))
        if self.weights.shape != (len(self.maps),) or not self.maps:
            raise OrthocalError(
                f"A mixture of maps must have one weight for each map; there are {self.weights.size} and {len(self.maps)}."
            )
        if not ((self.weights > 0).all() and abs(self.weights.sum() - 1) < WEIGHTS_TOLERANCE):
            raise OrthocalError(
                f"The weights of a mixture must be positive and add up to 1; they are {shown(self.weights.tolist())}."
            )
        if any(isinstance(map_, MixtureMap) for map_ in self.maps):
            raise OrthocalError(
                "A mixture must be made of maps that are not mixtures; one is. List its members instead."
            )

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        prediction = as_numbers(prediction, "prediction")
        total = self.weights[0] * self.maps[0].predict(prediction)
        for weight, map_ in zip(self.weights[1:], self.maps[1:], strict=True):
            total += weight * map_.predict(prediction)
        return np.asarray(total)


def _require_finite_numbers(record: object, *names: str) -> None:
    for name in names:
        value = getattr(record, name)
        require_number(value, name, " that a map can have")


MAPS: dict[str, type[Any]] = {
    "identity": IdentityMap,
    "affine": AffineMap,
    "step": StepMap,
    "sigmoid": SigmoidMap,
    "spline": SplineMap,
    "mixture": MixtureMap,
}
"""Every shape a map can have, by the name it has in a file."""
