"""Multicalibration: predictions that are right in every named subgroup, not only on average over all people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import t as t_distribution
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats
from orthocal.calibrators.cells import CellFamily, CellMoments, Residuals, families
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.calibrators.skewness import Skewed, clearly_skewed
from orthocal.errors import OrthocalError, is_number, require_at_least, require_whole
from orthocal.formats import shown
from orthocal.group_columns import columns_of_groups
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.losses import Loss, require_loss, total_mass
from orthocal.losses.counting import MOST_BINS
from orthocal.observations import as_numbers

CHANCE = 0.04
"""Chance that anything is changed in a multicalibrated model, by Bonferroni's bound over all cells; 0.01 is left for means of few
rows, which are not quite normal."""
MOST_STEPS = 10_000


class Multicalibrator(BaseEstimator):  # type: ignore[misc]
    r"""Fit shifts of groups and bins of the prediction until no cell is miscalibrated beyond its tolerance (multicalibration).

    After Hebert-Johnson and others (2018). A *cell* is a group, or a group and a bin of the current prediction. With
    :math:`\bar r_c` its mean residual and :math:`s_c` its share of the mass, adding :math:`\bar r_c` on the cell lowers the mean
    loss by :math:`s_c \bar r_c^2 / 2`.
    Cells with :math:`s_c \bar r_c^2 > \alpha_c^2` are changed, those of one column in one round, so there are at most
    :math:`2 R_0 / \alpha^2` steps (mathematics 4.8). Every value of every column is a group, and all rows are one; for
    intersections give a column of them. The loss must be quadratic and universally orthogonal: then each group inherits the
    theorem on calibration errors.

    Parameters
    ----------
    tolerance : float, optional
        :math:`\alpha`, in units of the effect. By default that of each cell is its own noise: the root of its share times the
        standard error of its mean residual times the critical value over all cells, so that a multicalibrated model is left
        as it is in at least 95% of samples.
    bins : int, default 10
        Of the prediction, of equal weight.
    max_steps : int, optional
        Cells changed, at most. By default the proven bound.
    smallest : float, default 100
        Fewest rows (clusters; effective number) of a cell that can be changed.

    Attributes
    ----------
    map_ : GroupMap
    steps_ : int
        Cells that were changed.
    bound_ : float
        Proven bound on them; infinite where the mass of a ratio effect is not positive in every row.
    tolerance_ : float
        The smallest :math:`\alpha_c`.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import Multicalibrator, QuadraticLoss
    >>> rng = np.random.default_rng(0)
    >>> sex, prediction = rng.choice(["f", "m"], 4000), rng.standard_normal(4000)
    >>> effect = prediction + np.where(sex == "f", 0.5, -0.5)
    >>> loss = QuadraticLoss(effect + rng.standard_normal(4000), np.ones(4000))
    >>> fitted = Multicalibrator().fit(prediction, loss, {"sex": sex})
    >>> fitted.predict([0.0, 0.0], {"sex": ["f", "m"]}).round(1)
    array([ 0.5, -0.5])
    """

    map_: GroupMap
    steps_: int
    bound_: float
    tolerance_: float

    def __init__(
        self,
        tolerance: float | None = None,
        bins: int = 10,
        max_steps: int | None = None,
        smallest: float = 100,
    ) -> None:
        self.tolerance = tolerance
        self.bins = bins
        self.max_steps = max_steps
        self.smallest = smallest

    def fit(self, prediction: Any, loss: Loss, groups: Mapping[str, Any]) -> Self:
        """Learn the shifts from predictions, losses and columns of groups of the same rows."""
        self._require_settings()
        require_loss(loss)
        values = as_numbers(prediction, "prediction", len(loss))
        require_quadratic(values, loss)
        counting = loss.weight > 0
        rows = slice(None) if counting.all() else np.flatnonzero(counting)
        columns = {name: labels[rows] for name, labels in columns_of_groups(groups, len(loss)).items()}
        values, loss = values[rows], loss[rows]
        cells = families(columns, len(loss), uniform_mass_edges(values, loss.weight, self.bins))
        gate = self._gate(cells, values, loss)
        self.tolerance_, self.bound_ = gate.least, _bound(values, loss, gate.least)
        most = self.max_steps if self.max_steps is not None else int(min(self.bound_, MOST_STEPS))
        self.map_, self.steps_ = _shifted(cells, values, loss, gate, most)
        return self

    def predict(self, prediction: Any, groups: Mapping[str, Any]) -> Floats:
        """Calibrated prediction for each prediction, given the columns of groups by name."""
        return self.map_.predict(prediction, groups)

    def _require_settings(self) -> None:
        require_whole(self.bins, 1, "bins", MOST_BINS)
        require_at_least(self.smallest, 2, "smallest")
        if self.tolerance is not None and not (is_number(self.tolerance) and self.tolerance > 0):
            raise OrthocalError(
                f"`tolerance` must be a positive number; it is {shown(self.tolerance)}. Leave it out to adapt to noise."
            )
        if self.max_steps is not None:
            require_whole(self.max_steps, 0, "max_steps")

    def _gate(self, cells: Sequence[CellFamily], prediction: Floats, loss: Loss) -> Gate:
        """Return what a cell must exceed; the number of cells looked at and the least tolerance are those of the start."""
        rows = Residuals.of(prediction, loss, cells[0].edges)
        found = [pair for family in cells for pair in rows.moments(family)]
        looked = [one.units[: family.groups * family.shape[1]] for family, one in found]
        total = sum(int((units >= self.smallest).sum()) for units in looked)
        skewed = None if self.tolerance is not None else clearly_skewed(rows)
        gate = Gate(self.tolerance, self.smallest, total_mass(loss), max(total, 1), 0.0, skewed)
        least = min(float(gate.squares(one).min()) for _, one in found)
        return gate._replace(least=float(np.sqrt(least)))


class Gate(NamedTuple):
    """What a cell must exceed to be changed."""

    tolerance: float | None
    smallest: float
    mass: float
    cells: int
    least: float
    skewed: Skewed | None

    def squares(self, found: CellMoments) -> Floats:
        """Return the squared tolerance of each cell; infinite in cells that are too small or without mass."""
        able = (found.units >= self.smallest) & (found.mass > 0)
        squares = np.full(len(able), np.inf)
        if self.tolerance is not None:
            squares[able] = self.tolerance**2
            return squares
        own = CellMoments(*(one[able] for one in found))
        critical = t_distribution.isf(CHANCE / 2 / self.cells, own.units - 1)
        squares[able] = (critical * self._errors(own)) ** 2 * own.mass / self.mass
        return np.asarray(np.maximum(squares, self.least**2))

    def _errors(self, found: CellMoments) -> Floats:
        """Return standard errors of mean residuals; where residuals are skewed, larger by what that adds to the statistic."""
        if self.skewed is None:
            return np.asarray(np.sqrt(found.variance) / found.mass)
        errors = self.skewed.errors(found)
        plain = np.abs(found.mean) / errors
        score = np.minimum(plain, self.skewed.without(found.mean / errors, found.units))
        return errors * np.divide(plain, score, out=np.ones(len(plain)), where=score > 0)


def require_quadratic(prediction: Floats, loss: Loss) -> None:
    """The loss is universally orthogonal and quadratic, so that a group's mean residual says by how much it is off."""
    start = loss.derivative(prediction)
    width = max(
        1.0, *(float(np.abs(one).max(initial=0.0)) for one in (prediction, start))
    )  # or rounding hides the slope
    slope = (loss.derivative(prediction + width) - start) / width
    if loss.at(prediction) is not loss or not np.allclose(slope, loss.mass, rtol=1e-6, atol=1e-6):
        raise OrthocalError(
            f"Multicalibration needs a quadratic, universally orthogonal loss; a {type(loss).__name__} is not one. Quantiles and "
            "expectiles are calibrated for all rows together, or for each subgroup on its own rows."
        )


