"""How an effect moves when the outcome is given in other units: a fact about the estimand that every answer must respect."""

from __future__ import annotations

from dataclasses import dataclass

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError


@dataclass(frozen=True)
class Equivariance:
    r"""The effect of the outcome :math:`c\,y + s` is :math:`c^{\text{power}}` times that of :math:`y`, plus `moves` times s.

    Parameters
    ----------
    power : int
        1: it has the unit of the outcome. 0: it has none, as a ratio of outcomes.
    moves : int, optional
        1: it moves with the outcome. 0: it does not, as a difference of outcomes. None: no rule holds for s other than 0.

    Examples
    --------
    >>> LOCATION.of(2.0, scale=10.0, shift=1.0)
    21.0
    """

    power: int
    moves: int | None

    def of(self, effect: Floats | float, *, scale: float = 1.0, shift: float = 0.0) -> Floats | float:
        """Return what an effect becomes when the outcome becomes scale * outcome + shift."""
        if self.moves is None and shift != 0:
            raise OrthocalError(f"This effect must have a shift of 0, for it has no rule for another; it is {shift}.")
        return scale**self.power * effect + (self.moves or 0) * shift


DIFFERENCE, LOCATION, RATIO = Equivariance(1, 0), Equivariance(1, 1), Equivariance(0, None)
"""Of a difference of mean outcomes, of a place among outcomes, and of a ratio of outcomes."""
