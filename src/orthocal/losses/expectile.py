"""The corrected expectile loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from orthocal.arrays import Floats, Integers, Rows
from orthocal.errors import require_length
from orthocal.losses.protocol import Origin, Overlap
from orthocal.losses.tilted import complete, of_rows

if TYPE_CHECKING:
    from orthocal.distributions import Law


@dataclass(frozen=True, eq=False)
class ExpectileLoss:
    r"""Corrected expectile loss :math:`\tfrac12 s_i |\tau - 1\{y_i \le v\}| (y_i - v)^2 - t_i v + c_i` (mathematics 3.11).

    With weight :math:`\omega`: :math:`s = \omega a/\pi` (normalised), :math:`t = (s - \omega) f`, where
    :math:`f = E[|\tau - 1\{Y \le v\}|(v - Y) \mid x]` at the level the loss was built at. Conditionally orthogonal.

    Parameters
    ----------
    outcome, slope, tilt, offset, weight, bounds, groups, overlap, unit, law
        As in `HingeLoss`.
    expectile : float
        The level :math:`\tau`; 0.5 is the mean.

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
    law: Law | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        complete(self)

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, rows: Rows) -> ExpectileLoss:
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
        if self.law is None:
            return self
        score, risk = expected_expectile(self.law, prediction, self.expectile)
        excess = self.slope - self.weight
        return replace(self, tilt=excess * score, offset=-excess * (risk - score * prediction))


def expected_expectile(law: Law, v: Floats, level: float) -> tuple[Floats, Floats]:
    """Return E[score | x] and E[loss | x] at v, the loss up to a constant in v.

    E(v - Y)_+ is the shortfall G, E(Y - v)_+ is G + mean - v, and E(Y - v)^2 / 2 is a constant plus (v - mean)^2 / 2.
    """
    # loss = tau (Y - v)^2 / 2 + (1 - 2 tau) (v - Y)_+^2 / 2
    risk = level * (v - law.mean()) ** 2 / 2 + (1 - 2 * level) * law.squared_shortfall(v)
    return expected_score(law, v, level), risk


def expected_score(law: Law, v: Floats, level: float) -> Floats:
    """Return E[score | x] at v."""
    short = law.shortfall(v)
    return (1 - level) * short - level * (short + law.mean() - v)
