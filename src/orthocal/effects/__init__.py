"""Effects: which nuisances an effect needs, and the orthogonal loss they give.

A new effect is one file here and one entry in ``EFFECTS``; the contract tests pick it up from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from orthocal.effects.cate import CATE
from orthocal.errors import require_one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orthocal.arrays import Labels
    from orthocal.losses import Loss
    from orthocal.nuisances import Fitted, Nuisance
    from orthocal.observations import Observations

__all__ = ["CATE", "EFFECTS", "Effect", "new_effect"]


class Effect(Protocol):
    """What an effect offers."""

    def strata(self, observations: Observations) -> Labels:
        """The labels that every fold must hold in equal shares."""
        ...

    def nuisances(self, observations: Observations) -> Sequence[Nuisance]:
        """Check the observations and say what must be learnt from them."""
        ...

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Return the orthogonal loss of each row."""
        ...


EFFECTS: dict[str, type[Any]] = {"cate": CATE}


def new_effect(effect: str | Effect) -> Effect:
    """Return an effect by name, or the one given."""
    if isinstance(effect, str):
        require_one_of(effect, EFFECTS, "effect")
        return cast("Effect", EFFECTS[effect]())
    return effect
