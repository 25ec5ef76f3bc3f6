"""Audit: is a prediction calibrated in every named subgroup? One test over all of them, on fresh rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.stats import norm
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats
from orthocal.calibrators.cells import CellFamily, CellMoments, Residuals, families
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.calibrators.skewness import believed_skewness, cautious, skewed_all
from orthocal.errors import OrthocalError, require_at_least, require_inside, require_whole
from orthocal.losses import Loss
from orthocal.observations import as_groups, as_numbers

EVERYONE = "all rows"


@dataclass(frozen=True, kw_only=True)
class AuditedCell:
    """What an audit found in one cell: a group, or a group and a range of predictions.

    Parameters
    ----------
    column, value : str
        Of the group; without a column, all rows.
    range : (float, float) or None
        Of predictions, closed on the right; None where the whole group is meant.
    rows : float
        Effective number of rows (clusters).
    excess : float
        By how much predictions are too high on average, in units of the residual.
    interval : (float, float)
        Of the excess, simultaneous over all cells.
    p_value : float
        Adjusted for all cells.
    """

    column: str
    value: str
    range: tuple[float, float] | None
    rows: float
    excess: float
    interval: tuple[float, float]
    p_value: float

    @property
    def name(self) -> str:
        """The cell in words."""
        group = f"{self.column} = {self.value}" if self.column else EVERYONE
        if self.range is None:
            return group
        low, high = self.range
        if np.isinf(low):
            return f"{group}, predictions up to {high:.3g}"
        return f"{group}, predictions above {low:.3g}" + ("" if np.isinf(high) else f", up to {high:.3g}")

    def __str__(self) -> str:
        sign = 1.0 if self.excess >= 0 else -1.0
        low, high = sorted(sign * end for end in self.interval)
        side = "high" if self.excess >= 0 else "low"
        return f"{self.name}: too {side} by {abs(self.excess):.3g} ({low:.3g} to {high:.3g})"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Whether a prediction is calibrated in every named subgroup.

    Parameters
    ----------
    cells : tuple of AuditedCell
        The most surprising first.
    p_value : float
        Of the hypothesis that no cell is off.
    level : float
        Of confidence.
    draws : int
        Of the multiplier bootstrap.

    Examples
    --------
    >>> from orthocal import Audit
    >>> from orthocal.assessment.audit import AuditedCell
    >>> cell = AuditedCell(
    ...     column="age", value="over 60", range=None, rows=900.0, excess=3.1, interval=(1.2, 5.0), p_value=0.002
    ... )
    >>> print(Audit(cells=(cell,), p_value=0.002, level=0.95, draws=9999))
    1 of 1 cells are off (p = 0.002, adjusted for all cells).
      age = over 60: too high by 3.1 (1.2 to 5)
    """

    cells: tuple[AuditedCell, ...]
    p_value: float
    level: float
    draws: int

    @property
    def found(self) -> tuple[AuditedCell, ...]:
        """The cells that are off, by adjusted p-values."""
        return tuple(cell for cell in self.cells if cell.p_value <= 1 - self.level)

    def __str__(self) -> str:
        head = f"{len(self.found)} of {len(self.cells)} cells are off (p = {self.p_value:.3g}, adjusted for all cells)."
        return "\n".join([head, *(f"  {cell}" for cell in self.found)])


def audit(
    prediction: Any,
    loss: Loss,
    groups: Mapping[str, Any],
    *,
    bins: int = 5,
    smallest: float = 30,
    level: float = 0.95,
    draws: int = 9999,
    random_state: Any = 0,
) -> Audit:
    r"""Test whether predictions are calibrated in all rows and every group, and in bins of the prediction within them.

    The statistic is the largest :math:`|t|` over cells. Its distribution is that of the multiplier bootstrap of
    :math:`r - \bar r m` by row or cluster, whose normal multipliers make it the largest of normal numbers with the cells'
    correlation; each t is first made normal by its own degrees of freedom (mathematics 4.8). Rows must be fresh: seen neither by
    the model nor by the map.

    Parameters
    ----------
    prediction : array of shape (rows,)
    loss : Loss
    groups : mapping of str to array of shape (rows,)
        Every value of every column is a group.
    bins : int, default 5
        Of the prediction, of equal weight; 1 looks at whole groups only.
    smallest : float, default 30
        Fewest rows (clusters; effective number) of a cell that is tested.
    level : float, default 0.95
        Of the intervals, which hold for all cells together.
    draws : int, default 9999
    random_state : int or Generator, default 0

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import QuadraticLoss, audit
    >>> rng = np.random.default_rng(0)
    >>> group, effect = rng.choice(["women over 60", "others"], 4000, p=[0.1, 0.9]), rng.standard_normal(4000)
    >>> loss = QuadraticLoss(effect + rng.standard_normal(4000), np.ones(4000))
    >>> print(audit(effect + (group == "women over 60"), loss, {"who": group}, bins=1))
    2 of 3 cells are off (p = 0.0001, adjusted for all cells).
      who = women over 60: too high by 1.04 (0.925 to 1.16)
      all rows: too high by 0.0847 (0.0463 to 0.123)
    """
    require_whole(bins, 1, "bins")
    require_whole(draws, 1, "draws")
    require_inside(level, 0, 1, "level")
    require_at_least(smallest, 2, "smallest")
    rows = np.flatnonzero(loss.weight > 0)
    values = as_numbers(prediction, "prediction", len(loss))[rows]
    columns = {name: as_groups(given, f"groups[{name!r}]", len(loss))[rows] for name, given in groups.items()}
    loss = loss[rows].at(values)
    edges = uniform_mass_edges(values, loss.weight, bins)
    residuals = Residuals.of(values, loss, edges)
    tested = [
        _tested(family, found, residuals, smallest)
        for column in families(columns, len(rows), edges)
        for family, found in residuals.moments(column)
    ]
    return _judged(tested, level, draws, np.random.default_rng(random_state))


