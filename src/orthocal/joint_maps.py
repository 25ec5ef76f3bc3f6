"""Maps of several predictions at once: one column an arm, all calibrated together so that contrasts add up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers, as_floats
from orthocal.errors import LARGEST, OrthocalError, are_numbers

HOLDS_SHIFTS = {"holds": "shifts"}
MATRIX = {"depth": 2}
"""Mark the field of a joint map that holds shifts of decisions, and fields that are matrices."""


@dataclass(frozen=True, eq=False)
class DecisionShifts:
    """What is added to every arm's prediction where one arm wins, by how much it is predicted to win (Zhao and others 2021).

    The winner is the arm with the largest prediction less its cost, or the control where none is positive; of equal ones, the
    first.

    Parameters
    ----------
    costs : array of shape (arms,)
    edges : array of shape (arms, bins - 1)
        Where the winner's prediction less its cost is divided, not decreasing; a bin is closed on the right.
    shifts : array of shape (1 + arms * bins, arms)
        Where no arm wins, then by winner and bin.
    """

    costs: Floats
    edges: Floats = field(metadata=MATRIX)
    shifts: Floats = field(metadata=MATRIX)

    def __post_init__(self) -> None:
        for name in ("costs", "edges", "shifts"):
            object.__setattr__(self, name, as_floats(getattr(self, name), name))
        arms, bins = self.costs.size, self.edges.shape[-1] + 1 if self.edges.ndim else 1
        if self.costs.ndim != 1 or self.edges.shape != (arms, bins - 1) or self.shifts.shape != (1 + arms * bins, arms):
            raise OrthocalError(
                f"Shifts of decisions must have costs, edges and shifts of one number of arms; their shapes are "
                f"{self.costs.shape}, {self.edges.shape} and {self.shifts.shape}."
            )
        if not are_numbers(self.costs, self.edges, self.shifts):
            raise OrthocalError("Shifts of decisions must be finite; at least one number is not.")

    def cell_of(self, predictions: Floats) -> Integers:
        """Return the row of `shifts` that each person belongs to."""
        net = predictions - self.costs
        winner = np.argmax(net, axis=1)
        value = net[np.arange(len(net)), winner]
        bins = self.edges.shape[1] + 1
        place = (self.edges[winner] < value[:, None]).sum(axis=1)
        return np.where(value > 0, 1 + winner * bins + place, 0)

    def predict(self, predictions: Floats) -> Floats:
        """Return the predictions with what is added."""
        return predictions + self.shifts[self.cell_of(predictions)]


@dataclass(frozen=True, eq=False)
class JointMap:
    r"""The map :math:`\nu = a + B\theta` of the predictions of all arms, and shifts by decision after it (mathematics 4.7).

    Every contrast of two arms is a difference of two calibrated predictions, so A - B plus B - C is A - C.

    Parameters
    ----------
    intercept : array of shape (arms,)
    slopes : array of shape (arms, arms)
        Row k: what each prediction adds to the calibrated prediction of arm k.
    decisions : tuple of DecisionShifts
        Added in turn.

    Examples
    --------
    >>> JointMap([0.0, 1.0], [[1.0, 0.0], [0.5, 0.5]]).predict([[2.0, 4.0]])
    array([[2., 4.]])
    """

    intercept: Floats
    slopes: Floats = field(metadata=MATRIX)
    decisions: tuple[DecisionShifts, ...] = field(default=(), metadata=HOLDS_SHIFTS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", as_floats(self.intercept, "intercept"))
        object.__setattr__(self, "slopes", as_floats(self.slopes, "slopes"))
        object.__setattr__(self, "decisions", tuple(self.decisions))
        if self.intercept.ndim != 1 or self.slopes.shape != (self.arms, self.arms):
            raise OrthocalError(
                "A joint map must have one intercept for each arm and as many slopes for each; they have shapes "
                f"{self.intercept.shape} and {self.slopes.shape}."
            )
        if not are_numbers(self.intercept, self.slopes):
            raise OrthocalError("The intercepts and slopes of a joint map must be finite; at least one is not.")
        if any(len(getattr(one, "costs", ())) != self.arms for one in self.decisions):
            raise OrthocalError(f"Shifts of decisions must be of the {self.arms} arms of the joint map; some are not.")

    @property
    def arms(self) -> int:
        """How many predictions go in and come out."""
        return len(self.intercept)

    def predict(self, predictions: Any) -> Floats:
        """Calibrated predictions for each row of predictions, one column an arm."""
        values = as_prediction_matrix(predictions, self.arms)
        values = self.intercept + values @ self.slopes.T
        for shifts in self.decisions:
            values = shifts.predict(values)
        return np.asarray(values)


def as_prediction_matrix(predictions: Any, arms: int) -> Floats:
    """Return finite numbers, one column for each arm."""
    values = as_floats(predictions, "predictions")
    if values.ndim != 2 or values.shape[1] != arms:
        raise OrthocalError(
            f"Predictions of several arms must have one column for each of the {arms} arms; their shape is {values.shape}."
        )
    if not are_numbers(values):
        row, column = np.argwhere(~(np.abs(values) <= LARGEST))[0]
        raise OrthocalError(
            f"Predictions must be finite in every row; row {row} of column {column} is {values[row, column]}."
        )
    return values


JOINT_MAPS: dict[str, type[Any]] = {"joint": JointMap}
SHIFTS: dict[str, type[Any]] = {"shifts": DecisionShifts}
"""Shapes of maps of several predictions, and of what they hold, by the name they have in a file."""
