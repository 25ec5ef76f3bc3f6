"""Bins of the prediction and the moments of the residuals in them (MATH 7.3, general form)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array

from orthocal.arrays import group_sums, is_sorted, step_of
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.errors import OrthocalError
from orthocal.losses import total_mass
from orthocal.solvers import constants

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers
    from orthocal.losses import Loss

MOST_LEVERAGE = 0.9
"""Cap on a row's share of its bin's mass, so that a row that makes up a bin does not make its variance infinite."""


@dataclass(frozen=True, eq=False)
class Binned:
    r"""Residuals summed by bin and cluster (a row is its own cluster when there are no groups).

    Parameters
    ----------
    edges : array
        Inner edges; bin b is (edges[b-1], edges[b]].
    index : array of shape (rows,)
        Each row's bin.
    residual : array
        :math:`\bar r_b = \sum r / \sum m` with :math:`r = -\partial\ell(\theta)`.
    pairs : array
        :math:`U_b`, the average of products of residuals of different clusters: unbiased for the squared mean.
    covariance : array of shape (bins, bins)
        Of the mean residuals; diagonal unless clusters span bins.
    share : array
        Share of the mass.
    clusters : int
        How many independent units there are.
    share_variance : array of shape (bins, bins)
        Of the shares of mass.
    freedom : array
        Degrees of freedom of each bin's variance: rows (or clusters) less one, counted by Kish's effective number where their
        masses differ.
    """

    edges: Floats
    index: Integers
    residual: Floats
    pairs: Floats
    covariance: Floats
    share: Floats
    clusters: int
    share_variance: Floats
    freedom: Floats

    @property
    def variance(self) -> Floats:
        """Of each bin's mean residual."""
        return np.diag(self.covariance)


def cut(prediction: Floats, loss: Loss, bins: int) -> tuple[Floats, Integers]:
    """Return (inner edges, bin of each row) for bins of nearly equal weight that never divide tied predictions.

    A bin with fewer than two clusters has no variance; it joins its left neighbour (the first joins its right one).
    """
    edges = uniform_mass_edges(prediction, loss.weight, bins)
    index = _bin_of(prediction, edges)
    units = len(prediction) if loss.groups is None else len(np.unique(loss.groups))
    if units < 2:
        raise OrthocalError(f"A verdict must rest on at least two rows, or clusters; there is {units}. Use more data.")
    keep = _edges_with_two(loss.groups, index, len(edges) + 1)
    if len(keep) == len(edges):
        return edges, index
    return edges[keep], _bin_of(prediction, edges[keep])


def _bin_of(prediction: Floats, edges: Floats) -> Integers:
    """Return each row's bin ( , ]; of sorted predictions by counting."""
    if is_sorted(prediction):
        ends = np.concatenate([np.searchsorted(prediction, edges, side="right"), [len(prediction)]])
        return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return step_of(prediction, edges)


def residual_moments(prediction: Floats, loss: Loss, edges: Floats, index: Integers) -> Binned:
    """Sum residuals and masses by bin and cluster, and return their moments."""
    mass, residual = loss.mass, -loss.derivative(prediction)
    total, count = total_mass(loss), len(edges) + 1
    cell, unit, clusters = index, None, len(prediction)
    if loss.groups is not None:
        unit, cell, mass, residual = _by_cluster(loss.groups, index, mass, residual, count)
        clusters = int(unit.max()) + 1
    mass_b = group_sums(cell, mass, count)
    if not (mass_b > 0).all():
        raise OrthocalError(f"Every bin must have positive mass; one has {mass_b.min():.4g}. Use fewer `bins`.")
    sum_b = group_sums(cell, residual, count)
    mean = sum_b / mass_b
    pairs = (sum_b**2 - group_sums(cell, residual**2, count)) / (mass_b**2 - group_sums(cell, mass**2, count))
    size = np.bincount(cell, minlength=count)
    # A row pulls the mean towards itself by its share of the mass (HC2); equal masses give the usual size / (size - 1).
    leverage = np.clip(mass / mass_b[cell], 0.0, MOST_LEVERAGE)
    scaled = (residual - mean[cell] * mass) / (mass_b[cell] * np.sqrt(1 - leverage))
    return Binned(
        edges,
        index,
        mean,
        pairs,
        _cross_products(scaled, cell, unit, count),
        mass_b / total,
        clusters,
        _cross_products(mass / total, cell, unit, count),
        np.clip(mass_b**2 / group_sums(cell, mass**2, count) - 1, 1, size - 1),
    )


