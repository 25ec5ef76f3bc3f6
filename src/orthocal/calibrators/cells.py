"""Cells of groups and bins of the prediction, and what the residuals say in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums, step_of
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.group_columns import codes_of, is_known
from orthocal.losses import Loss
from orthocal.observations import as_groups

MOST_GROUPS = 1000
"""Values that a column of groups can have, at most."""


class CellFamily(NamedTuple):
    """Cells that share no row: the groups of one column, each divided at the edges.

    `values` empty: all rows are one group. Rows in none of the groups have the code after the last.
    """

    column: str
    values: tuple[Any, ...]
    code: Integers
    edges: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Groups, with one more for rows in none of them, and bins."""
        return len(self.values) + 1, len(self.edges) + 1

    @property
    def groups(self) -> int:
        """How many groups there are to be looked at."""
        return max(len(self.values), 1)

    def cells(self, place: Integers) -> Integers:
        """Return each row's cell, given its bin: groups in turn, and in a group its bins."""
        return np.asarray(self.code * self.shape[1] + place) if len(self.edges) else self.code

    def undivided(self) -> CellFamily:
        """Return the groups as they are, without bins."""
        return self._replace(edges=self.edges[:0])


class CellMoments(NamedTuple):
    """Of each cell: sums of residuals and masses, the variance of the residual sum, and the effective number of rows or clusters.

    The variance is of r - rbar m: the mean residual is that of a ratio of sums.
    """

    residual: Floats
    mass: Floats
    variance: Floats
    units: Floats

    @classmethod
    def of(cls, sums: Floats) -> CellMoments:
        """From the sums of r, m, r^2, r m and m^2 over the units of each cell."""
        residual, mass, squares, cross, weights = sums
        plain = cls(residual, mass, squares, weights)
        mean = plain.mean
        variance = np.maximum(squares - 2 * mean * cross + mean**2 * weights, 0.0)  # sum of (r - rbar m)^2
        return plain._replace(variance=variance, units=np.divide(mass**2, weights, out=0 * mass, where=weights > 0))

    @property
    def mean(self) -> Floats:
        """Mean residual by mass; 0 in a cell without mass."""
        return np.divide(self.residual, self.mass, out=np.zeros_like(self.mass), where=self.mass > 0)


class Residuals(NamedTuple):
    """Residuals and masses of the rows at a prediction, what is summed of them, and the bin and the cluster of each row."""

    terms: tuple[Floats, ...]
    place: Integers
    clusters: Integers | None

    @classmethod
    def of(cls, prediction: Floats, loss: Loss, edges: Floats) -> Residuals:
        """At this prediction: target less prediction, times mass."""
        return cls(_terms(-loss.derivative(prediction), loss.mass), step_of(prediction, edges), loss.groups)

    def moments(self, family: CellFamily) -> list[tuple[CellFamily, CellMoments]]:
        """Return what the residuals say in the groups of a family, and in its bins where it has more than one."""
        wholes, (groups, bins) = family.undivided(), family.shape
        if self.clusters is None:  # sums of a group are those of its bins
            sums = cell_sums(family.cells(self.place), self.terms, groups * bins)
            whole = sums.reshape(len(sums), groups, bins).sum(axis=2)
        else:
            sums = cluster_squares(family.cells(self.place), self, groups * bins)
            whole = cluster_squares(wholes.cells(self.place), self, groups)
        found = [(wholes, CellMoments.of(whole)), (family, CellMoments.of(sums))]
        return found[: 2 if bins > 1 else 1]

    def by_unit(self) -> tuple[Floats, Floats]:
        """Return the residual and the mass of each row, or of each cluster."""
        residual, mass = self.terms[:2]
        if self.clusters is None:
            return residual, mass
        several = int(self.clusters.max()) + 1
        return group_sums(self.clusters, residual, several), group_sums(self.clusters, mass, several)


def families(groups: Mapping[str, Any], n: int, edges: Floats) -> list[CellFamily]:
    """Return all rows and every column of groups, divided at the edges."""
    values = {"": (), **{name: _values(name, given, n) for name, given in groups.items()}}
    return [CellFamily(name, own, codes_of(name, own, groups, n), edges) for name, own in values.items()]


def _values(name: str, given: Any, n: int) -> tuple[Any, ...]:
    """Return the groups of a column, in increasing order; missing ones are none."""
    labels = as_groups(given, f"groups[{name!r}]", n)
    if labels.dtype.kind not in "fiubU":
        raise OrthocalError(
            f"`groups[{shown(name)}]` must hold text, booleans or numbers; it holds {labels.dtype}. Convert it to text first."
        )
    found = np.unique(labels[is_known(labels)])
    if not name or not 1 <= len(found) <= MOST_GROUPS:
        raise OrthocalError(
            f"`groups[{shown(name)}]` must have a name and 1 to {MOST_GROUPS} values; it has {len(found)}. Cut it into "
            "ranges first."
        )
    return tuple(found.tolist())


def _terms(residual: Floats, mass: Floats) -> tuple[Floats, ...]:
    return residual, mass, residual**2, residual * mass, mass**2


def cell_sums(cell: Integers, terms: Sequence[Floats], count: int) -> Floats:
    """Return the sums of every term in each of so many cells."""
    return np.array([group_sums(cell, term, count) for term in terms])


def cluster_squares(cell: Integers, rows: Residuals, count: int) -> Floats:
    """Return the sums of the terms where a cluster's sums in a cell are one unit."""
    clusters = np.asarray(rows.clusters)
    several = int(clusters.max()) + 1
    pairs, index = np.unique(cell * several + clusters, return_inverse=True)
    residual, mass = (group_sums(index, term, len(pairs)) for term in rows.terms[:2])
    return cell_sums(pairs // several, _terms(residual, mass), count)
