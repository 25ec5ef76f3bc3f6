"""The conditional quantile under treatment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Booleans, Floats, Labels
from orthocal.distributions import FunctionDistribution, TableDistribution
from orthocal.effects.arms import hajek, hajek_sums, overlap_of, propensity_nuisance, require_levels
from orthocal.effects.description import LOCATION, Equivariance, Words
from orthocal.errors import OrthocalError, require_inside
from orthocal.formats import shown
from orthocal.losses import HingeLoss, Loss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.nuisances.conditional_distribution import ConditionalDistribution
from orthocal.nuisances.learners import DISTRIBUTION_SETTINGS
from orthocal.observations import Observations

LEVELS = 41
"""At how many quantiles of the arm's outcomes a conditional distribution is tabulated."""
OUTSIDE = 4
"""At how many levels beyond either end of the outcomes a distribution that is given is asked."""


@dataclass(frozen=True)
class QuantileUnderTreatment:
    r"""The quantile :math:`\theta_0(x)` of the outcome under one arm: :math:`P(Y(\text{arm}) \le \theta_0(x) \mid X = x) = Q`.

    The loss is pinball loss with inverse propensity weights and a correction (mathematics 3.10; paper, equation of QUT). It is
    orthogonal at the value where its nuisance F(value | x) is taken, so `prediction` must be given from the start; the
    conditional distribution is learnt once, and `loss.at(prediction)` moves that value. Arms are calibrated one at a time: a
    difference of two calibrated quantiles is not itself calibrated (mathematics 12.15). Assumptions as for the CATE.

    Parameters
    ----------
    quantile : float
    arm : object

    Examples
    --------
    >>> from orthocal import QuantileUnderTreatment, assess, orthogonal_loss
    >>> from orthocal.datasets import simulate_quantile
    >>> data = simulate_quantile(n=2000, quantile=0.9, random_state=0)
    >>> loss = orthogonal_loss(
    ...     QuantileUnderTreatment(0.9), data.X, data.y, treatment=data.treatment, prediction=data.effect, random_state=0
    ... )
    >>> verdict = assess(data.effect - 1, loss, random_state=0)
    >>> verdict.status, verdict.unit
    ('miscalibrated', 'probability')
    """

    equivariance: ClassVar[Equivariance] = LOCATION
    words: ClassVar[Words] = Words(
        "The quantile of the outcome under the arm among people with the same covariates: the share Q of outcomes lies below it.",
        "pinball loss with weights 1{arm}/pi, corrected by (1{arm}/pi - 1) (F - Q) v, F the share of outcomes below",
    )
    quantile: float = 0.5
    arm: Any = 1

    def strata(self, observations: Observations) -> Labels:
        """In the arm or not."""
        return np.asarray(observations.treatment == self.arm)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity of the arm, and the distribution of the outcome in it."""
        require_inside(self.quantile, 0, 1, "quantile")
        require_levels(observations.treatment, ("arm", self.arm))
        got = np.asarray(observations.treatment == self.arm)
        return [propensity_nuisance(got), distribution_nuisance(observations.outcome, got)]

    def sums(self, observations: Observations, fitted: Fitted) -> dict[str, Floats]:
        """What normalises the inverse propensities."""
        return {"hajek": hajek_sums((observations.treatment == self.arm) / fitted["propensity"], observations, fitted)}

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Corrected pinball loss at the prediction."""
        level = level_judged(observations, "quantile")
        got, pi, weight = observations.treatment == self.arm, fitted["propensity"], observations.weight
        slope = weight * hajek(got / pi, observations, fitted)
        below, distribution = fitted["below"], fitted["below"]
        if isinstance(below, np.ndarray):  # known at one level only
            distribution, tilt = None, corrected_tilt(self.quantile, slope, weight, below)
        else:
            tilt = np.zeros(len(weight))
        overlap = overlap_of({"arm": (got, pi)}, fitted, weight)
        loss = HingeLoss(
            observations.outcome,
            slope,
            tilt,
            weight=weight,
            groups=observations.groups,
            overlap=overlap,
            quantile=self.quantile,
            distribution=distribution,
        )
        return loss.at(level)


def corrected_tilt(quantile: float, slope: Floats, weight: Floats, below: Floats) -> Floats:
    r""":math:`t = \omega Q + (s - \omega) f` (mathematics 3.10)."""
    return weight * quantile + (slope - weight) * below


def distribution_nuisance(outcome: Floats, got: Booleans) -> Nuisance:
    """Return the conditional distribution of the outcome in an arm, tabulated at quantiles of the arm's outcomes.

    The quantiles are outcomes that occur: one computed between two could be rounded to either side in another unit.
    """
    levels = quantile_levels(outcome[got])
    if len(levels) == 1:
        levels = np.array([levels[0] - 1e-9 * max(abs(levels[0]), 1.0), levels[0]])
    return Nuisance(
        "below",
        "below",
        outcome,
        got,
        is_probability=True,
        wrap=partial(ConditionalDistribution, levels=levels),
        settings=DISTRIBUTION_SETTINGS,
        finish=partial(TableDistribution, levels),
        call=lambda function, X: FunctionDistribution(function, X, widened(levels)),
    )


def quantile_levels(outcome: Floats) -> Floats:
    """Return quantiles of the outcome, closer to each other towards the ends.

    A distribution is linear between levels. With even probabilities the outer cells reach far into the tails, and the mean excess
    there, on which expectiles depend, comes out too large, the more so the more rows there are.
    """
    probability = (1 - np.cos(np.linspace(0, np.pi, LEVELS))) / 2
    return np.unique(np.quantile(outcome, probability, method="inverted_cdf"))


def widened(levels: Floats) -> Floats:
    """Return the levels and some beyond either end: a distribution that is known does not stop where the outcomes seen do."""
    reach = float(levels[-1] - levels[0]) / 2 or 1e-9 * max(abs(float(levels[0])), 1.0)
    beyond = reach * np.arange(1, OUTSIDE + 1) / OUTSIDE
    return np.concatenate([levels[0] - beyond[::-1], levels, levels[-1] + beyond])


def level_judged(observations: Observations, name: str) -> Floats:
    """Return the prediction, at whose level the nuisance is taken."""
    if observations.prediction is None:
        raise OrthocalError(
            f"Effect {shown(name)} must have a `prediction` before its loss can be built: a nuisance is taken at the "
            "predicted value. Pass prediction=..."
        )
    return observations.prediction
