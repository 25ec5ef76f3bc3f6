"""Bins of the prediction and the moments of the residuals in them (mathematics 7.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array

from orthocal.arrays import Floats, Integers, group_sums, sorting_order, unrepeated
from orthocal.assessment.bin_edges import cut
from orthocal.assessment.pieces import Piece, Runs
from orthocal.assessment.ratios import against_all, mean_mass
from orthocal.assessment.sweeps import (
    Rows,
    SortedRows,
    Stage,
    answer,
    cluster_sums,
    effective_number,
    merged,
    pair_codes,
)
from orthocal.errors import OrthocalError, require_positive_mass
from orthocal.losses import Loss, score_at

ROUNDING = 1e-12
MOST_LEVERAGE = 0.9
"""Cap on a row's share of its bin's mass, so that a row that makes up a bin does not make its variance infinite."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Binned:
    r"""Residuals summed by bin and cluster (a row is its own cluster when there are no groups).

    Parameters
    ----------
    edges : array
        Inner edges; bin b is (edges[b-1], edges[b]].
    size, mass : array
        Rows of each bin, and their summed mass; of a ratio effect their weight times the mean mass of all rows.
    residual : array
        :math:`\bar r_b = \sum r / \sum m` with :math:`r = -\partial\ell(\theta)`.
    pairs : array
        :math:`U_b`, the average of products of residuals of different clusters: unbiased for the squared mean.
    covariance : array of shape (bins, bins)
        Of the mean residuals; diagonal unless clusters span bins.
    clusters : int
        How many independent units there are.
    share_variance : array of shape (bins, bins)
        Of the shares of mass.
    freedom : array
        Degrees of freedom of each bin's variance: rows (or clusters) less one, counted by Kish's effective number where their
        masses differ.
    effective : float
        Kish's effective number of clusters; infinite without.
    """

    edges: Floats
    size: Integers
    mass: Floats
    residual: Floats
    pairs: Floats
    covariance: Floats
    clusters: int
    share_variance: Floats
    freedom: Floats
    effective: float = np.inf

    @property
    def variance(self) -> Floats:
        """Of each bin's mean residual."""
        return np.diag(self.covariance)

    @property
    def share(self) -> Floats:
        """Of the mass."""
        return np.asarray(self.mass / self.mass.sum())


class Cells(NamedTuple):
    """What every cluster holds in every bin: a table of the pairs that occur."""

    unit: Integers
    bin: Integers
    mass: Floats
    residual: Floats
    bins: int

    @property
    def size(self) -> Integers:
        """Clusters of each bin."""
        return np.bincount(self.bin, minlength=self.bins)

    def sums(self, value: Floats) -> Floats:
        """Sum of each bin."""
        return group_sums(self.bin, value, self.bins)

    def spread(self, by_bin: Floats) -> Floats:
        """Each pair's own of what is known of its bin."""
        return by_bin[self.bin]


def binned(prediction: Floats, loss: Loss, bins: int) -> Binned:
    """Return the moments of rows in memory."""
    order = sorting_order(prediction)
    return answer((rows := SortedRows(prediction[order], loss[order])), _binned(rows, bins))


def _binned(rows: Rows, bins: int) -> Stage[Binned]:
    mean = yield from mean_mass(rows)
    edges = yield from cut(bins)
    return (yield from against_all(residual_moments(rows, edges), mean))


