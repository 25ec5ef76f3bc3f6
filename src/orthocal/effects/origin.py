"""Where a loss comes from, written on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from orthocal.effects.description import words_of
from orthocal.losses import Loss, Origin
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import to_learn
from orthocal.nuisances.learners import choose_learners
from orthocal.nuisances.recipe import Recipe

if TYPE_CHECKING:
    from orthocal.effects import Effect


def stamped(
    loss: Loss,
    effect: Effect,
    wanted: Sequence[Nuisance],
    known: Mapping[str, Any],
    folds: int,
    recipe: Recipe,
    rows: int,
) -> Loss:
    """Return the loss with its origin written on it; an own loss that has no place for one stays as it is."""
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
