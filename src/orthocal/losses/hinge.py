"""The tilted hinge loss: corrected pinball for quantiles under treatment."""

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
class HingeLoss:
    r"""Tilted hinge :math:`\ell_i(v) = s_i (v - y_i)_+ - t_i v + c_i` (mathematics 3.10), convex where :math:`s_i \ge 0`.

    Corrected pinball loss at quantile Q: with weight :math:`\omega`, :math:`s = \omega a/\pi` (normalised),
    :math:`t = \omega Q + (s - \omega) F(\text{level} \mid x)`; the offset makes the value at the level the doubly robust risk
    (mathematics 10.4). Conditionally orthogonal: `at` rebuilds it at another level when the conditional law is known.

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
    law : Law, optional
        Without it the loss stays as it is at every level.

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
    law: Law | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        complete(self)

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, rows: Rows) -> HingeLoss:
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
        if self.law is None:
            return self
        below, excess = self.law.below(prediction), self.slope - self.weight
        # Q times the doubly robust mean outcome, which no prediction changes: the risk stays when all outcomes are moved.
        still = self.quantile * (self.slope * self.outcome - excess * self.law.mean())
        return replace(
            self,
            tilt=self.weight * self.quantile + excess * below,
            offset=still - excess * (self.law.shortfall(prediction) - below * prediction),
        )
