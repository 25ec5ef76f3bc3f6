"""Bins of the prediction and the moments of the residuals in them (MATH 7.3, general form)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from orthocal.arrays import group_sums, sorting_order
from orthocal.assessment.minimisers import minimisers
from orthocal.assessment.sweeps import Piece, Rows, Runs, SortedRows, Stage, answer, cluster_sums, merged
from orthocal.calibrators.histogram import wanted_mass
from orthocal.errors import OrthocalError, require_positive_mass

if TYPE_CHECKING:
    from collections.abc import Callable

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
    size, mass : array
        Rows of each bin, and their summed mass.
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
    edges = yield from cut(bins)
    return (yield from residual_moments(rows, edges))


def cut(bins: int) -> Stage[Floats]:
    """Return the inner edges of bins of nearly equal weight that never divide tied predictions.

    A bin with fewer than two clusters has no variance; it joins its left neighbour (the first joins its right one).
    """
    edges = yield from uniform_mass_edges(bins)
    return edges[_edges_with_two((yield partial(members, edges=edges)))]


class Weights(NamedTuple):
    """How the weights of some rows count."""

    rows: int
    total: float
    whole: bool
    least: float
    most: float
    last: float


def weights_of(piece: Piece) -> Weights:
    """Question: how the weights count."""
    weight = piece.loss.weight
    whole = bool((weight == np.floor(weight)).all())
    return Weights(len(piece), float(weight.sum()), whole, weight.min(), weight.max(), piece.prediction[-1])


def uniform_mass_edges(bins: int) -> Stage[Floats]:
    """Return the inner edges that `orthocal.calibrators.histogram.uniform_mass_edges` has for all rows together."""
    weights: list[Weights] = yield weights_of
    whole = all(w.whole for w in weights)
    alike = min(w.least for w in weights) == max(w.most for w in weights)
    counted = [float(w.rows) if alike and not whole else w.total for w in weights]
    reached = np.concatenate([[0.0], np.cumsum(counted)])
    wanted = wanted_mass(float(reached[-1]), bins, whole=whole or alike)
    edges = np.concatenate((yield partial(_where_reached, wanted=wanted, reached=reached, ones=alike and not whole)))
    return np.unique(edges[edges < weights[-1].last])


def _where_reached(piece: Piece, wanted: Floats, reached: Floats, *, ones: bool) -> Floats:
    before, after = reached[piece.number], reached[piece.number + 1]
    own = wanted[(wanted > before) & (wanted <= after)]
    if not len(own):
        return np.empty(0)
    running = before + np.cumsum(np.ones(len(piece)) if ones else piece.loss.weight)
    return np.asarray(piece.prediction[np.minimum(np.searchsorted(running, own, side="left"), len(piece) - 1)])


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
        raise OrthocalError(f"Every bin must have positive mass; one has {mass.min():.4g}. Use fewer `bins`.")
    mean, whole = total / mass, float(mass.sum())
    if cells is None:
        covariance = np.diag(np.sum((yield partial(_row_squares, edges=edges, mean=mean, mass=mass)), axis=0))
        share_variance, clusters = np.diag(mass_squared / whole**2), int(size.sum())
    else:
        covariance = _cross_products(_scaled(cells, cells.mass, cells.residual, mean, mass), cells)
        share_variance, clusters = _cross_products(cells.mass / whole, cells), int(cells.unit.max()) + 1
    return Binned(
        edges,
        size.astype(np.int64) if cells is None else np.sum((yield partial(_sizes, edges=edges)), axis=0),
        mass,
        mean,
        (total**2 - squared) / (mass**2 - mass_squared),
        covariance,
        clusters,
        share_variance,
        np.clip(mass**2 / mass_squared - 1, 1, size - 1),
    )


def _first_sums(cells: Runs | Cells, mass: Floats, residual: Floats) -> Floats:
    return np.array([cells.size, *(cells.sums(column) for column in (mass, residual, mass**2, residual**2))])


def _row_sums(piece: Piece, edges: Floats) -> Floats:
    return _first_sums(Runs(piece.prediction, edges), piece.loss.mass, piece.residual)


def _sizes(piece: Piece, edges: Floats) -> Integers:
    return Runs(piece.prediction, edges).size


def _cell_sums(piece: Piece, edges: Floats) -> tuple[Integers, Floats]:
    return cluster_sums(_pair_codes(piece, edges), [piece.loss.mass, piece.residual])


def _pair_codes(piece: Piece, edges: Floats) -> Integers:
    """One number for each pair of cluster and bin."""
    assert piece.loss.groups is not None  # noqa: S101
    runs, count = Runs(piece.prediction, edges), len(edges) + 1
    return piece.loss.groups * count + runs.index


def _row_squares(piece: Piece, edges: Floats, mean: Floats, mass: Floats) -> Floats:
    runs = Runs(piece.prediction, edges)
    return runs.sums(_scaled(runs, piece.loss.mass, piece.residual, mean, mass) ** 2)


def _scaled(cells: Runs | Cells, mass: Floats, residual: Floats, mean: Floats, mass_b: Floats) -> Floats:
    """Return the parts of the mean residuals' errors.

    A row pulls the mean towards itself by its share of the mass (HC2); equal masses give the usual size / (size - 1).
    """
    inside = cells.spread(mass_b)
    leverage = np.clip(mass / inside, 0.0, MOST_LEVERAGE)
    return (residual - cells.spread(mean) * mass) / (inside * np.sqrt(1 - leverage))


def _cross_products(value: Floats, cells: Cells) -> Floats:
    """Return sum over clusters of the outer product of their values by bin."""
    by_unit = coo_array((value, (cells.unit, cells.bin)), shape=(int(cells.unit.max()) + 1, cells.bins)).tocsr()
    return np.asarray((by_unit.T @ by_unit).toarray())


def mean_residual(rows: Rows, residual: Callable[[Piece], Floats]) -> Stage[tuple[float, float, int]]:
    """Return sum(residual) / sum(mass) with its standard error (HC2), and the number of rows or clusters: one bin of all."""
    if rows.like.groups is not None:
        _, (stray, held) = merged((yield partial(_by_cluster, residual=residual)))
        total, mean = float(held.sum()), float(stray.sum() / held.sum())
        return mean, float(np.sqrt(_stray_squares(stray, held, mean, total))) / total, len(held)
    units, held, stray = np.sum((yield partial(_mass_and_residual, residual=residual)), axis=0)
    total, mean = float(held), float(stray / held)
    squares = sum((yield partial(_squares_about, residual=residual, mean=mean, total=total)))
    return mean, float(np.sqrt(squares)) / total, int(units)


def at_prediction(piece: Piece) -> Floats:
    """Derivative of the loss at the prediction."""
    return piece.loss.derivative(piece.prediction)


def at_constant(piece: Piece, value: float) -> Floats:
    """Derivative of the loss at one number."""
    return piece.loss.derivative(np.full(len(piece), value))


def _by_cluster(piece: Piece, residual: Callable[[Piece], Floats]) -> tuple[Integers, Floats]:
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [residual(piece), piece.loss.mass])


def _mass_and_residual(piece: Piece, residual: Callable[[Piece], Floats]) -> Floats:
    return np.array([len(piece), piece.loss.mass.sum(), residual(piece).sum()])


def _squares_about(piece: Piece, residual: Callable[[Piece], Floats], mean: float, total: float) -> float:
    return _stray_squares(residual(piece), piece.loss.mass, mean, total)


def _stray_squares(residual: Floats, mass: Floats, mean: float, total: float) -> float:
    gap = residual - mean * mass
    leverage = np.clip(mass / total, 0.0, MOST_LEVERAGE)
    return float((gap / (1 - leverage)) @ gap)


def table(rows: Rows, binned: Binned) -> Stage[dict[str, Floats]]:
    """Return the bin table: one array per column, one entry per bin."""
    answers = yield partial(_pulled, edges=binned.edges)
    target = yield from minimisers(rows, binned.edges)
    return {
        "n": binned.size.astype(float),
        "mass": binned.mass,
        "lower": np.concatenate([[answers[0][1]], binned.edges]),
        "upper": np.concatenate([binned.edges, [answers[-1][2]]]),
        "prediction": np.sum([pulled for pulled, _, _ in answers], axis=0) / binned.mass,
        "target": target,
        "residual": binned.residual,
        "standard_error": np.sqrt(binned.variance),
    }


def _pulled(piece: Piece, edges: Floats) -> tuple[Floats, float, float]:
    pulled = Runs(piece.prediction, edges).sums(piece.loss.mass * piece.prediction)
    return pulled, piece.prediction[0], piece.prediction[-1]


def members(piece: Piece, edges: Floats) -> list[set[Any]]:
    """Question: two different rows of each bin, or all its clusters."""
    if piece.loss.groups is None:
        size = Runs(piece.prediction, edges).size
        return [{(piece.number, b, row) for row in range(min(int(many), 2))} for b, many in enumerate(size)]
    count = len(edges) + 1
    pairs = np.unique(_pair_codes(piece, edges))
    return [set((pairs[pairs % count == b] // count).tolist()) for b in range(count)]


def _edges_with_two(answers: list[list[set[Any]]]) -> list[int]:
    """Return the positions of the edges to keep, from the left, so that every bin holds two different rows or clusters."""
    inside_of = [set().union(*own) for own in zip(*answers, strict=True)]
    count = len(inside_of)
    keep: list[int] = []
    inside: set[Any] = set()
    for position in range(count - 1):
        inside |= inside_of[position]
        if len(inside) >= 2:
            keep.append(position)
            inside = set()
    inside |= inside_of[count - 1]
    while keep and len(inside) < 2:  # what is left over joins the bin before it
        last = keep.pop()
        start = keep[-1] + 1 if keep else 0
        inside = set().union(*inside_of[start : last + 1], inside)
    return keep