def _bound(prediction: Floats, loss: Loss, least: float) -> float:
    """Return twice the mean loss above its minimum over the least squared tolerance."""
    mass = loss.mass
    if not ((mass > 0).all() and 0 < least < np.inf):
        return np.inf
    return float((loss.derivative(prediction) ** 2 / mass).sum() / mass.sum() / least**2)


def _shifted(
    cells: Sequence[CellFamily], prediction: Floats, loss: Loss, gate: Gate, most: int
) -> tuple[GroupMap, int]:
    """Return the map and the number of cells changed: each round changes those of the column that explains most."""
    rounds: list[GroupShifts] = []
    steps = 0
    while steps < most:
        rows = Residuals.of(prediction, loss, cells[0].edges)
        found = [
            (family, *_stand_out(family, one, gate, most - steps))
            for column in cells
            for family, one in rows.moments(column)
        ]
        family, shifts, gain = max(found, key=lambda one: one[2])
        if not gain > 0:
            break
        steps += int(np.count_nonzero(shifts))
        rounds.append(GroupShifts(family.column, family.values, family.edges, shifts.reshape(family.shape)))
        prediction = prediction + shifts[family.cells(rows.place)]
    return GroupMap(tuple(rounds)), steps


def _stand_out(family: CellFamily, found: CellMoments, gate: Gate, most: int) -> tuple[Floats, float]:
    """Return the shift of each cell, 0 where it does not stand out, and by how much they lower the loss beyond their noise."""
    excess = found.mass / gate.mass * found.mean**2 - gate.squares(found)
    excess[family.groups * family.shape[1] :] = -np.inf  # rows in none of the groups
    strongest = np.argsort(-excess, kind="stable")[:most]
    changed = strongest[excess[strongest] > 0]
    shifts = np.zeros(len(excess))
    shifts[changed] = found.mean[changed]
    return shifts, float(excess[changed].sum())
