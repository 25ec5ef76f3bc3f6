"""The conditional expectile under treatment."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.effects.arms import hajek, hajek_sums, overlap_of, propensity_nuisance, require_levels
from orthocal.effects.description import LOCATION, Equivariance, Words
from orthocal.effects.quantile import distribution_nuisance, level_judged
from orthocal.errors import require_inside, warn_of_old_name
from orthocal.losses import ExpectileLoss, Loss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations


@dataclass(frozen=True)
class ExpectileUnderTreatment:
    r"""The expectile of the outcome under one arm: where shortfall and excess balance at odds :math:`1-\tau : \tau`.

    :math:`(1-\tau) E[(\theta - Y(\text{arm}))_+ \mid x] = \tau E[(Y(\text{arm}) - \theta)_+ \mid x]`; 0.5 is the mean. Strongly
    convex, so the paper's assumptions hold without conditions on a density (mathematics 3.11). Otherwise as the quantile.

    Parameters
    ----------
    expectile : float
    arm : object
    level : float, optional
        The old name of `expectile`.

    Examples
    --------
    >>> from orthocal import ExpectileUnderTreatment, assess, orthogonal_loss
    >>> from orthocal.datasets import simulate_quantile
    >>> data = simulate_quantile(n=2000, random_state=0)  # the expectile 0.5 of a normal outcome is its mean
    >>> loss = orthogonal_loss(
    ...     ExpectileUnderTreatment(0.5), data.X, data.y, treatment=data.treatment, prediction=data.effect, random_state=0
    ... )
    >>> assess(data.effect + 1, loss, random_state=0).status
    'miscalibrated'
    """

    equivariance: ClassVar[Equivariance] = LOCATION
    words: ClassVar[Words] = Words(
        "The expectile of the outcome under the arm among people with the same covariates.",
        "expectile loss with inverse propensity weights, corrected by (1{arm}/pi - 1) times the mean score at the value judged",
    )
    expectile: float = 0.5
    arm: Any = 1
    level: InitVar[float | None] = field(default=None, kw_only=True)

    def __post_init__(self, level: float | None) -> None:
        if level is not None:
            warn_of_old_name("ExpectileUnderTreatment(level=)", "ExpectileUnderTreatment(expectile=)")
            object.__setattr__(self, "expectile", level)

    def strata(self, observations: Observations) -> Labels:
        """In the arm or not."""
        return np.asarray(observations.treatment == self.arm)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity of the arm, and the distribution of the outcome in it."""
        require_inside(self.expectile, 0, 1, "expectile")
        require_levels(observations.treatment, ("arm", self.arm))
        got = np.asarray(observations.treatment == self.arm)
        return [propensity_nuisance(got), distribution_nuisance(observations.outcome, got)]

    def sums(self, observations: Observations, fitted: Fitted) -> dict[str, Floats]:
        """What normalises the inverse propensities."""
        return {"hajek": hajek_sums((observations.treatment == self.arm) / fitted["propensity"], observations, fitted)}

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Corrected expectile loss at the prediction; an array given for `below` is the mean score at that value."""
        level = level_judged(observations, "expectile")
        got, pi, weight = observations.treatment == self.arm, fitted["propensity"], observations.weight
        slope = weight * hajek(got / pi, observations, fitted)
        below = fitted["below"]
        fixed = isinstance(below, np.ndarray)
        loss = ExpectileLoss(
            observations.outcome,
            slope,
            (slope - weight) * below if fixed else np.zeros(len(weight)),
            weight=weight,
            groups=observations.groups,
            overlap=overlap_of({"arm": (got, pi)}, fitted, weight),
            expectile=self.expectile,
            distribution=None if fixed else below,
        )
        return loss.at(level)
