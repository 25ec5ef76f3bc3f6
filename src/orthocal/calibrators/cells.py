"""Cells of groups and bins of the prediction, and what the residuals say in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums, step_of
from orthocal.errors import OrthocalError
from orthocal.group_maps import codes_of, is_known
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

    def cells(self, prediction: Floats) -> Integers:
        """Return each row's cell: groups in turn, and in a group its bins."""
        return np.asarray(self.code * self.shape[1] + step_of(prediction, self.edges))


class CellMoments(NamedTuple):
    """Of each cell: sums of residuals and masses, the variance of the residual sum, and the effective number of rows or clusters.

    The variance is of r - rbar m: the mean residual is that of a ratio of sums.
    """

    residual: Floats
    mass: Floats
    variance: Floats
    units: Floats

    @property
    def mean(self) -> Floats:
        """Mean residual by mass; 0 in a cell without mass."""
        return np.divide(self.residual, self.mass, out=np.zeros_like(self.mass), where=self.mass > 0)


def families(groups: Mapping[str, Any], n: int, edges: Floats) -> list[CellFamily]:
    """Return all rows and every column of groups, each undivided and divided at the edges."""
    found = []
    for column, values in {"": (), **{name: _values(name, given, n) for name, given in groups.items()}}.items():
        code = codes_of(column, values, groups, n)
        found += [CellFamily(column, values, code, cut) for cut in (edges[:0], edges)]
    return found


def _values(name: str, given: Any, n: int) -> tuple[Any, ...]:
    """Return the groups of a column, in increasing order; missing ones are none."""
    labels = as_groups(given, f"groups[{name!r}]", n)
    found = np.unique(labels[is_known(labels)])
    if not name or not 1 <= len(found) <= MOST_GROUPS:
        raise OrthocalError(
            f"`groups[{name!r}]` must have a name and 1 to {MOST_GROUPS} values; it has {len(found)}. Cut it into ranges first."
        )
    return tuple(found.tolist())


def moments(cell: Integers, residual: Floats, mass: Floats, clusters: Integers | None, count: int) -> CellMoments:
    """Return what the residuals say in each of so many cells; of clusters, their sums in a cell are the units."""
    if clusters is not None:
        several = int(clusters.max()) + 1
        pairs, index = np.unique(cell * several + clusters, return_inverse=True)
        residual, mass = (group_sums(index, one, len(pairs)) for one in (residual, mass))
        cell = pairs // several
    sums, masses, squares, cross, weights = (
        group_sums(cell, one, count) for one in (residual, mass, residual**2, residual * mass, mass**2)
    )
    plain = CellMoments(sums, masses, squares, weights)
    mean = plain.mean
    variance = np.maximum(squares - 2 * mean * cross + mean**2 * weights, 0.0)  # sum of (r - rbar m)^2
    units = np.divide(masses**2, weights, out=np.zeros_like(masses), where=weights > 0)
    return plain._replace(variance=variance, units=units)
