"""What an experiment is: repetitions that can run apart, and what their rows say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.bins import binned
from orthocal.assessment.error import squared_error
from orthocal.losses import QuadraticLoss

if TYPE_CHECKING:
    from orthocal.reporting.page.document import Block, Table


Key = dict[str, Any]
"""What tells one repetition from another: it, and the seed, determine the row."""
Row = dict[str, Any]


def rows_by_size(rows: Sequence[Row], sizes: Sequence[str]) -> dict[str, list[Row]]:
    """Return the rows of each size of learners, in the order of `sizes`; a size without rows is left out."""
    found = {size: [row for row in rows if row["learners"] == size] for size in sizes}
    return {size: own for size, own in found.items() if own}


@dataclass(frozen=True)
class Claim:
    """Something that was claimed, whether it held in this run (None: too few repetitions to say), and what was measured."""

    text: str
    held: bool | None
    measured: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the rows of a run say.

    Parameters
    ----------
    tables : tuple of Table
    claims : tuple of Claim
    blocks : tuple of blocks of a page
        Pictures and words around them.
    notes : tuple of str
        How it was done, and where that departs from the paper.
    answer : str
        The question's answer in a sentence or two.
    """

    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...]
    answer: str


class Experiment(Protocol):
    """An experiment with its settings; small, so that it travels to worker processes."""

    name: str
    title: str
    question: str
    repeats: int
    """How many repetitions when the user does not say."""

    def settings(self) -> Mapping[str, Any]:
        """Everything besides the key that rows depend on; a run is continued only under equal settings."""
        ...

    def keys(self, repeats: int) -> list[Key]:
        """The repetitions, in the order of their rows; more repeats only add rows at the end."""
        ...

    def run(self, key: Key) -> Row:
        """One repetition, from its key and the seed alone."""
        ...

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Tables, claims and pictures of the rows there are."""
        ...


def true_calibration_error(prediction: Floats, residual: Floats, bins: int) -> float:
    r"""Return :math:`\sqrt{E[E[r \mid \theta]^2]}` over bins of the prediction, with the bins' sampling noise taken off.

    `residual` is the row's own expected residual, known without noise: :math:`\tau(x) - \theta(x)` for an average effect,
    :math:`Q - F(\theta(x) \mid x)` for a quantile.
    """
    loss = QuadraticLoss(prediction + residual, np.ones(len(prediction)))
    return float(np.sqrt(max(squared_error(binned(prediction, loss, bins))[0], 0.0)))
