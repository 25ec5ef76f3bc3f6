"""Losses with a tilt: the corrected pinball loss of quantiles, and that of expectiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from orthocal.arrays import Floats, Integers, RowIndex, one_column
from orthocal.errors import require_finite, require_length
from orthocal.losses.protocol import Origin, Overlap

if TYPE_CHECKING:
    from orthocal.distributions import Distribution


T = TypeVar("T")
PER_ROW = ("outcome", "slope", "tilt", "offset", "weight", "groups", "distribution", "overlap")


def complete(loss: Any) -> None:
    """Fill in offsets of 0, weights of 1 and the range of outcomes that carry weight, where these were left out."""
    for name, default in (("offset", 0.0), ("weight", 1.0)):
        if getattr(loss, name) is None:
            object.__setattr__(loss, name, np.full(np.shape(loss.outcome)[:1], default))
    for name in ("outcome", "slope", "tilt", "offset", "weight"):
        object.__setattr__(loss, name, one_column(getattr(loss, name), name))
        require_length(getattr(loss, name), len(loss.outcome), name)
        require_finite(getattr(loss, name), name)
    if loss.bounds is None:
        object.__setattr__(loss, "bounds", _range(loss.outcome, loss.slope))


def of_rows(loss: T, rows: RowIndex) -> T:
    """Return the loss of some rows, with the parent's bounds."""
    columns = {name: getattr(loss, name) for name in PER_ROW}
    selected: Any = {name: None if c is None else c[rows] for name, c in columns.items()}
    return replace(loss, **selected)  # type: ignore[type-var]


def _range(outcome: Floats, slope: Floats) -> tuple[float, float]:
    carrying = outcome[slope > 0]
    carrying = carrying if len(carrying) else outcome
    return (float(carrying.min()), float(carrying.max())) if len(carrying) else (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class HingeLoss:
    r"""Tilted hinge :math:`\ell_i(v) = s_i (v - y_i)_+ - t_i v + c_i` (mathematics 3.10), convex where :math:`s_i \ge 0`.

    Corrected pinball loss at quantile Q: with weight :math:`\omega`, :math:`s = \omega a/\pi` (normalised),
    :math:`t = \omega Q + (s - \omega) F(\text{prediction} \mid x)`; the offset makes the loss at that prediction the doubly
    robust risk (mathematics 10.4). Conditionally orthogonal: `at` rebuilds it at another prediction when the conditional
    distribution is known.

    Parameters
    ----------
    outcome, slope, tilt, offset : array of shape (rows,)
        y, s, t, c above.
    weight : array of shape (rows,), optional
        Sample weights; ones by default.
    bounds : (float, float), optional
        Where minimisers are sought; the range of outcomes with positive slope by default.
    groups, overlap, unit, origin
        As in every loss.
    quantile : float
    distribution : Distribution, optional
        Without it the loss stays as it is at every prediction.

    Examples
    --------
    >>> import numpy as np
    >>> loss = HingeLoss(np.array([1.0, 2.0]), np.ones(2), np.full(2, 0.5))
    >>> loss.derivative(np.array([1.0, 1.0]))
    array([ 0.5, -0.5])
    """

    outcome: Floats
    slope: Floats
    tilt: Floats
    offset: Floats = None  # type: ignore[assignment]  # filled in below, as are the next two
    weight: Floats = None  # type: ignore[assignment]
    bounds: tuple[float, float] = None  # type: ignore[assignment]
    groups: Integers | None = None
    overlap: Overlap | None = None
    unit: str = "probability"
    quantile: float = 0.5
    distribution: Distribution | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        complete(self)

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, rows: RowIndex) -> HingeLoss:
        return of_rows(self, rows)

    @property
    def mass(self) -> Floats:
        """The sample weights."""
        return self.weight

    def value(self, v: Floats) -> Floats:
        """Loss of each row at its own number."""
        return self.slope * np.maximum(v - self.outcome, 0) - self.tilt * v + self.offset

    def derivative(self, v: Floats) -> Floats:
        """Right derivative of each row's loss at its own number."""
        return self.slope * (self.outcome <= v) - self.tilt

    def at(self, prediction: Floats) -> HingeLoss:
        """The loss with F taken at this prediction; its value there is the doubly robust risk, the mean pinball loss."""
        require_length(prediction, len(self), "prediction")
        if self.distribution is None:
            return self
        below, excess = self.distribution.below(prediction), self.slope - self.weight
        # Q times the doubly robust mean outcome, which no prediction changes: the risk stays when all outcomes are moved.
        still = self.quantile * (self.slope * self.outcome - excess * self.distribution.mean())
        return replace(
            self,
            tilt=self.weight * self.quantile + excess * below,
            offset=still - excess * (self.distribution.shortfall(prediction) - below * prediction),
        )


