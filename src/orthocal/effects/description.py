"""An effect in words, how it moves with the unit of the outcome, and where a loss comes from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, Origin
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import to_learn
from orthocal.nuisances.learners import Recipe, choose_learners

if TYPE_CHECKING:
    from orthocal.effects import Effect


IGNORABILITY = (
    "Treatment is as good as random among people with the same covariates, and each of them could have had either arm."
)


@dataclass(frozen=True)
class Words:
    """What an effect says of itself.

    Parameters
    ----------
    estimand : str
    formula : str
        Of the pseudo-outcome or loss, in plain characters.
    assumption : str
    """

    estimand: str
    formula: str
    assumption: str = IGNORABILITY


def words_of(effect: Any) -> Words:
    """Return an effect's own words; one that has none is described by the beginning of its docstring."""
    own = getattr(effect, "words", None)
    if isinstance(own, Words):
        return own
    start = re.split(r"[:.]", inspect.getdoc(effect) or "")[0].strip()
    return Words(start or type(effect).__name__, "as the effect defines it", "those of the effect")


@dataclass(frozen=True)
class Equivariance:
    r"""The effect of the outcome :math:`c\,y + s` is :math:`c^{\text{power}}` times that of :math:`y`, plus `moves` times s.

    Parameters
    ----------
    power : int
        1: it has the unit of the outcome. 0: it has none, as a ratio of outcomes.
    moves : int, optional
        1: it moves with the outcome. 0: it does not, as a difference of outcomes. None: no rule holds for s other than 0.

    Examples
    --------
    >>> LOCATION.of(2.0, scale=10.0, shift=1.0)
    21.0
    """

    power: int
    moves: int | None

    def of(self, effect: Floats | float, *, scale: float = 1.0, shift: float = 0.0) -> Floats | float:
        """Return what an effect becomes when the outcome becomes scale * outcome + shift."""
        if self.moves is None and shift != 0:
            raise OrthocalError(f"This effect must have a shift of 0, for it has no rule for another; it is {shift}.")
        return scale**self.power * effect + (self.moves or 0) * shift


DIFFERENCE, LOCATION, RATIO = Equivariance(1, 0), Equivariance(1, 1), Equivariance(0, None)
"""Of a difference of mean outcomes, of a place among outcomes, and of a ratio of outcomes."""


def stamped(
    loss: Loss,
    effect: Effect,
    wanted: Sequence[Nuisance],
    known: Mapping[str, Any],
    folds: int,
    recipe: Recipe,
    rows: int,
) -> Loss:
    """Return the loss with its origin written on it; a custom loss that has no place for one stays as it is."""
    if not hasattr(loss, "origin"):
        return loss
    learners = choose_learners(wanted, recipe.learners) if to_learn(wanted, known) else {}
    origin = origin_of(effect, wanted, known, learners, folds, recipe, rows)
    return cast("Loss", replace(cast("Any", loss), origin=origin))


def origin_of(
    effect: Effect,
    wanted: Sequence[Nuisance],
    known: Collection[str],
    learners: Mapping[str, Any],
    folds: int,
    recipe: Recipe,
    rows: int,
) -> Origin:
    """Say where a loss comes from."""
    words = words_of(effect)
    return Origin(
        effect=repr(effect),
        estimand=words.estimand,
        formula=words.formula,
        assumption=words.assumption,
        learners={
            n.name: "given" if set(n.names) <= set(known) else " ".join(repr(learners[n.name]).split()) for n in wanted
        },
        folds=folds,
        clip=recipe.clip,
        seed=str(recipe.random_state) if isinstance(recipe.random_state, int) else "not recorded",
        rows=rows,
    )
