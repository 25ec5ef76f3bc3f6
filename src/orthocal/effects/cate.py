"""The conditional average treatment effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.effects.arms import is_binary, overlap_of, propensities
from orthocal.errors import OrthocalError, require_level
from orthocal.losses import QuadraticLoss
from orthocal.nuisances import Nuisance

if TYPE_CHECKING:
    from orthocal.arrays import Booleans, Floats, Labels
    from orthocal.losses import Loss
    from orthocal.nuisances import Fitted
    from orthocal.observations import Observations


@dataclass(frozen=True)
class CATE:
    r"""The average effect :math:`\theta_0(x) = E[Y(\text{arm}) - Y(\text{control}) \mid X = x]`.

    Identified when treatment is as good as random given the covariates (ignorability) and every row could have had either
    level (overlap). The loss is squared loss on the doubly robust pseudo-outcome (MATH 2; 5 for more than two arms), with
    bias of second order in the errors of propensity and outcome models, and exactly zero when the propensity is known.

    Parameters
    ----------
    arm, control : object
        The two treatment levels that are compared. Rows with other levels are kept: they add the covariates' law.

    Examples
    --------
    >>> CATE(arm="drug", control="placebo")
    CATE(arm='drug', control='placebo')
    """

    arm: Any = 1
    control: Any = 0

    def strata(self, observations: Observations) -> Labels:
        """Treatment levels."""
        return observations.treatment

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity of the arm (and of the control when there are more than two levels), outcome in each."""
        treatment, y = observations.treatment, observations.outcome
        if self.arm == self.control:
            raise OrthocalError(f"`arm` and `control` must differ; both are {self.arm!r}.")
        levels = np.unique(treatment)
        if len(levels) == 1:
            raise OrthocalError(
                f"The treatment must have at least two levels; every row is {levels.tolist()[0]!r}. Add rows of the other arm."
            )
        require_level(treatment, self.arm, "arm")
        require_level(treatment, self.control, "control")
        treated, control = treatment == self.arm, treatment == self.control
        return [
            *propensities(treated, control),
            Nuisance("outcome_control", "outcome", y, control, is_probability=is_binary(y)),
            Nuisance("outcome_treated", "outcome", y, treated, is_probability=is_binary(y)),
        ]

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the doubly robust pseudo-outcome."""
        treated, control = observations.treatment == self.arm, observations.treatment == self.control
        propensity = fitted["propensity"]
        propensity_control = fitted.values.get("propensity_control", 1 - propensity)
        chi = pseudo_outcome(
            observations.outcome,
            treated,
            control,
            propensity,
            propensity_control,
            fitted["outcome_treated"],
            fitted["outcome_control"],
        )
        overlap = overlap_of({"treated": (treated, propensity), "control": (control, propensity_control)}, fitted)
        weight = observations.weight
        return QuadraticLoss(weight * chi, weight, weight, observations.groups, overlap)


def pseudo_outcome(
    y: Floats, treated: Booleans, control: Booleans, pi1: Floats, pi0: Floats, mu1: Floats, mu0: Floats
) -> Floats:
    r"""Doubly robust pseudo-outcome, the multi-arm form of MATH 5; two arms have :math:`\pi_0 = 1 - \pi_1`.

    .. math:: \chi = \mu_1 - \mu_0 + \frac{1\{a = 1\}}{\pi_1}(y - \mu_1) - \frac{1\{a = 0\}}{\pi_0}(y - \mu_0)
    """
    return mu1 - mu0 + treated / pi1 * (y - mu1) - control / pi0 * (y - mu0)
