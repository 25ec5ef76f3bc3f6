"""Effects: which nuisances an effect needs, and the orthogonal loss they give.

A new effect is one file here and one entry in ``EFFECTS``; the contract tests pick it up from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from orthocal.arrays import Labels
from orthocal.effects.bound import BoundedCATE
from orthocal.effects.cate import CATE
from orthocal.effects.catt import CATT
from orthocal.effects.custom import PseudoOutcome
from orthocal.effects.cvar import CVaRUnderTreatment
from orthocal.effects.derivative import CausalDerivative
from orthocal.effects.expectile import ExpectileUnderTreatment
from orthocal.effects.late import LATE
from orthocal.effects.overlap import OverlapCATE
from orthocal.effects.quantile import QuantileUnderTreatment
from orthocal.effects.relative import RelativeEffect
from orthocal.effects.survival import RestrictedMeanTime, SurvivalProbability
from orthocal.errors import OrthocalError, require_one_of
from orthocal.formats import shown
from orthocal.losses import Loss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations

__all__ = [
    "CATE",
    "CATT",
    "EFFECTS",
    "LATE",
    "BoundedCATE",
    "CVaRUnderTreatment",
    "CausalDerivative",
    "Effect",
    "ExpectileUnderTreatment",
    "OverlapCATE",
    "PseudoOutcome",
    "QuantileUnderTreatment",
    "RelativeEffect",
    "RestrictedMeanTime",
    "SummedEffect",
    "SurvivalProbability",
    "loss_of_all",
    "new_effect",
    "sums_of",
]


class Effect(Protocol):
    """What an effect offers; one whose loss of a row depends on other rows offers `sums` as well, see `SummedEffect`.

    One that has a use for ``observations.event`` says ``uses_event = True``: events are refused by all others.
    """

    @property
    def nuisances(self) -> Callable[[Observations], Sequence[Nuisance]]:
        """``nuisances(observations)`` checks the observations and says what must be learnt from them."""
        ...

    def strata(self, observations: Observations) -> Labels:
        """The labels that every fold must hold in equal shares."""
        ...

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Return the orthogonal loss of each row.

        A row's loss is its own: it may depend on its observations and nuisances, and on ``fitted.sums``, which is what `sums`
        says of all rows. Where rows are in several places, such as the partitions of Dask, this is called for some at a time.
        """
        ...


@runtime_checkable
class SummedEffect(Effect, Protocol):
    """An effect whose loss must know something of all rows, such as a mean, and says what."""

    def sums(self, observations: Observations, fitted: Fitted) -> Mapping[str, Any]:
        """Return by name what must be known, as sums over rows: those of parts of the rows are added up.

        A mean is two sums, that of the weighted values and that of the weights. They come back, of all rows, as
        ``fitted.sums``, to which `loss` must keep.
        """
        ...


def sums_of(effect: Effect, observations: Observations, fitted: Fitted) -> dict[str, Any]:
    """Return what the loss must know of all rows, of these; nothing for most effects."""
    if not isinstance(effect, SummedEffect):
        return {}
    return {name: np.asarray(value, dtype=np.float64) for name, value in effect.sums(observations, fitted).items()}


def loss_of_all(effect: Effect, observations: Observations, fitted: Fitted) -> Loss:
    """Return the loss of rows that are all there are."""
    return effect.loss(observations, replace(fitted, sums=sums_of(effect, observations, fitted)))


EFFECTS: dict[str, type[Any]] = {
    "cate": CATE,
    "late": LATE,
    "derivative": CausalDerivative,
    "quantile": QuantileUnderTreatment,
    "overlap": OverlapCATE,
    "catt": CATT,
    "relative": RelativeEffect,
    "cvar": CVaRUnderTreatment,
    "expectile": ExpectileUnderTreatment,
    "survival": SurvivalProbability,
    "rmst": RestrictedMeanTime,
    "bound": BoundedCATE,
}


def new_effect(effect: str | Effect) -> Effect:
    """Return an effect by name, or the one given."""
    if isinstance(effect, str):
        require_one_of(effect, EFFECTS, "effect")
        return cast("Effect", EFFECTS[effect]())
    if isinstance(effect, type) or not (hasattr(effect, "loss") and hasattr(effect, "nuisances")):
        raise OrthocalError(
            f"`effect` must be a name or an effect such as CATE(); it is {shown(effect)}. Pass an instance."
        )
    return effect
