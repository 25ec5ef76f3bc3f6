"""Scores of every arm: what each person's outcome would be on average under each treatment, orthogonally estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers, RowIndex, as_floats, one_column
from orthocal.errors import OrthocalError, require_finite, require_length
from orthocal.formats import shown
from orthocal.losses.protocol import Origin, Overlap
from orthocal.losses.quadratic import QuadraticLoss


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmScores:
    r"""Doubly robust scores :math:`\chi_k = \mu_k + 1\{a = k\}(y - \mu_k)/\pi_k`, a row a person, a column an arm.

    Their mean over people with the same predictions is the mean outcome had all of them got arm k, so a difference of two columns
    is the pseudo-outcome of that contrast, and every contrast comes from one set of nuisances (mathematics 3.14).

    Parameters
    ----------
    arms : tuple
        Values of the treatment, one a column; the first is the control.
    values : array of shape (rows, arms)
    weight : array of shape (rows,)
        Sample weights.
    groups : array of shape (rows,), optional
        Cluster codes.
    overlap : Overlap, optional
        Its arms are named as these are.
    origin : Origin, optional
        How the scores were made.

    Examples
    --------
    >>> import numpy as np
    >>> scores = ArmScores(arms=("none", "mail"), values=np.array([[1.0, 3.0], [2.0, 2.5]]), weight=np.ones(2))
    >>> scores.contrast("mail").target
    array([2. , 0.5])
    """

    arms: tuple[Any, ...]
    values: Floats
    weight: Floats
    groups: Integers | None = None
    overlap: Overlap | None = None
    origin: Origin | None = None
    unit: str = field(default="effect", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", as_floats(self.values, "values"))
        object.__setattr__(self, "weight", one_column(self.weight, "weight"))
        if self.values.ndim != 2 or self.values.shape[1] != len(self.arms):
            raise OrthocalError(
                f"Scores of arms must have one column for each of the {len(self.arms)} arms; their shape is {self.values.shape}."
            )
        require_finite(self.values.ravel(), "scores")
        require_length(self.weight, len(self), "weight")

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: RowIndex) -> ArmScores:
        return ArmScores(
            arms=self.arms,
            values=self.values[rows],
            weight=self.weight[rows],
            groups=None if self.groups is None else self.groups[rows],
            overlap=None if self.overlap is None else self.overlap[rows],
            origin=self.origin,
        )

    @property
    def control(self) -> Any:
        """The arm that the others are compared with."""
        return self.arms[0]

    @property
    def treatments(self) -> tuple[Any, ...]:
        """The arms but for the control."""
        return self.arms[1:]

    @property
    def gains(self) -> Floats:
        """Scores of the arms less that of the control, one column for each of `treatments`."""
        return np.asarray(self.values[:, 1:] - self.values[:, :1])

    def contrast(self, arm: Any, control: Any = None) -> QuadraticLoss:
        """Return the loss of one arm against another; against the control, where none is named."""
        one, other = self.place(arm), 0 if control is None else self.place(control)
        chi = self.values[:, one] - self.values[:, other]
        return QuadraticLoss(
            self.weight * chi, self.weight, self.weight, self.groups, self._overlap_of(one, other), origin=self.origin
        )

    def place(self, arm: Any) -> int:
        """Return the column of an arm."""
        if arm not in self.arms:
            named = ", ".join(repr(one) for one in self.arms)
            raise OrthocalError(f"An arm must be one of {named}; {shown(arm)} is not.")
        return self.arms.index(arm)

    def _overlap_of(self, one: int, other: int) -> Overlap | None:
        if self.overlap is None:
            return None
        levels = self.overlap.levels
        names: Mapping[str, int] = {"treated": one, "control": other}
        both = {name: levels[str(self.arms[place])] for name, place in names.items()}
        return Overlap(self.overlap.clip, self.overlap.clipped, both, self.weight, self.overlap.notes)


def require_scores_of_arms(scores: Any, name: str = "scores") -> None:
    """Something is the scores of arms of some rows."""
    if not isinstance(scores, ArmScores):
        raise OrthocalError(f"`{name}` must be an ArmScores, as a study of arms makes; it is {shown(scores)}.")
