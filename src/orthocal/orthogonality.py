"""check_orthogonality: does an effect's loss really shrug off errors in its nuisances?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import group_sums
from orthocal.effects import loss_of_all
from orthocal.errors import OrthocalError, require_length
from orthocal.nuisances import Fitted
from orthocal.observations import Observations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.arrays import Floats, Integers
    from orthocal.effects import Effect

STEP = 1e-3
"""Size of the nuisance errors that are tried, and half of it."""
TOLERANCE = 1e-6
"""Sizes below this share of the score's spread count as zero."""


@dataclass(frozen=True, eq=False)
class Population:
    """A small population whose cells are enumerated, so that every mean is exact.

    Parameters
    ----------
    cell : array of shape (rows,)
        Which covariate cell 0, 1, ... each row is in.
    probability : array of shape (rows,)
        Of each row; adds to one.
    outcome, treatment, instrument : array of shape (rows,)
    nuisances : mapping of str to array of shape (rows,)
        The true ones.
    effect : array of shape (cells,)
        The true effect of each cell.
    directions : mapping of str to mapping of str to array, optional
        Named ways in which nuisances can be wrong, each a set of nuisance errors that go together; by default each nuisance
        alone, by an error that depends on the cell.
    """

    cell: Integers
    probability: Floats
    outcome: Floats
    treatment: Any
    nuisances: Mapping[str, Floats]
    effect: Floats
    instrument: Any = None
    directions: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("probability", "outcome", "treatment"):
            require_length(getattr(self, name), len(self.cell), name)
        total = float(np.sum(self.probability))
        if not np.isclose(total, 1.0):
            raise OrthocalError(f"The probabilities of a population must add to 1; they add to {total:.6g}.")

    def observations(self) -> Observations:
        """The cells as rows, their probabilities as weights, predicted without error."""
        return Observations(
            covariates=np.asarray(self.cell, dtype=np.float64)[:, None],
            outcome=np.asarray(self.outcome, dtype=np.float64),
            treatment=np.asarray(self.treatment),
            weight=np.asarray(self.probability, dtype=np.float64),
            instrument=None if self.instrument is None else np.asarray(self.instrument),
            prediction=np.asarray(self.effect, dtype=np.float64)[self.cell],
        )

    def ways_to_be_wrong(self) -> dict[str, dict[str, Floats]]:
        """The directions given, or each nuisance alone, by an error that differs from cell to cell."""
        if self.directions:
            return {name: dict(errors) for name, errors in self.directions.items()}
        tilt = np.cos(1.0 + 2.0 * np.arange(len(self.effect)))[self.cell]
        return {name: {name: 0.5 * np.std(values) * tilt + 0.1 * tilt} for name, values in self.nuisances.items()}


@dataclass(frozen=True)
class OrthogonalityReport:
    """How far nuisance errors move the mean score at the true effect, cell by cell.

    Parameters
    ----------
    bias : float
        Largest mean score with true nuisances: 0 when the loss targets the effect.
    first_order : dict of str to float
        Largest derivative of the mean score along each direction, and ``"jointly"`` along all: 0 when orthogonal.
    second_order : float
        Half the second derivative along all directions: what remains.
    scale : float
        Typical size of a score, which the others are measured against.
    passed : bool
    """

    bias: float
    first_order: dict[str, float]
    second_order: float
    scale: float
    passed: bool

    def __str__(self) -> str:
        lines = [f"{'mean score at the truth':<36}{self.bias:.2e}"]
        lines += [f"{'first order, ' + name:<36}{size:.2e}" for name, size in self.first_order.items()]
        lines += [f"{'second order, jointly':<36}{self.second_order:.2e}", "passed" if self.passed else "FAILED"]
        return "\n".join(lines)


def check_orthogonality(effect: Effect, population: Population) -> OrthogonalityReport:
    r"""Check on an exact population that an effect's loss targets the effect and is orthogonal.

    Evaluates the mean score :math:`E[\partial\ell(\theta_0; g) \mid x]` at nuisances :math:`g_0 + h\,d` for each direction
    :math:`d` and for all at once. Unbiasedness alone does not catch a wrong sign: :math:`E[y - \mu_0] = 0` hides it (MATH E1).

    Parameters
    ----------
    effect : Effect
    population : Population

    Returns
    -------
    OrthogonalityReport
        ``passed`` when mean score and first order are zero, to rounding; ``print`` it to see the sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import CATE, Population, check_orthogonality
    >>> x, a = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> pi, mu0, mu1 = np.array([0.3, 0.6])[x], np.array([1.0, 2.0])[x], np.array([2.0, 5.0])[x]
    >>> population = Population(
    ...     cell=x, probability=0.5 * np.where(a == 1, pi, 1 - pi), outcome=np.where(a == 1, mu1, mu0), treatment=a,
    ...     nuisances={"propensity": pi, "outcome_control": mu0, "outcome_treated": mu1}, effect=np.array([1.0, 3.0]))
    >>> check_orthogonality(CATE(), population).passed
    True
    """
    wrong = population.ways_to_be_wrong()
    jointly: dict[str, Floats] = {}
    for errors in wrong.values():
        for name, error in errors.items():
            jointly[name] = jointly.get(name, 0.0) + np.asarray(error)
    centre, scale = _mean_score(effect, population, {}, 0.0)
    first = {name: _slope(effect, population, errors) for name, errors in {**wrong, "jointly": jointly}.items()}
    up, down = (_mean_score(effect, population, jointly, h)[0] for h in (STEP, -STEP))
    bias, second = float(np.abs(centre).max()), float(np.abs(up - 2 * centre + down).max() / (2 * STEP**2))
    passed = max(bias, *first.values()) <= TOLERANCE * max(scale, 1.0)
    return OrthogonalityReport(bias, first, second, scale, bool(passed))


def _slope(effect: Effect, population: Population, errors: Mapping[str, Floats]) -> float:
    """Largest derivative of the mean score at no error: central differences at two sizes, extrapolated to zero."""
    slopes = []
    for h in (STEP, STEP / 2):
        up, down = (_mean_score(effect, population, errors, sign * h)[0] for sign in (1, -1))
        slopes.append((up - down) / (2 * h))
    return float(np.abs((4 * slopes[1] - slopes[0]) / 3).max())


def _mean_score(
    effect: Effect, population: Population, errors: Mapping[str, Floats], size: float
) -> tuple[Floats, float]:
    """Mean derivative of the loss at the true effect in each cell, and the typical size of a score."""
    rows = population.observations()
    values = {
        name: np.asarray(true, dtype=np.float64) + size * errors.get(name, 0.0)
        for name, true in population.nuisances.items()
    }
    derivative = loss_of_all(effect, rows, Fitted(values, clip=0.0)).derivative(rows.prediction)  # type: ignore[arg-type]
    count = len(population.effect)
    share = group_sums(population.cell, rows.weight, count)
    return group_sums(population.cell, derivative, count) / share, float(np.abs(derivative).sum())
