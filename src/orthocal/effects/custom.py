"""Custom effects, by their formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Labels
from orthocal.effects.description import Words
from orthocal.errors import OrthocalError, require_finite
from orthocal.losses import Loss, QuadraticLoss
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations


@dataclass(frozen=True)
class PseudoOutcome:
    r"""A custom effect with a universally orthogonal loss: squared loss on :math:`\chi = m(g; z) + \text{correction}(g; z)`.

    The correction is the Riesz representer of m times the residual of the regression m contains (mathematics 3.12). Being
    unbiased does not show that it is right; `check_orthogonality` does.

    Parameters
    ----------
    nuisances : callable
        ``nuisances(rows)`` gives the list of `Nuisance` to learn.
    m, correction : callable
        ``m(rows, g)`` and ``correction(rows, g)`` give one number per row; ``g["name"]`` is a nuisance.
    stratify : callable, optional
        ``stratify(rows)`` gives labels to spread over the folds; the treatment by default.
    sums : callable, optional
        ``sums(rows, g)`` gives by name what m and correction must know of all rows, as sums; they find it in ``g.sums``. Needed
        where rows are in partitions.

    Examples
    --------
    >>> from orthocal.nuisances import Nuisance
    >>> treated_mean = PseudoOutcome(
    ...     nuisances=lambda rows: [
    ...         Nuisance("propensity", "propensity", rows.treatment.astype(float), is_probability=True, is_divisor=True),
    ...         Nuisance("outcome", "outcome", rows.outcome, rows.treatment == 1),
    ...     ],
    ...     m=lambda rows, g: g["outcome"],
    ...     correction=lambda rows, g: rows.treatment / g["propensity"] * (rows.outcome - g["outcome"]),
    ... )
    """

    words: ClassVar[Words] = Words(
        "A custom effect.",
        "squared loss on m + correction, both as the user defines them",
        "Those of the user's effect.",
    )
    uses_event: ClassVar[bool] = True
    nuisances: Callable[[Observations], Sequence[Nuisance]]
    m: Callable[[Observations, Fitted], Any]
    correction: Callable[[Observations, Fitted], Any]
    stratify: Callable[[Observations], Any] | None = None
    sums: Callable[[Observations, Fitted], Mapping[str, Any]] | None = None

    def strata(self, observations: Observations) -> Labels:
        """The treatment, unless `stratify` was given."""
        return observations.treatment if self.stratify is None else np.asarray(self.stratify(observations))

    def loss(self, observations: Observations, fitted: Fitted) -> Loss:
        """Squared loss on the pseudo-outcome."""
        chi = self._column("m", observations, fitted) + self._column("correction", observations, fitted)
        weight = observations.weight
        return QuadraticLoss(weight * chi, weight, weight, observations.groups)

    def _column(self, name: str, observations: Observations, fitted: Fitted) -> Floats:
        values = np.asarray(getattr(self, name)(observations, fitted), dtype=np.float64)
        if values.shape != (len(observations),):
            raise OrthocalError(
                f"`{name}` of a PseudoOutcome must return one number per row, shape ({len(observations)},); "
                f"it returned shape {values.shape}."
            )
        require_finite(values, name)
        return values
