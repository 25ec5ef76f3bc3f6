"""The effect of a treatment moved by an instrument."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.effects.arms import outcome_nuisance, overlap_of, propensity_nuisance, require_binary
from orthocal.effects.description import DIFFERENCE, Equivariance, Words
from orthocal.errors import OrthocalError, OverlapWarning, require_inside, require_one_of
from orthocal.losses import Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations

MOST_WEAK = 0.05
"""Share of rows with a weak first stage above which a warning is due."""
TARGETS = ("population", "compliers")


@dataclass(frozen=True)
class LATE:
    r"""The local average treatment effect :math:`\tau(x) = E[Y(1) - Y(0) \mid A(1) > A(0), X = x]` of an instrument.

    Needs an instrument as good as random given covariates, that moves the outcome through the treatment only (exclusion) and
    treatment in one direction only (monotonicity). Treatment and instrument 0 or 1.

    Parameters
    ----------
    target : {"population", "compliers"}
        Which average is meant on a level set of the prediction. ``"population"``: :math:`E[\tau(X) \mid \cdot]`, everybody
        counts alike (mathematics 3.2). ``"compliers"``: :math:`E[q\tau \mid \cdot]/E[q \mid \cdot]` with
        :math:`q` the share of compliers, the effect on the people the instrument moves; never divides by :math:`q`, so the
        choice with weak instruments. They differ where :math:`\tau` and :math:`q` vary together: with half the people at
        :math:`\tau = 0, q = 0.8` and half at :math:`\tau = 1, q = 0.2` the answers are 0.5 and 0.2.
    min_first_stage : float
        ``"population"`` divides by :math:`q`, which is kept this far on the side of 0 where its mean is: monotonicity fixes
        the sign of the first stage. Where :math:`q` is moved the answer falls back on the average effect of compliers.

    Examples
    --------
    >>> LATE(target="compliers")
    LATE(target='compliers', min_first_stage=0.05)
    """

    equivariance: ClassVar[Equivariance] = DIFFERENCE
    words: ClassVar[Words] = Words(
        "The average effect of treatment on compliers with the same covariates: those whom the instrument moves.",
        "psi_V = E[V|z=1,x] - E[V|z=0,x] + (z/pi - (1-z)/(1-pi)) (V - E[V|z,x]) for V = Y and A; population: squared loss on "
        "chi = tau + (psi_Y - tau psi_A)/q with q the share of compliers; compliers: ratio loss psi_Y over psi_A",
        "The instrument is as good as random among people with the same covariates, moves the outcome through treatment only, "
        "and moves treatment in one direction only.",
    )
    target: str = "population"
    min_first_stage: float = 0.05

    def strata(self, observations: Observations) -> Labels:
        """The instrument."""
        return self._instrument(observations)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity of the instrument; outcome and treatment without and with it.

        When nobody is treated without the instrument, `treatment_z0` is 0 exactly and is not learnt; likewise at 1.
        """
        require_one_of(self.target, TARGETS, "target")
        require_inside(self.min_first_stage, 0, 1, "min_first_stage")
        z, a = self._instrument(observations), observations.treatment
        require_binary(z, "instrument")
        require_binary(a, "treatment")
        without, has = z == 0, z == 1
        taken = a.astype(float)
        return [
            propensity_nuisance(has, "instrument_propensity"),
            outcome_nuisance("outcome_z0", observations.outcome, without),
            outcome_nuisance("outcome_z1", observations.outcome, has),
            Nuisance("treatment_z0", "treatment", taken, without, is_probability=True),
            Nuisance("treatment_z1", "treatment", taken, has, is_probability=True),
        ]

    def sums(self, observations: Observations, fitted: Fitted) -> dict[str, Floats]:
        """What the average effect of all rows is made of."""
        psi_y, psi_a = self._contrasts(observations, fitted)
        return {"average": np.array([observations.weight @ psi_y, observations.weight @ psi_a])}

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the pseudo-outcome, or the ratio loss of compliers."""
        has, weight = self._instrument(observations) == 1, observations.weight
        pi, q = fitted["instrument_propensity"], fitted["treatment_z1"] - fitted["treatment_z0"]
        psi_y, psi_a = self._contrasts(observations, fitted)
        above, below = fitted.sums.get("average", (weight @ psi_y, weight @ psi_a))
        if below == 0:
            raise OrthocalError(
                "The instrument must move the treatment; its estimated effect on it is 0. Use another instrument, or more data."
            )
        sign = -1.0 if below < 0 else 1.0
        weak = float(np.mean(sign * q < self.min_first_stage))
        notes = _first_stage(psi_a, weight, weak, self.min_first_stage, observations)
        overlap = overlap_of(
            {"with instrument": (has, pi), "without instrument": (~has, 1 - pi)}, fitted, weight, notes
        )
        if self.target == "compliers":
            return QuadraticLoss(weight * psi_y, weight * psi_a, weight, observations.groups, overlap, is_ratio=True)
        if not fitted.is_part:
            self._warn_if_weak(weak, notes)
        p = fitted["outcome_z1"] - fitted["outcome_z0"]
        tau, divisor = effect_and_divisor(p, q, float(above / below), sign * self.min_first_stage)
        chi = late_pseudo_outcome(psi_y, psi_a, tau, divisor)
        return QuadraticLoss(weight * chi, weight, weight, observations.groups, overlap)

    def _contrasts(self, observations: Observations, fitted: Fitted) -> tuple[Floats, Floats]:
        """The doubly robust contrast of outcome and of treatment between the values of the instrument, for each row."""
        has, pi = self._instrument(observations) == 1, fitted["instrument_propensity"]
        taken = observations.treatment.astype(float)
        return (
            arm_contrast(observations.outcome, has, pi, fitted["outcome_z1"], fitted["outcome_z0"]),
            arm_contrast(taken, has, pi, fitted["treatment_z1"], fitted["treatment_z0"]),
        )

    def _instrument(self, observations: Observations) -> Labels:
        if observations.instrument is None:
            raise OrthocalError("Effect 'late' must have an `instrument`; none was given. Pass instrument=...")
        return observations.instrument

    def _warn_if_weak(self, weak: float, notes: tuple[str, ...]) -> None:
        if weak > MOST_WEAK:
            warnings.warn(
                f"The instrument moves fewer than {self.min_first_stage:.0%} of people in {weak:.1%} of rows ({notes[0]}): "
                "their effect falls back on the average one. Use LATE(target='compliers').",
                OverlapWarning,
                stacklevel=3,
            )


def arm_contrast(value: Floats, has: Labels, pi: Floats, with_: Floats, without: Floats) -> Floats:
    r""":math:`\psi = m_1 - m_0 + H(v - m_z)`, :math:`H = z/\pi - (1-z)/(1-\pi)` (mathematics 3.2)."""
    return with_ - without + np.where(has, (value - with_) / pi, -(value - without) / (1 - pi))


def effect_and_divisor(p: Floats, q: Floats, average: float, least: float) -> tuple[Floats, Floats]:
    """Return the plug-in effect p / q, and q beyond `least`, whose sign is that of the mean first stage.

    A fitted q on the other side of 0 contradicts monotonicity: it is as weak as one of 0, and is moved, not believed. Where q is
    moved the effect is the average, not p / q (mathematics 3.2).
    """
    strong = q * np.sign(least) >= abs(least)
    return np.where(strong, p / np.where(strong, q, 1.0), average), np.where(strong, q, least)


def late_pseudo_outcome(psi_y: Floats, psi_a: Floats, tau: Floats, q: Floats) -> Floats:
    r""":math:`\chi = \tau + (\psi_Y - \tau\psi_A)/q` (mathematics 3.2, 12.4)."""
    return tau + (psi_y - tau * psi_a) / q


def _first_stage(
    psi_a: Floats, weight: Floats, weak: float, least: float, observations: Observations
) -> tuple[str, ...]:
    """Strength of the instrument in words: share of compliers, its F statistic, weak rows, one-sided non-compliance."""
    mean = float(weight @ psi_a / weight.sum())
    error = float(np.sqrt(weight**2 @ (psi_a - mean) ** 2)) / float(weight.sum())
    strength = (mean / error) ** 2 if error > 0 else np.inf
    notes = [f"first stage: {mean:.3f} of people are compliers, F = {strength:.1f}"]
    notes.append(f"{weak:.1%} of rows below {least} in first stage")
    if observations.instrument is not None and not observations.treatment[observations.instrument == 0].any():
        notes.append("nobody is treated without the instrument, which was used")
    return tuple(notes)
