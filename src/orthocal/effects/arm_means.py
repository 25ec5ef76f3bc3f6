"""Mean outcomes under each of several arms, from which every contrast follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.effects.arms import doubly_robust_mean, outcome_nuisance, overlap_of, require_levels, strata_of
from orthocal.effects.cate import CATE
from orthocal.effects.description import DIFFERENCE, Equivariance, Words
from orthocal.errors import OrthocalError
from orthocal.folds import OTHER
from orthocal.losses import ArmScores
from orthocal.nuisances import Fitted, Nuisance
from orthocal.nuisances.class_shares import ClassShares
from orthocal.observations import Observations

TOLERANCE = 1e-6
"""By which known propensities of all arms may miss a sum of 1."""


@dataclass(frozen=True)
class ArmMeans:
    r"""The mean outcome :math:`E[Y(k) \mid X = x]` under each arm k, by one set of nuisances (mathematics 3.14).

    One classifier learns the propensities of all arms, which add up to 1, and one regression the outcome of each arm. The effect
    of one arm against another is a difference of two means, so that effects add up.

    Parameters
    ----------
    arms : tuple
        Values of the treatment, the control first. Rows with other values are kept: they add to what is known of the covariates.

    Examples
    --------
    >>> ArmMeans(("none", "mail", "call")).effects
    (CATE(arm='mail', control='none'), CATE(arm='call', control='none'))
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The average effect of each arm against the control among people with the same covariates, E[Y(k) - Y(control) | X].",
        "squared loss on chi_k - chi_control, chi_k = mu_k + 1{a = k}/pi_k (y - mu_k)",
    )
    arms: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(self.arms) < 2:
            raise OrthocalError(f"`arms` must name at least one arm beside the control; there is {len(self.arms) - 1}.")

    @property
    def effects(self) -> tuple[CATE, ...]:
        """The effect of each arm against the control."""
        return tuple(CATE(arm, self.arms[0]) for arm in self.arms[1:])

    def strata(self, observations: Observations) -> Labels:
        """Each arm, and the rest."""
        return strata_of(observations.treatment, *self.arms)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """One propensity for all arms, and the outcome in each."""
        treatment, y = observations.treatment, observations.outcome
        require_levels(treatment, *(("arms", arm) for arm in self.arms))
        codes = strata_of(treatment, *self.arms).astype(np.int64)
        has_others = bool((codes == OTHER).any())
        classes = len(self.arms) + has_others
        shares = Nuisance(
            "propensity",
            "propensity",
            np.where(codes == OTHER, len(self.arms), codes).astype(float),
            is_probability=True,
            is_divisor=True,
            wrap=partial(ClassShares, classes=classes),
            outputs=tuple(propensity_of(arm) for arm in self.arms),
            extras=("propensity of other arms",) if has_others else (),
        )
        return [shares, *(outcome_nuisance(outcome_of(arm), y, treatment == arm) for arm in self.arms)]

    def scores(self, observations: Observations, fitted: Fitted) -> ArmScores:
        """Return the doubly robust score of every arm, which is the loss itself."""
        return self.loss(observations, fitted)

    def loss(self, observations: Observations, fitted: Fitted) -> ArmScores:
        """Return the doubly robust score of every arm."""
        got = {arm: observations.treatment == arm for arm in self.arms}
        chances = {arm: fitted[propensity_of(arm)] for arm in self.arms}
        _require_sum(chances, bool(np.logical_or.reduce(list(got.values())).all()))
        scores = [
            doubly_robust_mean(observations.outcome, got[arm], chances[arm], fitted[outcome_of(arm)])
            for arm in self.arms
        ]
        levels = {str(arm): (got[arm], chances[arm]) for arm in self.arms}
        return ArmScores(
            arms=self.arms,
            values=np.column_stack(scores),
            weight=observations.weight,
            groups=observations.groups,
            overlap=overlap_of(levels, fitted, observations.weight),
        )


def propensity_of(arm: Any) -> str:
    """Return the name of an arm's propensity among nuisances."""
    return f"propensity_{arm}"


def outcome_of(arm: Any) -> str:
    """Return the name of an arm's outcome regression among nuisances."""
    return f"outcome_{arm}"


def _require_sum(chances: dict[Any, Floats], is_all: bool) -> None:
    """Propensities of all arms add up to 1; of some, to less."""
    total = np.sum(list(chances.values()), axis=0)
    off = np.abs(total - 1) if is_all else total - 1
    row = int(np.argmax(off))
    if off[row] > TOLERANCE:
        rule = "add up to 1" if is_all else "not add up to more than 1"
        raise OrthocalError(
            f"The propensities of the arms must {rule} in every row; in row {row} the sum is {total[row]:.6g}."
        )
