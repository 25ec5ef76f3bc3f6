"""The largest and the smallest effect that unmeasured confounding of a stated strength allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Booleans, Floats, Labels
from orthocal.effects.arms import (
    both_propensities,
    is_binary,
    outcome_nuisance,
    overlap_of,
    propensities,
    require_levels,
    strata_of,
)
from orthocal.effects.description import DIFFERENCE, Equivariance, Words
from orthocal.errors import OrthocalError, require_one_of
from orthocal.losses import Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.nuisances.outcome_tails import OutcomeTails, Tail, binary_tail
from orthocal.observations import Observations

SIDES = {"upper": 1, "lower": -1}
"""Which end of the interval, and the sign of the tail of the treated that gives it; that of controls is the other."""


@dataclass(frozen=True)
class BoundedCATE:
    r"""An end of the interval in which the CATE lies if unmeasured confounding is at most of strength :math:`\Lambda`.

    Marginal sensitivity model: whatever was not measured changes nobody's odds of treatment, given the covariates, by more than
    the factor :math:`\Lambda`. The ends are sharp, and squared loss on the pseudo-outcome of Dorn, Guo and Kallus (2024) is
    orthogonal in propensity, quantiles and means (mathematics 3.15). A wrong quantile makes the interval wider, never narrower.

    Parameters
    ----------
    strength : float
        :math:`\Lambda \ge 1`; at 1 both ends are the CATE.
    side : "upper" or "lower"
    arm, control : object
        The two values of the treatment that are compared.

    Examples
    --------
    >>> from orthocal import BoundedCATE, assess, orthogonal_loss
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=2000, random_state=0)
    >>> ends = [
    ...     orthogonal_loss(BoundedCATE(1.5, side), data.X, data.y, treatment=data.treatment, random_state=0)
    ...     for side in ("lower", "upper")
    ... ]
    >>> bool(ends[0].target.mean() < data.effect.mean() < ends[1].target.mean())
    True
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The largest (smallest) effect among people with the same covariates under unmeasured confounding of this strength.",
        "squared loss on psi1 - psi0, psi = 1{arm} y + 1{not arm} rho + 1{arm} (1 - pi)/pi (H - rho), H = y/L + (1 - 1/L) T, T "
        "the mean beyond the quantile at L/(L + 1), rho the mean of H",
        "Whatever was not measured changes nobody's odds of treatment by more than the factor L, and everyone could have had "
        "either arm.",
    )
    strength: float = 2.0
    side: str = "upper"
    arm: Any = 1
    control: Any = 0

    def __post_init__(self) -> None:
        require_one_of(self.side, SIDES, "side")
        if not 1 <= self.strength < np.inf:
            raise OrthocalError(
                f"`strength` must be a factor by which odds of treatment change, 1 or more; it is {self.strength}."
            )

    @property
    def tails(self) -> dict[str, Tail]:
        """The tail of each arm that the end rests on: 1/(1 + strength) of its outcomes."""
        share, side = 1 / (1 + self.strength), SIDES[self.side]
        return {"treated": Tail(share, side), "control": Tail(share, -side)}

    def strata(self, observations: Observations) -> Labels:
        """Arm, control and the rest."""
        return strata_of(observations.treatment, self.arm, self.control)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Those of the CATE, and of each arm the quantile and the mean of a tail; a binary outcome's follow from its mean."""
        treatment, y = observations.treatment, observations.outcome
        require_levels(treatment, ("arm", self.arm), ("control", self.control))
        got = {"control": treatment == self.control, "treated": treatment == self.arm}
        means = [outcome_nuisance(f"outcome_{name}", y, rows) for name, rows in got.items()]
        tails = (
            [] if is_binary(y) else [tails_nuisance(name, y, rows, [self.tails[name]]) for name, rows in got.items()]
        )
        return [*propensities(got["treated"], got["control"]), *means, *tails]

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the difference of two pseudo-outcomes."""
        got = {"treated": observations.treatment == self.arm, "control": observations.treatment == self.control}
        pi = dict(zip(got, both_propensities(fitted), strict=True))
        ends = {
            name: sharp_mean(
                observations.outcome,
                rows,
                pi[name],
                fitted[f"outcome_{name}"],
                tail_parts(fitted.values, name, self.tails[name]),
                self.tails[name],
            )
            for name, rows in got.items()
        }
        weight = observations.weight
        overlap = overlap_of({name: (rows, pi[name]) for name, rows in got.items()}, fitted, weight)
        chi = ends["treated"] - ends["control"]
        return QuadraticLoss(weight * chi, weight, weight, observations.groups, overlap)


def tails_nuisance(name: str, y: Floats, rows: Booleans, tails: list[Tail]) -> Nuisance:
    """Return the tails of one arm: a quantile and a mean each, numbered where there are several."""
    marks = [""] if len(tails) == 1 else [f"_{place}" for place in range(len(tails))]
    return Nuisance(
        f"tails_{name}",
        "outcome",
        y,
        rows,
        wrap=partial(OutcomeTails, tails=tuple(tails)),
        outputs=tuple(f"{kind}_{name}{mark}" for mark in marks for kind in ("quantile", "tail")),
    )


def tail_parts(values: Mapping[str, Any], name: str, tail: Tail) -> tuple[Floats, Floats]:
    """Return the quantile and the tail mean of an arm; those of a binary outcome follow from its mean."""
    if f"quantile_{name}" in values:
        return values[f"quantile_{name}"], values[f"tail_{name}"]
    return binary_tail(values[f"outcome_{name}"], tail)


def sharp_mean(y: Floats, got: Booleans, pi: Floats, mu: Floats, parts: tuple[Floats, Floats], tail: Tail) -> Floats:
    r"""Pseudo-outcome of the largest (smallest) mean outcome under one arm (Dorn, Guo and Kallus 2024).

    .. math:: \psi = 1\{got\}\,y + 1\{not\}\,\rho + 1\{got\}\frac{1 - \pi}{\pi}(H - \rho), \quad
              H = \frac{y}{\Lambda} + \Big(1 - \frac1\Lambda\Big)\Big[q \pm \frac{(\pm(y - q))_+}{1 - \kappa}\Big]

    with :math:`\kappa = \Lambda/(\Lambda + 1)`, so that the tail's share is :math:`1 - \kappa = 1/(1 + \Lambda)`, q the quantile
    of the outcomes of those who got it, and :math:`\rho = \mu/\Lambda + (1 - 1/\Lambda) h` the mean of H.
    """
    quantile, beyond = parts
    rest = tail.share / (1 - tail.share)  # 1 / strength
    worst = quantile + tail.side * np.maximum(tail.side * (y - quantile), 0) / tail.share
    value, mean = rest * y + (1 - rest) * worst, rest * mu + (1 - rest) * beyond
    return np.asarray(np.where(got, y + (1 - pi) / pi * (value - mean), mean))
