"""The relative effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from orthocal.arrays import Labels
from orthocal.effects.arms import both_propensities, doubly_robust_mean, overlap_of, strata_of
from orthocal.effects.cate import CATE
from orthocal.effects.description import RATIO, Equivariance, Words
from orthocal.losses import Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations


@dataclass(frozen=True)
class RelativeEffect:
    r"""The ratio :math:`E[Y(\text{arm}) \mid \cdot] / E[Y(\text{control}) \mid \cdot]`: 1.2 is a rise by a fifth.

    On a level set of the prediction the target is the ratio of mean outcomes, not the mean of ratios. For outcomes with a
    positive mean. Orthogonal and doubly robust (mathematics 3.8); assumptions as for the CATE.

    Parameters
    ----------
    arm, control : object
        The two values of the treatment that are compared.

    Examples
    --------
    >>> from orthocal import RelativeEffect, orthogonal_loss
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, random_state=0)
    >>> known = {name: data.nuisances[name] + 10 for name in ("outcome_control", "outcome_treated")}
    >>> known["propensity"] = data.nuisances["propensity"]
    >>> loss = orthogonal_loss(RelativeEffect(), data.X, data.y + 10, treatment=data.treatment, nuisances=known)
    >>> round(float(loss.numerator.sum() / loss.denominator.sum()), 1), loss.unit
    (1.0, 'ratio')
    """

    equivariance: ClassVar[Equivariance] = RATIO
    words: ClassVar[Words] = Words(
        "The ratio of mean outcomes under arm and control, E[Y(arm) | prediction] / E[Y(control) | prediction].",
        "ratio loss with numerator mu1 + 1{arm}/pi1 (y - mu1) and mass mu0 + 1{control}/pi0 (y - mu0)",
    )
    arm: Any = 1
    control: Any = 0

    def strata(self, observations: Observations) -> Labels:
        """Arm, control and the rest."""
        return strata_of(observations.treatment, self.arm, self.control)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Those of the CATE."""
        return CATE(self.arm, self.control).nuisances(observations)

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Ratio loss of the two doubly robust means."""
        treated, control = observations.treatment == self.arm, observations.treatment == self.control
        (pi1, pi0), y, weight = both_propensities(fitted), observations.outcome, observations.weight
        numerator = doubly_robust_mean(y, treated, pi1, fitted["outcome_treated"])
        denominator = doubly_robust_mean(y, control, pi0, fitted["outcome_control"])
        overlap = overlap_of({"treated": (treated, pi1), "control": (control, pi0)}, fitted, observations.weight)
        return QuadraticLoss(
            weight * numerator, weight * denominator, weight, observations.groups, overlap, unit="ratio", is_ratio=True
        )