class CellTests(NamedTuple):
    """The cells of a family that are large enough, what was found in them, and each unit's part of their noise."""

    family: CellFamily
    which: Any
    found: CellMoments
    noise: csr_array


def _tested(family: CellFamily, found: CellMoments, rows: Residuals, smallest: float) -> CellTests:
    residual, mass = rows.terms[:2]
    cell = family.cells(rows.place)
    able = (found.units >= smallest) & (found.mass > 0) & (found.variance > 0)
    able[family.groups * family.shape[1] :] = False
    which = np.flatnonzero(able)
    unit = np.arange(len(cell)) if rows.clusters is None else rows.clusters
    rest = residual - found.mean[cell] * mass
    noise = csr_array((rest, (unit, cell)), shape=(int(unit.max()) + 1, len(able)))  # rows of one cluster add up
    return CellTests(family, which, CellMoments(*(one[which] for one in found)), noise[:, which])


def _judged(tested: Sequence[CellTests], level: float, draws: int, rng: np.random.Generator) -> Audit:
    """Return what the largest statistic says of each cell."""
    found = CellMoments(*(np.concatenate(parts) for parts in zip(*(one.found for one in tested), strict=True)))
    if not len(found.mass):
        raise OrthocalError("No cell has enough rows to be tested. Use fewer groups or bins, or a smaller `smallest`.")
    error, free = np.sqrt(found.variance) / found.mass, found.units - 1
    noise = hstack([one.noise for one in tested]).tocsr()
    cubes = np.asarray(noise.power(3).sum(axis=0)).ravel()
    skewness = believed_skewness(cubes, found.variance, found.units)
    score = cautious(found.mean / error, skewness)
    normal = -norm.ppf(np.exp(np.maximum(t_distribution.logsf(score, free), -700.0)))
    largest = _largest(noise, draws, rng)
    p_values = (1 + draws - np.searchsorted(largest, normal, side="left")) / (1 + draws)
    reach = np.asarray(t_distribution.isf(norm.sf(np.quantile(largest, level)), free))
    lower = np.minimum(-reach, skewed_all(-reach, skewness)) * error
    upper = np.maximum(reach, skewed_all(reach, skewness)) * error
    places = [(one.family, int(cell)) for one in tested for cell in one.which]
    cells = []
    for k in np.argsort(-normal, kind="stable"):
        excess, where = -float(found.mean[k]), _where(*places[k])
        ends = (excess + float(lower[k]), excess + float(upper[k]))
        rows, p_value = float(found.units[k]), float(p_values[k])
        cells.append(AuditedCell(**where, rows=rows, excess=excess, interval=ends, p_value=p_value))
    return Audit(cells=tuple(cells), p_value=float(p_values.min()), level=level, draws=draws)


def _largest(noise: csr_array, draws: int, rng: np.random.Generator) -> Floats:
    """Return the sorted largest statistics of the multiplier bootstrap: of normal numbers with the correlation of the cells."""
    products = np.asarray((noise.T @ noise).toarray())
    scale = np.sqrt(np.diag(products))
    strength, direction = np.linalg.eigh(products / np.outer(scale, scale))
    root = direction * np.sqrt(np.maximum(strength, 0.0))
    return np.sort(np.abs(rng.standard_normal((draws, len(root))) @ root.T).max(axis=1))


def _where(family: CellFamily, cell: int) -> dict[str, Any]:
    """Return the group and the range of predictions of a cell."""
    group, place = divmod(cell, family.shape[1])
    ends = np.concatenate([[-np.inf], family.edges, [np.inf]]).tolist()
    return {
        "column": family.column,
        "value": str(family.values[group]) if family.values else "",
        "range": (ends[place], ends[place + 1]) if len(family.edges) else None,
    }
