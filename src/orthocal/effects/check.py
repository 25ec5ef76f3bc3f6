"""check_orthogonality: is an effect's loss insensitive, to first order, to errors in its nuisances?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.effects import loss_of_all
from orthocal.errors import OrthocalError, require_length
from orthocal.losses import Loss
from orthocal.nuisances import Fitted
from orthocal.observations import Observations
from orthocal.solvers import constants

if TYPE_CHECKING:
    from orthocal.effects import Effect

STEP = 1e-3
"""Size of the nuisance errors that are tried, and half of it."""
TOLERANCE = 1e-6
"""Sizes below this share of a typical score are zero up to rounding."""
AWAY = (-1.0, 0.5, 2.0)
"""How far from the true effect predictions are tried, in spreads of the effect."""
RANDOM_ERRORS = 6
"""Rounds in which the best constant of pooled cells is found with its own nuisances (mathematics 2.3)."""


@dataclass(frozen=True, eq=False)
class Population:
    """A small population whose cells are enumerated, so that every mean is exact.

    Parameters
    ----------
    cell : array of shape (rows,)
        Which covariate cell 0, 1, ... each row is in.
    probability : array of shape (rows,)
        Of each row; adds to one.
    outcome, treatment, instrument, event : array of shape (rows,)
    nuisances : mapping of str to array of shape (rows,) or (rows, grid times)
        The true ones. A nuisance that is taken at the prediction, such as the share of outcomes below it, is a function: given
        one prediction per row it returns the true values there.
    effect : array of shape (cells,)
        The true effect of each cell.
    directions : mapping of str to mapping of str to array, optional
        Named ways in which nuisances can be wrong, each a set of nuisance errors that go together; by default each nuisance
        alone, by an error that depends on the cell.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import CATE, Population, check_orthogonality
    >>> x, a = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> chance, base, effect = np.array([0.3, 0.6]), np.array([1.0, 2.0]), np.array([0.5, -1.0])
    >>> population = Population(
    ...     cell=x,
    ...     probability=0.5 * np.where(a == 1, chance[x], 1 - chance[x]),
    ...     outcome=base[x] + a * effect[x],
    ...     treatment=a,
    ...     nuisances={
    ...         "propensity": chance[x],
    ...         "outcome_control": base[x],
    ...         "outcome_treated": base[x] + effect[x],
    ...     },
    ...     effect=effect,
    ... )
    >>> check_orthogonality(CATE(), population).passed
    True
    """

    cell: Integers
    probability: Floats
    outcome: Floats
    treatment: Any
    nuisances: Mapping[str, Floats | Callable[[Floats], Floats]]
    effect: Floats
    instrument: Any = None
    directions: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict)
    event: Any = None

    def __post_init__(self) -> None:
        for name in ("probability", "outcome", "treatment"):
            require_length(getattr(self, name), len(self.cell), name)
        total = float(np.sum(self.probability))
        if not np.isclose(total, 1.0):
            raise OrthocalError(f"The probabilities of a population must add to 1; they add to {total:.6g}.")

    @property
    def truth(self) -> Floats:
        """The true effect of each row's cell."""
        return np.asarray(self.effect, dtype=np.float64)[self.cell]

    def observations(self, prediction: Floats | None = None) -> Observations:
        """The cells as rows, their probabilities as weights, predicted without error unless a prediction is given."""
        return Observations(
            covariates=np.asarray(self.cell, dtype=np.float64)[:, None],
            outcome=np.asarray(self.outcome, dtype=np.float64),
            treatment=np.asarray(self.treatment),
            weight=np.asarray(self.probability, dtype=np.float64),
            instrument=None if self.instrument is None else np.asarray(self.instrument),
            prediction=self.truth if prediction is None else prediction,
            event=None if self.event is None else np.asarray(self.event, dtype=bool),
        )

    def nuisances_at(self, prediction: Floats) -> dict[str, Floats]:
        """The true nuisances, those that depend on the prediction taken there."""
        return {
            name: np.asarray(true(prediction) if callable(true) else true, dtype=np.float64)
            for name, true in self.nuisances.items()
        }

    def ways_to_be_wrong(self) -> dict[str, dict[str, Floats]]:
        """The directions given, or each nuisance alone, by an error that differs from cell to cell."""
        if self.directions:
            return {name: dict(errors) for name, errors in self.directions.items()}
        tilt = np.cos(1.0 + 2.0 * np.arange(len(self.effect)))[self.cell]
        # A nuisance that is 0 at the truth, such as a mean score, has its size elsewhere.
        sizes = [self.nuisances_at(prediction) for prediction in (self.truth, *self._around())]
        return {name: {name: (max(_size(true[name]) for true in sizes) or 0.1) * tilt} for name in self.nuisances}

    def elsewhere(self, effect: Effect) -> list[Floats]:
        """Predictions other than the truth at which the effect's loss must be orthogonal as well.

        A loss whose nuisances do not depend on the prediction must be orthogonal at every one: the truth plus several constants
        are tried. One whose nuisances are taken at the prediction must be so at the best constant of people with the same
        prediction, with its nuisances taken there: cells are pooled, all of them and two by two (mathematics 2.3).
        """
        if not any(callable(true) for true in self.nuisances.values()):
            return self._around()
        return [self._best_constants(effect, pool) for pool in (np.zeros_like(self.cell), self.cell // 2)]

    def _around(self) -> list[Floats]:
        """The truth plus constants."""
        spread = float(np.std(self.effect)) or float(np.abs(self.effect).max()) or 1.0
        return [self.truth + away * spread for away in AWAY]

    def _best_constants(self, effect: Effect, pool: Integers) -> Floats:
        best = self.truth
        for _ in range(RANDOM_ERRORS):
            best = constants(_loss(effect, self, best, {}, 0.0), pool, int(pool.max()) + 1)[pool]
        return best


def _size(true: Floats) -> float:
    """Return the size of an error that can be seen in a nuisance of any unit."""
    return 0.5 * float(np.std(true)) + 0.1 * float(np.abs(true).max())


@dataclass(frozen=True, kw_only=True)
class OrthogonalityReport:
    """How far nuisance errors move the mean score, cell by cell.

    Parameters
    ----------
    bias : float
        Largest mean score at the true effect with true nuisances: 0 when the loss targets the effect.
    first_order : dict of str to float
        Largest derivative of the mean score at the true effect along each direction, and ``"jointly"`` along all: 0 when
        orthogonal.
    first_order_elsewhere : dict of str to float
        The same at other predictions, where people with different effects have one prediction: 0 when orthogonal there too.
    second_order : float
        Half the second derivative at the true effect along all directions: what remains.
    scale : float
        Typical size of a score, which the others are measured against.
    passed : bool
    """

    bias: float
    first_order: dict[str, float]
    first_order_elsewhere: dict[str, float]
    second_order: float
    scale: float
    passed: bool

    def __str__(self) -> str:
        lines = [f"{'mean score at the truth':<36}{self.bias:.2e}"]
        lines += [f"{'first order, ' + name:<36}{size:.2e}" for name, size in self.first_order.items()]
        lines += [f"{'  elsewhere, ' + name:<36}{size:.2e}" for name, size in self.first_order_elsewhere.items()]
        lines += [f"{'second order, jointly':<36}{self.second_order:.2e}", "passed" if self.passed else "FAILED"]
        return "\n".join(lines)


def check_orthogonality(effect: Effect, population: Population) -> OrthogonalityReport:
    r"""Check on an exact population that an effect's loss targets the effect and is orthogonal.

    Evaluates the mean score :math:`E[\partial\ell(\theta; g) \mid x]` at nuisances :math:`g_0 + h\,d` for each direction
    :math:`d` and for all at once, at the true effect and at other predictions. Unbiasedness alone does not catch a wrong sign:
    :math:`E[y - \mu_0] = 0` hides it (mathematics 12.1). The true effect alone does not catch a weight that is itself a nuisance,
    nor an uncorrected pinball loss: every score averages zero there, cell by cell, whatever multiplies it (mathematics 2.3).

    Parameters
    ----------
    effect : Effect
    population : Population
        With an effect that differs between cells. A nuisance that is taken at the prediction must be a function of it.

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
    directions, truth, elsewhere = {**wrong, "jointly": jointly}, population.truth, population.elsewhere(effect)
    first = {name: _slope(effect, population, truth, errors) for name, errors in directions.items()}
    further = {
        name: max(_slope(effect, population, prediction, errors) for prediction in elsewhere)
        for name, errors in directions.items()
    }
    centre = mean_score(effect, population, truth)
    up, down = (mean_score(effect, population, truth, jointly, h) for h in (STEP, -STEP))
    bias, second = float(np.abs(centre).max()), float(np.abs(up - 2 * centre + down).max() / (2 * STEP**2))
    scale = max(_typical_score(effect, population, prediction) for prediction in (truth, *elsewhere))
    passed = max(bias, *first.values(), *further.values()) <= TOLERANCE * scale
    return OrthogonalityReport(
        bias=bias,
        first_order=first,
        first_order_elsewhere=further,
        second_order=second,
        scale=scale,
        passed=bool(passed),
    )


def mean_score(
    effect: Effect,
    population: Population,
    prediction: Floats,
    errors: Mapping[str, Floats] | None = None,
    size: float = 1.0,
) -> Floats:
    """Return the mean derivative of the loss at a prediction in each cell, with nuisances that are wrong by errors times size."""
    derivative = _loss(effect, population, prediction, errors or {}, size).derivative(prediction)
    count, weight = len(population.effect), np.asarray(population.probability, dtype=np.float64)
    return np.asarray(group_sums(population.cell, derivative, count) / group_sums(population.cell, weight, count))


def _slope(effect: Effect, population: Population, prediction: Floats, errors: Mapping[str, Floats]) -> float:
    """Largest derivative of the mean score at no error: central differences at two sizes, extrapolated to zero."""
    slopes = []
    for h in (STEP, STEP / 2):
        up, down = (mean_score(effect, population, prediction, errors, sign * h) for sign in (1, -1))
        slopes.append((up - down) / (2 * h))
    return float(np.abs((4 * slopes[1] - slopes[0]) / 3).max())


def _typical_score(effect: Effect, population: Population, prediction: Floats) -> float:
    return float(np.abs(_loss(effect, population, prediction, {}, 0.0).derivative(prediction)).sum())


def _loss(
    effect: Effect, population: Population, prediction: Floats, errors: Mapping[str, Floats], size: float
) -> Loss:
    """The effect's loss at a prediction, with nuisances that are wrong by `errors` times `size`."""
    values = {
        name: true + size * errors[name] if name in errors else true
        for name, true in population.nuisances_at(prediction).items()
    }
    rows = population.observations(prediction)
    return loss_of_all(effect, rows, Fitted(values, clip=0.0)).at(prediction)
