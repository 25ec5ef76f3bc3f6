"""Losses: one convex function of a number per row, nuisances already filled in.

The loss is the hub: everything downstream sees only (prediction, loss).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

from orthocal.errors import OrthocalError, require_length

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers, Rows


@dataclass(frozen=True)
class Overlap:
    """How well the data can tell treatment levels apart from covariates alone.

    Parameters
    ----------
    clip : float
        Fitted propensities were kept inside [clip, 1 - clip].
    clipped : dict of str to float
        Share of rows moved by that, per fitted propensity; given ones are never moved.
    propensity : dict of str to (lowest, median, highest)
    effective_rows : dict of str to float
        Per level: (sum of inverse propensities)^2 / sum of their squares over the rows that got it.
    """

    clip: float
    clipped: dict[str, float]
    propensity: dict[str, tuple[float, float, float]]
    effective_rows: dict[str, float]


@runtime_checkable
class Loss(Protocol):
    """What a loss must offer; an own loss with these members works with every solver and every verdict."""

    @property
    def mass(self) -> Floats:
        """What a row's derivative is measured against: the denominator of a quadratic loss, else its weight."""
        ...

    @property
    def weight(self) -> Floats:
        """Sample weight of each row, never negative."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """Where minimisers are sought."""
        ...

    @property
    def groups(self) -> Integers | None:
        """Cluster code of each row."""
        ...

    @property
    def overlap(self) -> Overlap | None:
        """How well treatment levels overlap."""
        ...

    @property
    def unit(self) -> str:
        """What the residuals are measured in."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Rows) -> Self:
        """The loss of some rows."""
        ...

    def value(self, v: Floats) -> Floats:
        """Loss of each row at its own number."""
        ...

    def derivative(self, v: Floats) -> Floats:
        """Right derivative of each row's loss at its own number."""
        ...

    def at(self, prediction: Floats) -> Loss:
        """The loss with its nuisances taken at this prediction; itself when universally orthogonal."""
        ...


@dataclass(frozen=True, eq=False)
class QuadraticLoss:
    r"""Quadratic loss :math:`\ell_i(v) = \tfrac12 d_i v^2 - n_i v` with derivative :math:`d_i v - n_i`.

    Squared loss on a pseudo-outcome :math:`\chi` with weight :math:`w` is :math:`d = w`, :math:`n = w\chi`; a ratio
    effect has other :math:`n, d`, whose ratio of sums is the effect (MATH section 0). Universally orthogonal.

    Parameters
    ----------
    numerator, denominator : array of shape (rows,)
    weight : array of shape (rows,), optional
        Sample weights; the denominator when that is nowhere negative, else ones.
    groups : array of shape (rows,), optional
        Cluster codes.
    overlap : Overlap, optional
    unit : str

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

    def __post_init__(self) -> None:
        require_length(self.denominator, len(self.numerator), "denominator")
        if self.weight is None:
            own = self.denominator if self.denominator.min(initial=0.0) >= 0 else np.ones(len(self))
            object.__setattr__(self, "weight", own)

    def __len__(self) -> int:
        return len(self.numerator)

    def __getitem__(self, rows: Rows) -> QuadraticLoss:
        denominator = self.denominator[rows]
        return QuadraticLoss(
            self.numerator[rows],
            denominator,
            denominator if self.weight is self.denominator else self.weight[rows],
            None if self.groups is None else self.groups[rows],
            self.overlap,
            self.unit,
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
        """Itself: the nuisances do not depend on the level."""
        require_length(prediction, len(self), "prediction")
        return self


def as_counts(weight: Floats) -> Floats:
    """Return weights as numbers of rows: whole numbers as they are, others scaled to average one."""
    if (weight == np.floor(weight)).all():
        return weight
    return weight * (np.count_nonzero(weight) / weight.sum()) if weight.min() < weight.max() else np.ones(len(weight))


def total_mass(loss: Loss) -> float:
    """Return the summed mass, which must be positive for an effect to be defined."""
    total = float(loss.mass.sum())
    if not total > 0:
        raise OrthocalError(
            f"The summed mass of the loss must be positive; it is {total:.4g}. "
            "The rows carry no information on the effect: use more rows or check the treatment."
        )
    return total