@dataclass(frozen=True, eq=False)
class ExpectileLoss:
    r"""Corrected expectile loss :math:`\tfrac12 s_i |\tau - 1\{y_i \le v\}| (y_i - v)^2 - t_i v + c_i` (mathematics 3.11).

    With weight :math:`\omega`: :math:`s = \omega a/\pi` (normalised), :math:`t = (s - \omega) f`, where
    :math:`f = E[|\tau - 1\{Y \le v\}|(v - Y) \mid x]` at the prediction the loss was built at. Conditionally orthogonal.

    Parameters
    ----------
    outcome, slope, tilt, offset, weight, bounds, groups, overlap, unit, distribution
        As in `HingeLoss`.
    expectile : float
        :math:`\tau`; 0.5 is the mean.

    Examples
    --------
    >>> import numpy as np
    >>> ExpectileLoss(np.array([0.0, 2.0]), np.ones(2), np.zeros(2)).derivative(np.ones(2))
    array([ 0.5, -0.5])
    """

    outcome: Floats
    slope: Floats
    tilt: Floats
    offset: Floats = None  # type: ignore[assignment]  # filled in below, as are the next two
    weight: Floats = None  # type: ignore[assignment]
    bounds: tuple[float, float] = None  # type: ignore[assignment]
    groups: Integers | None = None
    overlap: Overlap | None = None
    unit: str = "score"
    expectile: float = 0.5
    distribution: Distribution | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        complete(self)

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, rows: RowIndex) -> ExpectileLoss:
        return of_rows(self, rows)

    @property
    def mass(self) -> Floats:
        """The sample weights."""
        return self.weight

    def value(self, v: Floats) -> Floats:
        """Loss of each row at its own number."""
        side = np.where(self.outcome <= v, 1 - self.expectile, self.expectile)
        return 0.5 * self.slope * side * (self.outcome - v) ** 2 - self.tilt * v + self.offset

    def derivative(self, v: Floats) -> Floats:
        """Derivative of each row's loss at its own number."""
        side = np.where(self.outcome <= v, 1 - self.expectile, self.expectile)
        return self.slope * side * (v - self.outcome) - self.tilt

    def at(self, prediction: Floats) -> ExpectileLoss:
        """The loss with its nuisance taken at this prediction; its value there is the doubly robust risk."""
        require_length(prediction, len(self), "prediction")
        if self.distribution is None:
            return self
        score, risk = expected_expectile(self.distribution, prediction, self.expectile)
        excess = self.slope - self.weight
        return replace(self, tilt=excess * score, offset=-excess * (risk - score * prediction))


def expected_expectile(distribution: Distribution, v: Floats, level: float) -> tuple[Floats, Floats]:
    """Return E[score | x] and E[loss | x] at v, the loss up to a constant in v.

    E(v - Y)_+ is the shortfall G, E(Y - v)_+ is G + mean - v, and E(Y - v)^2 / 2 is a constant plus (v - mean)^2 / 2.
    """
    # loss = tau (Y - v)^2 / 2 + (1 - 2 tau) (v - Y)_+^2 / 2
    risk = level * (v - distribution.mean()) ** 2 / 2 + (1 - 2 * level) * distribution.squared_shortfall(v)
    return expected_score(distribution, v, level), risk


def expected_score(distribution: Distribution, v: Floats, level: float) -> Floats:
    """Return E[score | x] at v."""
    short = distribution.shortfall(v)
    return (1 - level) * short - level * (short + distribution.mean() - v)
