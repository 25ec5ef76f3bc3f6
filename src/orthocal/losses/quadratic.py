"""The quadratic loss: pseudo-outcomes and ratio effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from orthocal.arrays import Floats, Integers, RowIndex, one_column, taken
from orthocal.errors import require_comparable, require_finite, require_length, require_not_tiny
from orthocal.losses.protocol import Origin, Overlap, unchecked


@dataclass(frozen=True, eq=False)
class QuadraticLoss:
    r"""Quadratic loss :math:`\ell_i(v) = \tfrac12 d_i v^2 - n_i v` with derivative :math:`d_i v - n_i`.

    Squared loss on a pseudo-outcome :math:`\chi` with weight :math:`w` is :math:`d = w`, :math:`n = w\chi`; a ratio
    effect has other :math:`n, d`, whose ratio of sums is the effect (mathematics 1.3). Universally orthogonal.

    Parameters
    ----------
    numerator, denominator : array of shape (rows,)
    weight : array of shape (rows,), optional
        Sample weights. By default ones for a ratio effect, else the denominator when that is nowhere negative.
    groups : array of shape (rows,), optional
        Cluster codes.
    overlap : Overlap, optional
    unit : str
    origin : Origin, optional
        How it was made.
    is_ratio : bool, default False
        The denominators are estimates, not sample weights: a ratio of means is the effect. Errors are then measured against
        the mean denominator of all rows, and a bin's ratio is shown only where its own denominator is clearly positive.

    Examples
    --------
    >>> import numpy as np
    >>> loss = QuadraticLoss(np.array([2.0, 6.0]), np.array([1.0, 2.0]))
    >>> loss.target
    array([2., 3.])
    >>> loss.derivative(np.array([2.0, 4.0]))
    array([0., 2.])
    """

    numerator: Floats
    denominator: Floats
    weight: Floats = None  # type: ignore[assignment]  # filled in below
    groups: Integers | None = None
    overlap: Overlap | None = None
    unit: str = "effect"
    origin: Origin | None = None
    is_ratio: bool = False

    def __post_init__(self) -> None:
        for name in ("numerator", "denominator"):
            object.__setattr__(self, name, one_column(getattr(self, name), name))
            largest = require_finite(getattr(self, name), name)
        require_length(self.denominator, len(self.numerator), "denominator")
        if self.weight is None:
            counts = not self.is_ratio and self.denominator.min(initial=0.0) >= 0
            require_not_tiny(largest, "denominator")
            require_comparable(np.abs(self.denominator), "denominator")
            object.__setattr__(self, "weight", self.denominator if counts else np.ones(len(self)))

    def __len__(self) -> int:
        return len(self.numerator)

    def __getitem__(self, rows: RowIndex) -> Self:
        denominator = taken(self.denominator, rows)
        return unchecked(
            self,
            numerator=taken(self.numerator, rows),
            denominator=denominator,
            weight=denominator if self.weight is self.denominator else self.weight[rows],
            groups=None if self.groups is None else self.groups[rows],
            overlap=None if self.overlap is None else self.overlap[rows],
        )

    @property
    def mass(self) -> Floats:
        """The denominators."""
        return self.denominator

    @property
    def bounds(self) -> tuple[float, float]:
        """The whole line: a mean needs no box."""
        return (-np.inf, np.inf)

    @property
    def target(self) -> Floats:
        """Each row's own minimiser n / d, where d is not 0."""
        return self.numerator / self.denominator

    def value(self, v: Floats) -> Floats:
        """Loss of each row at its own number."""
        return (0.5 * self.denominator * v - self.numerator) * v

    def derivative(self, v: Floats) -> Floats:
        """Derivative of each row's loss at its own number."""
        return self.denominator * v - self.numerator

    def at(self, prediction: Floats) -> QuadraticLoss:
        """Itself: the nuisances do not depend on the prediction."""
        require_length(prediction, len(self), "prediction")
        return self
