"""The conditional value at risk under treatment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.effects.arms import doubly_robust_mean, overlap_of, propensity_nuisance, require_levels
from orthocal.effects.description import LOCATION, Equivariance, Words
from orthocal.errors import require_inside, warn_of_old_name
from orthocal.losses import Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.nuisances.conditional_distribution import TailModel
from orthocal.observations import Observations


@dataclass(frozen=True)
class CVaRUnderTreatment:
    r"""The mean of the worst (largest) outcomes under one arm: :math:`E[Y(\text{arm}) \mid Y(\text{arm}) \ge q_Q(x), X = x]`.

    Squared loss on :math:`h + \frac{1\{a\}}{\pi}(H(q; y) - h)` with :math:`H(q; y) = q + (y - q)_+/(1-Q)`, q the conditional
    quantile and h the mean of H. Universally orthogonal in all three (mathematics 3.9). Assumptions as for the CATE.

    An error in the conditional quantile, of whatever sign, adds to the answer, to second order. The quantile is therefore learnt
    twice, on either half of the rows, and what its random error adds is taken off (`tail_value`). The outcome must have a
    density near the quantile: where it has an atom there, such as the many zeros of amounts spent, an error adds in first order.

    Parameters
    ----------
    tail : float
        1 - Q: 0.1 is the mean of the largest tenth.
    arm : object
    level : float, optional
        The old name of 1 - `tail`.

    Examples
    --------
    >>> from orthocal import CVaRUnderTreatment, orthogonal_loss
    >>> from orthocal.datasets import simulate_quantile
    >>> data = simulate_quantile(n=4000, random_state=0)
    >>> mean, deviation = data.nuisances["mean"], data.nuisances["deviation"]
    >>> known = {
    ...     "propensity": data.nuisances["propensity"],
    ...     "tail_quantile": mean + 1.2816 * deviation,
    ...     "tail_mean": mean + 1.755 * deviation,
    ... }
    >>> loss = orthogonal_loss(CVaRUnderTreatment(tail=0.1), data.X, data.y, treatment=data.treatment, nuisances=known)
    >>> bool(abs(loss.target.mean() - known["tail_mean"].mean()) < 0.1)
    True
    """

    equivariance: ClassVar[Equivariance] = LOCATION
    words: ClassVar[Words] = Words(
        "The mean of the largest outcomes under the arm, those beyond their conditional quantile.",
        "squared loss on h + 1{arm}/pi (H - h), H = q + (y - q)_+ / (1 - Q), q the conditional quantile, h the mean of H",
    )
    tail: float = field(default=0.1, kw_only=True)
    arm: Any = field(default=1, kw_only=True)
    level: InitVar[float | None] = field(default=None, kw_only=True)

    def __post_init__(self, level: float | None) -> None:
        if level is not None:
            warn_of_old_name(f"CVaRUnderTreatment(level={level})", f"CVaRUnderTreatment(tail={1 - level:.4g})")
            object.__setattr__(self, "tail", round(1 - level, 12))

    def strata(self, observations: Observations) -> Labels:
        """In the arm or not."""
        return np.asarray(observations.treatment == self.arm)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity of the arm; quantile, tail mean and how far two quantiles are apart, all from one model."""
        require_inside(self.tail, 0, 1, "tail")
        require_levels(observations.treatment, ("arm", self.arm))
        got = np.asarray(observations.treatment == self.arm)
        tail = Nuisance(
            "tail",
            "outcome",
            observations.outcome,
            got,
            wrap=partial(TailModel, level=1 - self.tail),
            outputs=("tail_quantile", "tail_mean"),
            extras=("tail_difference",),
        )
        return [propensity_nuisance(got), tail]

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the pseudo-outcome."""
        got, pi, weight = observations.treatment == self.arm, fitted["propensity"], observations.weight
        difference = fitted.values.get("tail_difference", 0.0)  # none between quantiles that are known
        tail = tail_value(observations.outcome, fitted["tail_quantile"], 1 - self.tail, difference)
        chi = doubly_robust_mean(tail, got, pi, fitted["tail_mean"])
        return QuadraticLoss(
            weight * chi, weight, weight, observations.groups, overlap_of({"arm": (got, pi)}, fitted, weight)
        )

    def reach(self, nuisances: Mapping[str, Floats], low: float, high: float) -> tuple[Floats, float]:
        """Return the width of each row's pseudo-outcome over treatments and outcomes within `low` and `high`; of the effect."""
        h, pi, q = nuisances["tail_mean"], nuisances["propensity"], nuisances["tail_quantile"]
        least, most = (tail_value(np.full(len(q), y), q, 1 - self.tail) for y in (low, high))
        taken_off = np.abs(nuisances.get("tail_difference", 0.0 * q)) / (8 * self.tail)
        values = [h, h + (least - taken_off - h) / pi, h + (most - h) / pi]
        return np.asarray(np.ptp(values, axis=0)), high - low


def tail_value(y: Floats, q: Floats, level: float, difference: Floats | float = 0.0) -> Floats:
    r""":math:`H(q; y) = q + (y - q)_+/(1-Q)`, less what the error of q adds to its mean.

    :math:`E[H(q; Y)]` is least at the true quantile, so an error :math:`\delta` of q adds
    :math:`\tfrac12 k \delta^2, k = f(q)/(1-Q)`, whatever its sign. With q the mean of two quantiles :math:`q_1, q_2` whose errors
    are independent, :math:`\delta^2 - (q_1 - q_2)^2/4 = \delta_1\delta_2` has mean 0 but for what is wrong with both, and
    :math:`(1\{y \le q_1\} - 1\{y \le q_2\})(q_1 - q_2)/(1-Q)` has mean :math:`k (q_1 - q_2)^2`: an eighth of it is taken off.
    """
    between = (y <= q + difference / 2).astype(float) - (y <= q - difference / 2)
    return q + (np.maximum(y - q, 0) - between * difference / 8) / (1 - level)
