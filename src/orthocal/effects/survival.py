"""Effects on censored times: on the probability of surviving a time, and on the time lived up to a horizon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from orthocal.arrays import Labels
from orthocal.effects.censored import CensoredContrast
from orthocal.effects.description import IGNORABILITY, Equivariance, Words
from orthocal.effects.survival_gains import restricted_mean_gains, survival_gains
from orthocal.losses import ArmScores, Loss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations

INDEPENDENT_CENSORING = (
    f"{IGNORABILITY} In either arm censoring is as good as random among people with the same covariates, and each of them could "
    "have been followed to the horizon. Where other events end follow-up and are coded as censoring (competing risks), the "
    "effect is the one in a world in which they do not happen, and they too must be as good as random given the covariates."
)


@dataclass(frozen=True)
class SurvivalProbability:
    r"""The effect on the probability of surviving a time: :math:`P(T(\text{arm}) > t \mid x) - P(T(\text{control}) > t \mid x)`.

    :math:`T` is the time to an event, of which :math:`U = \min(T, C)` and whether it came before censoring :math:`C` are
    observed: ``y`` and ``event``. Identified when treatment, and in either arm censoring, are as good as random given the
    covariates, and everyone could have had either arm and been followed to t. The loss is squared loss on a doubly robust
    pseudo-outcome (mathematics 3.13), right where either the hazards of the event are, or propensity and those of censoring.

    **Competing risks.** With other events coded as censoring, it is the effect in a world in which those do not happen (and
    they must be as good as random given the covariates). Where that is not the question, let the event be any of them.

    Parameters
    ----------
    time : float
        In the unit of y. There is no default.
    arm, control : object
        The two values of the treatment that are compared. Rows with other values are kept, as for the CATE.
    grid : int or tuple of float, default 30
        Time is cut into this many cells: at quantiles of the event times up to `time`, or at these times.
    min_followed : float, default 0.05
        Fitted probabilities of not being censored are clipped from below at this; the share of rows clipped is reported.

    Examples
    --------
    >>> from orthocal import SurvivalProbability, assess, orthogonal_loss
    >>> from orthocal.datasets import simulate_survival
    >>> data = simulate_survival(n=1000, time=1.0, random_state=0)
    >>> loss = orthogonal_loss(SurvivalProbability(time=1.0), data.X, data.y, treatment=data.treatment, event=data.event,
    ...                        random_state=0)
    >>> assess(data.effect - 0.5, loss, random_state=0).status
    'miscalibrated'
    """

    equivariance: ClassVar[Equivariance] = Equivariance(0, None)
    uses_event: ClassVar[bool] = True
    words: ClassVar[Words] = Words(
        "The effect of the arm against the control on the probability of no event by a time among people with the same "
        "covariates, P(T(arm) > t | X) - P(T(control) > t | X).",
        "squared loss on phi1 - phi0, phi_a = S_a(t) [1 - 1{a}/pi_a sum over cells k of (event in k - at risk in k * hazard) / "
        "(S_a(k) G_a(k-))], S no event, G not censored",
        INDEPENDENT_CENSORING,
    )
    time: float | None = None
    arm: Any = 1
    control: Any = 0
    grid: int | tuple[float, ...] = 30
    min_followed: float = 0.05

    @property
    def _contrast(self) -> CensoredContrast:
        """What it shares with other effects on censored times."""
        return CensoredContrast("time", self.time, self.arm, self.control, self.grid, self.min_followed)

    @property
    def possible_range(self) -> tuple[float, float]:
        """Between what the effect lies."""
        return -1.0, 1.0

    def strata(self, observations: Observations) -> Labels:
        """Arm and control, with and without an event."""
        return self._contrast.strata(observations)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity, and in each arm the curves of event and of censoring."""
        return self._contrast.nuisances(observations)

    def scores(self, observations: Observations, fitted: Fitted) -> ArmScores:
        """Return the doubly robust score of each arm, whose difference the loss is about."""
        return self._contrast.scores(observations, fitted, survival_gains)

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the doubly robust pseudo-outcome."""
        return self._contrast.loss(observations, fitted, survival_gains)


@dataclass(frozen=True)
class RestrictedMeanTime:
    r"""The effect on the time lived up to a horizon h: :math:`E[\min(T(\text{arm}), h) - \min(T(\text{control}), h) \mid x]`.

    The difference of restricted mean survival times (RMST), the area between the survival curves of the arms. Data, assumptions
    and competing risks as for `SurvivalProbability`; mathematics 3.13.

    Parameters
    ----------
    horizon : float
        In the unit of y. There is no default.
    arm, control : object
    grid : int or tuple of float, default 30
    min_followed : float, default 0.05
        As for `SurvivalProbability`.

    Examples
    --------
    >>> RestrictedMeanTime(horizon=365, arm="drug", control="placebo")
    RestrictedMeanTime(horizon=365, arm='drug', control='placebo', grid=30, min_followed=0.05)
    """

    equivariance: ClassVar[Equivariance] = Equivariance(1, None)
    uses_event: ClassVar[bool] = True
    words: ClassVar[Words] = Words(
        "The effect of the arm against the control on the mean time without the event up to a horizon among people with the "
        "same covariates, E[min(T(arm), h) - min(T(control), h) | X].",
        "squared loss on phi1 - phi0, phi_a = R_a + 1{a}/pi_a sum over cells k of [time lived in k - expected - (event in k - at "
        "risk in k * hazard) * mean time left] / G_a(k-), R the area under S",
        INDEPENDENT_CENSORING,
    )
    horizon: float | None = None
    arm: Any = 1
    control: Any = 0
    grid: int | tuple[float, ...] = 30
    min_followed: float = 0.05

    @property
    def _contrast(self) -> CensoredContrast:
        """What it shares with other effects on censored times."""
        return CensoredContrast("horizon", self.horizon, self.arm, self.control, self.grid, self.min_followed)

    @property
    def possible_range(self) -> tuple[float, float]:
        """Between what the effect lies."""
        return -float(self.horizon or 0.0), float(self.horizon or 0.0)

    def strata(self, observations: Observations) -> Labels:
        """Arm and control, with and without an event."""
        return self._contrast.strata(observations)

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity, and in each arm the curves of event and of censoring."""
        return self._contrast.nuisances(observations)

    def scores(self, observations: Observations, fitted: Fitted) -> ArmScores:
        """Return the doubly robust score of each arm, whose difference the loss is about."""
        return self._contrast.scores(observations, fitted, restricted_mean_gains)

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the doubly robust pseudo-outcome."""
        return self._contrast.loss(observations, fitted, restricted_mean_gains)
