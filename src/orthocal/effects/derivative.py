"""The average causal derivative of a continuous treatment."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from orthocal.effects.equivariance import DIFFERENCE, Equivariance
from orthocal.effects.words import Words
from orthocal.errors import OrthocalError, OverlapWarning, require_at_least, require_one_of
from orthocal.losses import QuadraticLoss
from orthocal.nuisances import Nuisance
from orthocal.nuisances.derivatives import GaussianCorrection, RieszCorrection, ShiftCorrection, WithDerivative

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Labels
    from orthocal.losses import Loss
    from orthocal.nuisances import Fitted
    from orthocal.observations import Observations

CORRECTIONS: dict[str, Any] = {"gaussian": GaussianCorrection, "shift": ShiftCorrection, "riesz": RieszCorrection}
CLASSIFIED = {"shift"}
FEWEST_LEVELS = 20
DEFAULT_STEP = 0.25
"""Step of the difference quotient, in standard deviations of the treatment."""
END_SHARE, MOST_AT_END = 0.05, 0.025
"""A twentieth of the treatment's range at either end should hold less than half of what an even spread would."""


@dataclass(frozen=True)
class CausalDerivative:
    r"""The average derivative :math:`\theta_0(x) = E[\partial_a \mu_0(A, x) \mid X = x]`: what a little more treatment does.

    Needs ignorability, an outcome smooth in the treatment, and a treatment whose density vanishes at the ends of its range
    (MATH 3, erratum E2); otherwise integration by parts leaves boundary terms, of which you are warned. The derivative is a
    symmetric difference quotient of width 2 `step`, for which the loss is exactly orthogonal.

    Parameters
    ----------
    correction : {"shift", "gaussian", "riesz"}
        How the treatment's law enters. ``"shift"``: a classifier tells moved rows from unmoved ones; any law, and the smallest
        errors in benchmarks/derivative.md. ``"gaussian"``: mean and variance of the treatment are learnt. ``"riesz"``:
        regression on a basis; no learner.
    step : float, optional
        Half the width of the difference quotient; a quarter of the treatment's standard deviation by default.

    Examples
    --------
    >>> CausalDerivative()
    CausalDerivative(correction='shift', step=None)
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The average change of the outcome for a little more treatment among people alike in the covariates.",
        "squared loss on chi = d mu/da + zeta (y - mu), zeta the correction for the law of the treatment",
        "Treatment is as good as random among people alike in the covariates, and its density vanishes at the ends of its range.",
    )
    correction: str = "shift"
    step: float | None = None

    def strata(self, observations: Observations) -> Labels:
        """None: the treatment is continuous."""
        return np.zeros(len(observations), dtype=np.int64)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Outcome with its derivative, and the correction, all of (covariates, treatment)."""
        require_one_of(self.correction, CORRECTIONS, "correction")
        treatment = self._treatment(observations)
        step = DEFAULT_STEP * float(treatment.std()) if self.step is None else self.step
        require_at_least(step, 1e-12, "step")
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
                wrap=partial(WithDerivative, step=step),
                outputs=("outcome", "outcome_derivative"),
                call=call,
            ),
            Nuisance(
                "score_correction",
                "treatment",
                treatment,
                features=features,
                wrap=partial(CORRECTIONS[self.correction], step=step),
                is_probability=self.correction in CLASSIFIED,
                call=call,
            ),
        ]

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the pseudo-outcome."""
        chi = derivative_pseudo_outcome(
            observations.outcome, fitted["outcome"], fitted["outcome_derivative"], fitted["score_correction"]
        )
        weight = observations.weight
        return QuadraticLoss(weight * chi, weight, weight, observations.groups)

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
    r""":math:`\chi = \partial_a\mu + \zeta(y - \mu)` with :math:`\zeta_0 = -\partial_a\pi/\pi` (MATH 3; erratum E1)."""
    return derivative + zeta * (y - mu)


def _warn_at_the_ends(treatment: Floats) -> None:
    low, high = float(treatment.min()), float(treatment.max())
    width = END_SHARE * (high - low)
    shares = {"lower": float(np.mean(treatment < low + width)), "upper": float(np.mean(treatment > high - width))}
    for end, share in shares.items():
        if share > MOST_AT_END:
            warnings.warn(
                f"{share:.1%} of rows lie in the {end} {END_SHARE:.0%} of the treatment's range: its density does not vanish at "
                "that end, so the derivative's estimate has a boundary term. Drop the ends, or compare levels by effect='cate'.",
                OverlapWarning,
                stacklevel=3,
            )
