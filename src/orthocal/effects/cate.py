"""The conditional average treatment effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Labels, in_runs
from orthocal.effects.arms import (
    both_propensities,
    doubly_robust_mean,
    outcome_nuisance,
    outcome_residual,
    overlap_of,
    propensities,
    pseudo_outcome,
    require_levels,
    strata_of,
)
from orthocal.effects.bound import BoundedCATE
from orthocal.effects.description import DIFFERENCE, Equivariance, Words
from orthocal.losses import ArmScores, Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations


@dataclass(frozen=True)
class CATE:
    r"""The average effect :math:`\theta_0(x) = E[Y(\text{arm}) - Y(\text{control}) \mid X = x]`.

    Identified when treatment is as good as random given the covariates (ignorability) and every row could have had either
    arm (overlap). The loss is squared loss on the doubly robust pseudo-outcome (mathematics 3.1), with bias of second
    order in the errors of propensity and outcome models, and exactly zero when the propensity is known.

    Parameters
    ----------
    arm, control : object
        The two values of the treatment that are compared. Rows with other values are kept: they inform the propensities.

    Examples
    --------
    >>> CATE(arm="drug", control="placebo")
    CATE(arm='drug', control='placebo')
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The average effect of the arm against the control among people with the same covariates, E[Y(arm) - Y(control) | X].",
        "squared loss on chi = mu1 - mu0 + 1{arm}/pi1 (y - mu1) - 1{control}/pi0 (y - mu0)",
    )
    arm: Any = 1
    control: Any = 0

    def strata(self, observations: Observations) -> Labels:
        """Arm, control and the rest."""
        return strata_of(observations.treatment, self.arm, self.control)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity of the arm (and of the control when there are more than two arms), outcome in each."""
        treatment, y = observations.treatment, observations.outcome
        require_levels(treatment, ("arm", self.arm), ("control", self.control))
        treated, control = treatment == self.arm, treatment == self.control
        return [
            *propensities(treated, control),
            outcome_nuisance("outcome_control", y, control),
            outcome_nuisance("outcome_treated", y, treated),
        ]

    def scores(self, observations: Observations, fitted: Fitted) -> ArmScores:
        """Return the doubly robust score of each arm, whose difference the loss is about (mathematics 3.14)."""
        pi1, pi0 = both_propensities(fitted)
        arms = {
            self.control: (pi0, fitted["outcome_control"]),
            self.arm: (pi1, fitted["outcome_treated"]),
        }
        columns = [
            doubly_robust_mean(observations.outcome, observations.treatment == arm, *nuisances)
            for arm, nuisances in arms.items()
        ]
        return ArmScores(
            arms=tuple(arms),
            values=np.column_stack(columns),
            weight=observations.weight,
            groups=observations.groups,
        )

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the doubly robust pseudo-outcome."""
        treated, control = observations.treatment == self.arm, observations.treatment == self.control
        pi1, pi0 = both_propensities(fitted)
        mu1, mu0 = fitted["outcome_treated"], fitted["outcome_control"]
        chi = in_runs(pseudo_outcome, observations.outcome, treated, control, pi1, pi0, mu1, mu0)
        weight = observations.weight
        overlap = overlap_of({"treated": (treated, pi1), "control": (control, pi0)}, fitted, weight)
        # Sums have no room for it, and what was assigned with given probabilities has no unmeasured confounding.
        if not fitted.is_part and "propensity" in fitted.clipped:
            residual = in_runs(outcome_residual, observations.outcome, treated, control, mu1, mu0)
            overlap = replace(overlap, residual=residual)
        chi *= weight
        return QuadraticLoss(chi, weight, weight, observations.groups, overlap)

    def bounded(self, strength: float, side: str) -> BoundedCATE:
        """Return an end of the interval that unmeasured confounding of a strength allows."""
        return BoundedCATE(strength, side, self.arm, self.control)

    def reach(self, nuisances: Mapping[str, Floats], low: float, high: float) -> tuple[Floats, float]:
        """Return the width of each row's pseudo-outcome over treatments and outcomes within `low` and `high`; of the effect."""
        mu1, mu0, pi1 = nuisances["outcome_treated"], nuisances["outcome_control"], nuisances["propensity"]
        pi0 = nuisances.get("propensity_control", 1 - pi1)
        gap, ends = mu1 - mu0, (low, high)
        values = [gap, *(gap + (y - mu1) / pi1 for y in ends), *(gap - (y - mu0) / pi0 for y in ends)]
        return np.asarray(np.ptp(values, axis=0)), 2 * (high - low)
