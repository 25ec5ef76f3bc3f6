"""A weighted mean of calibrators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import Floats
from orthocal.losses import Loss
from orthocal.maps import AffineMap, IdentityMap, Map, MixtureMap, SplineMap, StepMap


class Mixture(BaseEstimator):  # type: ignore[misc]
    """Fit several calibrators to the same rows and take the weighted mean of their maps.

    Parameters
    ----------
    members : sequence of calibrators
    weights : sequence of float
        Positive, adding up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.calibrators import Constant, Identity
    >>> from orthocal.losses import QuadraticLoss
    >>> loss = QuadraticLoss(np.array([1.0, 3.0]), np.ones(2))
    >>> Mixture([Identity(), Constant()], [0.5, 0.5]).fit(np.array([0.0, 1.0]), loss).map_
    AffineMap(intercept=1.0, slope=0.5)
    """

    def __init__(self, members: Sequence[Any], weights: Sequence[float]) -> None:
        self.members = members
        self.weights = weights

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Fit every member."""
        self.map_ = mixed(self.weights, [clone(member).fit(prediction, loss).map_ for member in self.members])
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)


def mixed(weights: Sequence[float], maps: Sequence[Map]) -> Map:
    """Return the weighted mean of maps as the simplest map it is: lines make a line, splines with the same knots a spline."""
    if len(maps) == 1:
        return maps[0]
    shares: dict[Any, float] = {}
    sums: dict[Any, Any] = {}
    for weight, map_ in zip(weights, maps, strict=True):
        kind, numbers = additive_form(map_)
        shares[kind] = shares.get(kind, 0.0) + weight
        sums[kind] = sums.get(kind, 0.0) + weight * numbers
    total = sum(shares.values())
    parts = [kind.build(sums[kind] / share) for kind, share in shares.items()]
    return parts[0] if len(parts) == 1 else MixtureMap(np.array(list(shares.values())) / total, tuple(parts))


@dataclass(frozen=True)
class Kind:
    """Maps whose weighted mean is the map of the weighted mean of their numbers; `same` is what they must have in common."""

    build: Callable[[Any], Map] = field(compare=False)
    same: Any


@singledispatch
def additive_form(map_: Any) -> tuple[Kind, Any]:
    """Return the kind of a map and its numbers; a map that cannot be averaged in this way is the only one of its kind."""
    return Kind(lambda _: map_, id(map_)), 0.0


def _line(intercept: float, slope: float) -> tuple[Kind, Any]:
    return Kind(lambda numbers: AffineMap(*numbers.tolist()), "line"), np.array([intercept, slope])


@additive_form.register
def _(map_: IdentityMap) -> tuple[Kind, Any]:  # noqa: ARG001
    return _line(0.0, 1.0)


@additive_form.register
def _(map_: AffineMap) -> tuple[Kind, Any]:
    return _line(map_.intercept, map_.slope)


@additive_form.register
def _(map_: StepMap) -> tuple[Kind, Any]:
    if len(map_.values) == 1:
        return _line(float(map_.values[0]), 0.0)
    return Kind(lambda values: StepMap(map_.edges, values), map_.edges.tobytes()), map_.values


@additive_form.register
def _(map_: SplineMap) -> tuple[Kind, Any]:
    return Kind(lambda numbers: SplineMap(map_.knots, numbers), map_.knots.tobytes()), map_.coefficients
