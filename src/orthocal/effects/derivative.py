"""The average causal derivative of a continuous treatment."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.effects.description import DIFFERENCE, Equivariance, Words
from orthocal.errors import OrthocalError, OverlapWarning, require_one_of
from orthocal.losses import Balance, Loss, Overlap, QuadraticLoss, balance_of
from orthocal.nuisances import Fitted, Nuisance
from orthocal.nuisances.corrections import Balanced, GaussianCorrection, RieszCorrection, ShiftCorrection
from orthocal.nuisances.derivatives import WithDerivative
from orthocal.observations import Observations

CORRECTIONS: dict[str, Any] = {"gaussian": GaussianCorrection, "shift": ShiftCorrection, "riesz": RieszCorrection}
CLASSIFIED = {"shift"}
FEWEST_LEVELS = 20
MOST_OFF, CHANCES = 0.1, 3.0
"""Of the balance of the treatment: a gap that deserves a warning, where it is also so many standard errors."""
END_SHARE, MOST_AT_END = 0.05, 0.025
"""A twentieth of the treatment's range at either end should hold less than half of what an even spread would."""


@dataclass(frozen=True)
class CausalDerivative:
    r"""The average derivative :math:`\theta_0(x) = E[\partial_a \mu_0(A, x) \mid X = x]`: what a little more treatment does.

    Needs ignorability, an outcome smooth in the treatment, and a treatment whose density vanishes at the ends of its range
    (mathematics 3.4, 12.2); otherwise integration by parts leaves boundary terms, of which you are warned. The derivative is a
    symmetric difference quotient of width 2 `step`, for which the loss is exactly orthogonal.

    Parameters
    ----------
    correction : {"gaussian", "shift", "riesz"}
        How the distribution of the treatment enters. ``"gaussian"``: mean and variance of the treatment given covariates are
        learnt. ``"shift"``: a classifier distinguishes moved rows from unmoved ones. ``"riesz"``: powers of what a ridge
        regression leaves of the treatment; no learner. Each is combined with a basis so that it balances the treatment,
        covariates and their products; how well is in ``Overlap.balance``.
    step : float, optional
        Half the width of the difference quotient; by default a quarter of the standard deviation of what covariates leave of the
        treatment.

    Examples
    --------
    >>> CausalDerivative()
    CausalDerivative(correction='gaussian', step=None)
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The average change of the outcome for a little more treatment among people with the same covariates.",
        "squared loss on chi = d mu/da + zeta (y - mu), zeta the balanced correction for the distribution of the treatment",
        "Treatment is as good as random among people with the same covariates, and its density is 0 at the ends of its range.",
    )
    correction: str = "gaussian"
    step: float | None = None

    def strata(self, observations: Observations) -> Labels:
        """None: the treatment is continuous."""
        return np.zeros(len(observations), dtype=np.int64)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Outcome with its derivative, and the correction, all of (covariates, treatment)."""
        require_one_of(self.correction, CORRECTIONS, "correction")
        treatment = self._treatment(observations)
        if self.step is not None and not self.step > 0:
            raise OrthocalError(f"`step` must be positive; it is {self.step}. Leave it out to have it chosen.")
        _warn_at_the_ends(treatment)
        features = np.column_stack([observations.covariates, treatment])

        def call(function: Any, X: Any) -> Any:
            return function(X, treatment)

        return [
            Nuisance(
                "outcome",
                "outcome",
                observations.outcome,
                features=features,
                wrap=partial(WithDerivative, step=self.step),
                outputs=("outcome", "outcome_derivative"),
                call=call,
            ),
            Nuisance(
                "score_correction",
                "treatment",
                treatment,
                features=features,
                wrap=partial(_balanced, CORRECTIONS[self.correction], self.step),
                is_probability=self.correction in CLASSIFIED,
                call=call,
            ),
        ]

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the pseudo-outcome."""
        chi = derivative_pseudo_outcome(
            observations.outcome, fitted["outcome"], fitted["outcome_derivative"], fitted["score_correction"]
        )
        weight, treatment, zeta = observations.weight, observations.treatment.astype(float), fitted["score_correction"]
        balance = balance_of(observations.covariates, treatment, zeta, weight)
        if not fitted.is_part:
            warn_if_unbalanced(balance)
        overlap = Overlap(fitted.clip, {}, {}, weight, balance=balance)
        return QuadraticLoss(weight * chi, weight, weight, observations.groups, overlap)

    def _treatment(self, observations: Observations) -> Floats:
        if observations.treatment.dtype.kind not in "fiu":
            raise OrthocalError(
                "The treatment must be a number for a derivative. Use effect='cate' with arm and control."
            )
        treatment = observations.treatment.astype(float)
        distinct = len(np.unique(treatment))
        if distinct < FEWEST_LEVELS:
            raise OrthocalError(
                f"The treatment must be continuous for a derivative; it has {distinct} distinct values. "
                "Use effect='cate' with CATE(arm=..., control=...)."
            )
        return treatment


def derivative_pseudo_outcome(y: Floats, mu: Floats, derivative: Floats, zeta: Floats) -> Floats:
    r""":math:`\chi = \partial_a\mu + \zeta(y - \mu)` with :math:`\zeta_0 = -\partial_a\pi/\pi` (mathematics 3.4, 12.1)."""
    return derivative + zeta * (y - mu)


def warn_if_unbalanced(balance: Balance | None) -> None:
    """Say where the correction is off by more than a tenth, and by more than chance explains."""
    off = 0.0 if balance is None else abs(balance.treatment - 1)
    if balance is not None and off > max(MOST_OFF, CHANCES * balance.chance):
        warnings.warn(
            f"The mean of `score_correction` times the treatment must be 1; it is {balance.treatment:.2f}. Whatever the "
            "outcome's regression misses stays in the effect. Use more rows, fewer covariates or another correction.",
            OverlapWarning,
            stacklevel=3,
        )


def _balanced(correction: Any, step: float | None, learner: Any) -> Balanced:
    return Balanced(correction(learner), step)


def _warn_at_the_ends(treatment: Floats) -> None:
    low, high = float(treatment.min()), float(treatment.max())
    width = END_SHARE * (high - low)
    shares = {"lower": float(np.mean(treatment < low + width)), "upper": float(np.mean(treatment > high - width))}
    for end, share in shares.items():
        if share > MOST_AT_END:
            warnings.warn(
                f"{share:.1%} of rows lie in the {end} {END_SHARE:.0%} of the treatment's range: its density does not vanish at "
                "that end, so the derivative's estimate has a boundary term. Drop the ends, or compare values by effect='cate'.",
                OverlapWarning,
                stacklevel=3,
            )
