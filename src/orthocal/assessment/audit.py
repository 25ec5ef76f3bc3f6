"""Audit: is a prediction calibrated in every named subgroup? One test over all of them, on fresh rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.stats import norm
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Labels
from orthocal.assessment.audit_records import EVERYONE, Audit, AuditedCell
from orthocal.assessment.limits import MOST_DRAWS
from orthocal.calibrators.cells import CellFamily, CellMoments, Residuals, families
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.calibrators.skewness import Skewed, believed_skewness, cautious, clearly_skewed, skewed_all
from orthocal.errors import OrthocalError, require_at_least, require_inside, require_whole
from orthocal.folds import require_seed
from orthocal.group_columns import columns_of_groups, value_in_words
from orthocal.losses import Loss, require_loss
from orthocal.losses.counting import MOST_BINS
from orthocal.observations import as_numbers


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
    2 of 3 cells are miscalibrated (p = 0.0001, adjusted for all cells).
      who = women over 60: too high by 1.04 (0.926 to 1.16)
      all rows: too high by 0.0847 (0.0464 to 0.123)
    """
    plan = AuditPlan(bins, smallest, level, draws, random_state)
    require_loss(loss)
    columns = columns_of_groups(groups, len(loss))
    return audited(as_numbers(prediction, "prediction", len(loss)), loss, columns, plan)


class AuditPlan(NamedTuple):
    """How an audit is made; `phrased` names the columns whose labels are whole phrases."""

    bins: int = 5
    smallest: float = 30
    level: float = 0.95
    draws: int = 9999
    random_state: Any = 0
    phrased: frozenset[str] = frozenset()

    def require_sense(self) -> None:
        """Settings lie where they make sense."""
        require_whole(self.bins, 1, "bins", MOST_BINS)
        require_whole(self.draws, 1, "draws", MOST_DRAWS)
        require_inside(self.level, 0, 1, "level")
        require_at_least(self.smallest, 2, "smallest")
        require_seed(self.random_state)


def audited(prediction: Floats, loss: Loss, groups: Mapping[str, Labels], plan: AuditPlan) -> Audit:
    """Test whether predictions are calibrated in groups; see `audit`."""
    plan.require_sense()
    rows = np.flatnonzero(loss.weight > 0)
    values, columns = prediction[rows], {name: labels[rows] for name, labels in groups.items()}
    loss = loss[rows].at(values)
    edges = uniform_mass_edges(values, loss.weight, plan.bins)
    residuals = Residuals.of(values, loss, edges)
    tested = [
        _tested(family, found, residuals, plan.smallest)
        for column in families(columns, len(rows), edges)
        for family, found in residuals.moments(column)
    ]
    return _judged(tested, plan, clearly_skewed(residuals))


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


class Statistics(NamedTuple):
    """Of each cell: the size of its t statistic, its standard error, its degrees of freedom, and the skewness taken out."""

    score: Floats
    error: Floats
    free: Floats
    skewness: Floats
    is_sure: bool
    """Whether residuals are clearly skewed; if not, the smaller statistic counts, and intervals are as wide as both."""

    @classmethod
    def of(cls, found: CellMoments, noise: csr_array, skewed: Skewed | None) -> Statistics:
        """From what was found in the cells and each unit's part of their noise."""
        free = found.units - 1
        if skewed is not None:
            error, skewness = skewed.errors(found), skewed.skewness / np.sqrt(found.units)
            return cls(skewed.without(found.mean / error, found.units), error, free, skewness, True)
        cubes = np.asarray(noise.power(3).sum(axis=0), dtype=np.float64).ravel()
        error, skewness = np.sqrt(found.variance) / found.mass, believed_skewness(cubes, found.variance, found.units)
        return cls(cautious(found.mean / error, skewness), error, free, skewness, False)

    def reaches(self, critical: float) -> tuple[Floats, Floats]:
        """Return how far intervals reach down and up, given the critical value of a normal number."""
        reach = np.asarray(t_distribution.isf(norm.sf(critical), self.free))
        lower, upper = skewed_all(-reach, self.skewness), skewed_all(reach, self.skewness)
        if not self.is_sure:
            lower, upper = np.minimum(-reach, lower), np.maximum(reach, upper)
        return lower * self.error, upper * self.error


def _judged(tested: Sequence[CellTests], plan: AuditPlan, skewed: Skewed | None) -> Audit:
    """Return what the largest statistic says of each cell."""
    found = CellMoments(*(np.concatenate(parts) for parts in zip(*(one.found for one in tested), strict=True)))
    if not len(found.mass):
        raise OrthocalError("No cell has enough rows to be tested. Use fewer groups or bins, or a smaller `smallest`.")
    noise = hstack([one.noise for one in tested]).tocsr()
    own = Statistics.of(found, noise, skewed)
    normal = -norm.ppf(np.exp(np.maximum(t_distribution.logsf(own.score, own.free), -700.0)))
    largest = _largest(noise, plan.draws, np.random.default_rng(plan.random_state))
    p_values = (1 + plan.draws - np.searchsorted(largest, normal, side="left")) / (1 + plan.draws)
    lower, upper = own.reaches(float(np.quantile(largest, plan.level)))
    places = [(one.family, int(cell)) for one in tested for cell in one.which]
    cells = []
    for k in np.argsort(-normal, kind="stable").tolist():
        excess, (family, cell) = -float(found.mean[k]), places[k]
        ends = (excess + float(lower[k]), excess + float(upper[k]))
        where = _where(family, cell, plan.phrased)
        rows, p_value = float(found.units[k]), float(p_values[k])
        cells.append(AuditedCell(**where, rows=rows, excess=excess, interval=ends, p_value=p_value))
    return Audit(cells=tuple(cells), p_value=float(p_values.min()), level=plan.level, draws=plan.draws)


def _largest(noise: csr_array, draws: int, rng: np.random.Generator) -> Floats:
    """Return the sorted largest statistics of the multiplier bootstrap: of normal numbers with the correlation of the cells."""
    products = np.asarray((noise.T @ noise).toarray())
    scale = np.sqrt(np.diag(products))
    strength, direction = np.linalg.eigh(products / np.outer(scale, scale))
    root = direction * np.sqrt(np.maximum(strength, 0.0))
    return np.sort(np.abs(rng.standard_normal((draws, len(root))) @ root.T).max(axis=1))


def _where(family: CellFamily, cell: int, phrased: frozenset[str]) -> dict[str, Any]:
    """Return the group and the range of predictions of a cell."""
    group, place = divmod(cell, family.shape[1])
    ends = np.concatenate([[-np.inf], family.edges, [np.inf]]).tolist()
    words = value_in_words(family.values[group]) if family.values else EVERYONE
    return {
        "column": family.column,
        "group": words if not family.values or family.column in phrased else f"{family.column} = {words}",
        "range": (ends[place], ends[place + 1]) if len(family.edges) else None,
    }
