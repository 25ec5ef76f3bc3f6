"""The overlap-weighted effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from orthocal.arrays import Labels
from orthocal.effects.arms import outcome_nuisance, overlap_of, require_binary
from orthocal.effects.description import DIFFERENCE, Equivariance, Words
from orthocal.losses import Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations


@dataclass(frozen=True)
class OverlapCATE:
    r"""The effect weighted by overlap: :math:`E[\pi(1-\pi)\tau \mid \cdot]/E[\pi(1-\pi) \mid \cdot]`, the target of the R-loss.

    People who were almost sure of one treatment count little, so nothing is divided by a propensity: steady under poor overlap,
    at the price of another target than the CATE's. Treatment 0 or 1. Orthogonal (mathematics 3.6).

    Examples
    --------
    >>> from orthocal import OverlapCATE, orthogonal_loss
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, random_state=0)
    >>> chance = data.nuisances["propensity"]
    >>> known = {"propensity": chance, "outcome": data.nuisances["outcome_control"] + chance * data.effect}
    >>> loss = orthogonal_loss(OverlapCATE(), data.X, data.y, treatment=data.treatment, nuisances=known)
    >>> weight = chance * (1 - chance)
    >>> bool(abs(loss.numerator.sum() / loss.denominator.sum() - weight @ data.effect / weight.sum()) < 0.1)
    True
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The average effect weighted by overlap, E[pi (1 - pi) tau | prediction] / E[pi (1 - pi) | prediction].",
        "ratio loss with numerator (a - pi) (y - m) and mass (a - pi)^2, m the mean outcome over both arms",
        "Treatment is as good as random among people with the same covariates.",
    )

    def strata(self, observations: Observations) -> Labels:
        """The treatment."""
        return observations.treatment

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity and the outcome over both arms."""
        require_binary(observations.treatment, "treatment")
        treated = observations.treatment.astype(float)
        return [
            Nuisance("propensity", "propensity", treated, is_probability=True),
            outcome_nuisance("outcome", observations.outcome),
        ]

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Ratio loss of residual on residual."""
        treated, weight = observations.treatment.astype(float), observations.weight
        surprise = treated - fitted["propensity"]
        numerator = surprise * (observations.outcome - fitted["outcome"])
        shown = np.clip(fitted["propensity"], fitted.clip, 1 - fitted.clip)  # for the summary only
        got = observations.treatment == 1
        overlap = overlap_of({"treated": (got, shown), "control": (~got, 1 - shown)}, fitted, weight)
        return QuadraticLoss(
            weight * numerator, weight * surprise**2, weight, observations.groups, overlap, is_ratio=True
        )