def mean_residual(residual: Floats, mass: Floats, groups: Integers | None) -> tuple[float, float, int]:
    """Return sum(residual) / sum(mass) with its standard error (HC2), and the number of rows or clusters: one bin of all."""
    if groups is not None:
        codes, where = np.unique(groups, return_inverse=True)
        residual, mass = group_sums(where, residual, len(codes)), group_sums(where, mass, len(codes))
    total = float(mass.sum())
    mean = float(residual.sum()) / total
    gap = residual - mean * mass
    leverage = np.clip(mass / total, 0.0, MOST_LEVERAGE)
    return mean, float(np.sqrt((gap / (1 - leverage)) @ gap)) / total, len(residual)


def table(binned: Binned, prediction: Floats, loss: Loss) -> dict[str, Floats]:
    """Return the bin table: one array per column, one entry per bin."""
    count, mass = len(binned.edges) + 1, loss.mass
    mass_b = group_sums(binned.index, mass, count)
    return {
        "n": np.bincount(binned.index, minlength=count).astype(float),
        "mass": mass_b,
        "lower": np.concatenate([[prediction.min()], binned.edges]),
        "upper": np.concatenate([binned.edges, [prediction.max()]]),
        "prediction": group_sums(binned.index, mass * prediction, count) / mass_b,
        "target": constants(loss, binned.index, count),
        "residual": binned.residual,
        "standard_error": np.sqrt(binned.variance),
    }


def _by_cluster(
    groups: Integers, index: Integers, mass: Floats, residual: Floats, count: int
) -> tuple[Integers, Integers, Floats, Floats]:
    """Sum masses and residuals over the rows of each (cluster, bin) pair that occurs."""
    codes, where = np.unique(groups * count + index, return_inverse=True)
    units = np.unique(codes // count, return_inverse=True)[1]
    return (
        units.astype(np.int64),
        codes % count,
        group_sums(where, mass, len(codes)),
        group_sums(where, residual, len(codes)),
    )


def _cross_products(value: Floats, cell: Integers, unit: Integers | None, count: int) -> Floats:
    """Return sum over clusters of the outer product of their values by bin."""
    if unit is None:
        return np.diag(group_sums(cell, value**2, count))
    by_unit = coo_array((value, (unit, cell)), shape=(int(unit.max()) + 1, count)).tocsr()
    return np.asarray((by_unit.T @ by_unit).toarray())


def _edges_with_two(groups: Integers | None, index: Integers, count: int) -> list[int]:
    """Return the positions of the edges to keep, from the left, so that every bin holds two different rows or clusters."""
    members: list[set[object]]
    if groups is None:
        members = [
            {(b, row) for row in range(min(int(size), 2))} for b, size in enumerate(np.bincount(index, minlength=count))
        ]
    else:
        pairs = np.unique(groups * count + index)
        members = [set((pairs[pairs % count == b] // count).tolist()) for b in range(count)]
    keep: list[int] = []
    inside: set[object] = set()
    for position in range(count - 1):
        inside |= members[position]
        if len(inside) >= 2:
            keep.append(position)
            inside = set()
    inside |= members[count - 1]
    while keep and len(inside) < 2:  # what is left over joins the bin before it
        last = keep.pop()
        start = keep[-1] + 1 if keep else 0
        inside = set().union(*members[start : last + 1], inside)
    return keep
