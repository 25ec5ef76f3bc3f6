"""The effect on the treated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from orthocal.arrays import Booleans, Floats, Labels
from orthocal.effects.arms import (
    both_propensities,
    outcome_nuisance,
    overlap_of,
    propensities,
    require_levels,
    strata_of,
)
from orthocal.effects.description import DIFFERENCE, Equivariance, Words
from orthocal.losses import Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations


@dataclass(frozen=True)
class CATT:
    r"""The effect on those who got it: :math:`E[\pi\tau \mid \cdot]/E[\pi \mid \cdot]` on a level set of the prediction.

    Needs overlap on one side only: whoever was treated could have been a control. Orthogonal (mathematics 3.7).

    Parameters
    ----------
    arm, control : object
        The two values of the treatment that are compared.

    Examples
    --------
    >>> from orthocal import CATT, orthogonal_loss
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, random_state=0)
    >>> known = {name: data.nuisances[name] for name in ("propensity", "outcome_control")}
    >>> loss = orthogonal_loss(CATT(), data.X, data.y, treatment=data.treatment, nuisances=known)
    >>> true = data.effect[data.treatment == 1].mean()
    >>> bool(abs(loss.numerator.sum() / loss.denominator.sum() - true) < 0.1)
    True
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The average effect on those who got the arm, E[pi tau | prediction] / E[pi | prediction].",
        "ratio loss with numerator (1{arm} - 1{control} pi1/pi0) (y - mu0) and mass 1{arm}",
        "Treatment is as good as random among people with the same covariates, and all the treated could have been controls.",
    )
    arm: Any = 1
    control: Any = 0

    def strata(self, observations: Observations) -> Labels:
        """Arm, control and the rest."""
        return strata_of(observations.treatment, self.arm, self.control)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensities and the outcome of controls."""
        treatment, y = observations.treatment, observations.outcome
        require_levels(treatment, ("arm", self.arm), ("control", self.control))
        treated, control = treatment == self.arm, treatment == self.control
        return [*propensities(treated, control), outcome_nuisance("outcome_control", y, control)]

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Ratio loss whose mass is having been treated."""
        treated, control = observations.treatment == self.arm, observations.treatment == self.control
        (pi1, pi0), weight = both_propensities(fitted), observations.weight
        numerator = numerator_of_treated(observations.outcome, treated, control, pi1, pi0, fitted["outcome_control"])
        overlap = overlap_of({"treated": (treated, pi1), "control": (control, pi0)}, fitted, observations.weight)
        return QuadraticLoss(weight * numerator, weight * treated, weight, observations.groups, overlap, is_ratio=True)


def numerator_of_treated(
    y: Floats, treated: Booleans, control: Booleans, pi1: Floats, pi0: Floats, mu0: Floats
) -> Floats:
    r""":math:`(1\{a=1\} - 1\{a=0\}\,\pi_1/\pi_0)(y - \mu_0)`."""
    return (treated - control * pi1 / pi0) * (y - mu0)
