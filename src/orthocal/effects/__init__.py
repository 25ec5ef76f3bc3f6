"""Effects: which nuisances an effect needs, and the orthogonal loss they give.

A new effect is one file here and one entry in ``EFFECTS``; the contract tests pick it up from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

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
from orthocal.errors import OrthocalError, require_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orthocal.arrays import Labels
    from orthocal.losses import Loss
    from orthocal.nuisances import Fitted, Nuisance
    from orthocal.observations import Observations

__all__ = [
    "CATE",
    "CATT",
    "EFFECTS",
    "LATE",
    "CVaRUnderTreatment",
    "CausalDerivative",
    "Effect",
    "ExpectileUnderTreatment",
    "OverlapCATE",
    "PseudoOutcome",
    "QuantileUnderTreatment",
    "RelativeEffect",
    "new_effect",
]


class Effect(Protocol):
    """What an effect offers."""

    @property
    def nuisances(self) -> Callable[[Observations], Sequence[Nuisance]]:
        """``nuisances(observations)`` checks the observations and says what must be learnt from them."""
        ...

    def strata(self, observations: Observations) -> Labels:
        """The labels that every fold must hold in equal shares."""
        ...

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Return the orthogonal loss of each row."""
        ...


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
}


def new_effect(effect: str | Effect) -> Effect:
    """Return an effect by name, or the one given."""
    if isinstance(effect, str):
        require_one_of(effect, EFFECTS, "effect")
        return cast("Effect", EFFECTS[effect]())
    if isinstance(effect, type) or not (hasattr(effect, "loss") and hasattr(effect, "nuisances")):
        raise OrthocalError(f"`effect` must be a name or an effect such as CATE(); it is {effect!r}. Pass an instance.")
    return effect