def residual_moments(rows: Rows, edges: Floats) -> Stage[Binned]:
    """Sum residuals and masses by bin and cluster, and return their moments."""
    count = len(edges) + 1
    cells = None
    if rows.like.groups is None:
        sums = np.sum((yield partial(_row_sums, edges=edges)), axis=0)
    else:
        codes, (held, stray) = merged((yield partial(_cell_sums, edges=edges)))
        units = np.unique(codes // count, return_inverse=True)[1].astype(np.int64)
        cells = Cells(units, codes % count, held, stray, count)
        sums = _first_sums(cells, held, stray)
    size, mass, total, mass_squared, squared = sums
    require_positive_mass(float(mass.sum()))
    if not (mass > 0).all():
        raise OrthocalError(
            f"Every bin must have positive mass; one has {mass.min():.4g}. Use fewer `bins`, or is_ratio=True for a loss whose "
            "masses are estimates."
        )
    mean, whole = total / mass, float(mass.sum())
    if cells is None:
        covariance = np.diag(np.sum((yield partial(_row_squares, edges=edges, mean=mean, mass=mass)), axis=0))
        share_variance, clusters, effective = np.diag(mass_squared / whole**2), int(size.sum()), np.inf
    else:
        covariance = _cross_products(scaled(cells, cells.mass, cells.residual, mean, mass), cells)
        share_variance, clusters = _cross_products(cells.mass / whole, cells), int(cells.unit.max()) + 1
        held = np.bincount(cells.unit, cells.mass)
        effective = effective_number(whole, float(held @ held))
    return Binned(
        edges=edges,
        size=size.astype(np.int64) if cells is None else np.sum((yield partial(_sizes, edges=edges)), axis=0),
        mass=mass,
        residual=mean,
        pairs=_pairs(mean, total**2 - squared, mass**2, mass_squared, covariance),
        covariance=covariance,
        clusters=clusters,
        share_variance=share_variance,
        freedom=np.clip(mass**2 / mass_squared - 1, 1, size - 1),
        effective=effective,
    )


def _pairs(mean: Floats, products: Floats, whole: Floats, own: Floats, covariance: Floats) -> Floats:
    """Average products of different rows or clusters; the squared mean less its variance where one outweighs all others."""
    apart = np.where(whole - own > ROUNDING * whole, whole - own, np.nan)
    return np.where(np.isnan(apart), mean**2 - np.diag(covariance), products / apart)


def _first_sums(cells: Runs | Cells, mass: Floats, residual: Floats) -> Floats:
    return np.array([cells.size, *(cells.sums(column) for column in (mass, residual, mass**2, residual**2))])


def _row_sums(piece: Piece, edges: Floats) -> Floats:
    return _first_sums(Runs.of(piece, edges), piece.loss.mass, piece.residual)


def _sizes(piece: Piece, edges: Floats) -> Integers:
    return Runs.of(piece, edges).size


def _cell_sums(piece: Piece, edges: Floats) -> tuple[Integers, Floats]:
    return cluster_sums(pair_codes(piece, edges), [piece.loss.mass, piece.residual])


def _row_squares(piece: Piece, edges: Floats, mean: Floats, mass: Floats) -> Floats:
    runs = Runs.of(piece, edges)
    return runs.sums(scaled(runs, piece.loss.mass, piece.residual, mean, mass) ** 2)


def scaled(cells: Runs | Cells, mass: Floats, residual: Floats, mean: Floats, mass_b: Floats) -> Floats:
    """Return the parts of the mean residuals' errors.

    A row pulls the mean towards itself by its share of the mass (HC2); equal masses give the usual size / (size - 1).
    """
    mass, inside, mean = (unrepeated(column) for column in (mass, cells.spread(mass_b), cells.spread(mean)))
    leverage = np.clip(mass / inside, 0.0, MOST_LEVERAGE)
    return (residual - mean * mass) / (inside * np.sqrt(1 - leverage))


def _cross_products(value: Floats, cells: Cells) -> Floats:
    """Return sum over clusters of the outer product of their values by bin."""
    by_unit = coo_array((value, (cells.unit, cells.bin)), shape=(int(cells.unit.max()) + 1, cells.bins)).tocsr()
    return np.asarray((by_unit.T @ by_unit).toarray())


def mean_residual(rows: Rows, residual: Callable[[Piece], Floats]) -> Stage[tuple[float, float, float]]:
    """Return sum(residual) / sum(mass) with its standard error, and the effective number of rows or clusters.

    The error is a jackknife over rows (HC3) or clusters (CR3). A few large clusters are less evidence than their
    number says, so degrees of freedom are counted by Kish's number.
    """
    if rows.like.groups is not None:
        _, (stray, held, weight) = merged((yield partial(_by_cluster, residual=residual)))
        units, total, mean = len(held), float(held.sum()), float(stray.sum() / held.sum())
        squares, counted = float(_stray_squares(stray, held, mean, total).sum()), (weight.sum(), weight @ weight)
    else:
        units, held, stray, *counted = np.sum((yield partial(_mass_and_residual, residual=residual)), axis=0)
        total, mean = float(held), float(stray / held)
        squares = sum((yield partial(_squares_about, residual=residual, mean=mean, total=total)))
    return mean, float(np.sqrt((units - 1) / units * squares)) / total, effective_number(*counted)


def at_prediction(piece: Piece) -> Floats:
    """Derivative of the loss at the prediction."""
    return piece.loss.derivative(piece.prediction)


def at_constant(piece: Piece, value: float) -> Floats:
    """Derivative at one number of the loss taken there."""
    return score_at(piece.loss, np.full(len(piece), value))


def _by_cluster(piece: Piece, residual: Callable[[Piece], Floats]) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [residual(piece), piece.loss.mass, piece.loss.weight])


def _mass_and_residual(piece: Piece, residual: Callable[[Piece], Floats]) -> Floats:
    weight = piece.loss.weight
    sums = [piece.sum(column) for column in (piece.loss.mass, residual(piece), weight)]
    return np.array([piece.rows, *sums, piece.dot(weight, weight)])


def _squares_about(piece: Piece, residual: Callable[[Piece], Floats], mean: float, total: float) -> float:
    return piece.sum(_stray_squares(residual(piece), piece.loss.mass, mean, total))


def _stray_squares(residual: Floats, mass: Floats, mean: float, total: float) -> Floats:
    mass = unrepeated(mass)
    gap = residual - mean * mass
    leverage = np.clip(mass / total, 0.0, MOST_LEVERAGE)
    return np.asarray((gap / (1 - leverage)) ** 2)
