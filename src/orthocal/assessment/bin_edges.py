"""Where bins of the prediction begin and end."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.assessment.sweeps import Piece, Runs, Stage, pair_codes
from orthocal.calibrators.histogram import wanted_mass

LEAST_SHARE = 0.25
"""Of the rows of an equal bin, below which a bin left over between ties is not judged by itself."""


def cut(bins: int) -> Stage[Floats]:
    """Return the inner edges of bins of nearly equal weight that never divide tied predictions.

    A bin of fewer than two clusters has no variance, and the mean of a few rows with a binary outcome is far from normal: small
    bins join their right neighbour (the last one its left).
    """
    edges = yield from uniform_mass_edges(bins)
    answers = yield partial(members, edges=edges)
    size = np.sum([rows for rows, _ in answers], axis=0)
    units = [set().union(*own) for own in zip(*(two for _, two in answers), strict=True)]
    return edges[_edges_to_keep(size, units, LEAST_SHARE * float(size.sum()) / bins)]


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


def members(piece: Piece, edges: Floats) -> tuple[Integers, list[set[Any]]]:
    """Question: how many rows each bin has, and two different rows, or clusters, of each, where it has them."""
    size = Runs(piece.prediction, edges).size
    if piece.loss.groups is None:
        return size, [{(piece.number, b, row) for row in range(min(int(many), 2))} for b, many in enumerate(size)]
    count = len(edges) + 1
    pairs = np.unique(pair_codes(piece, edges))
    return size, [set((pairs[pairs % count == b][:2] // count).tolist()) for b in range(count)]


def _edges_to_keep(size: Integers, units: list[set[Any]], least: float) -> list[int]:
    """Return the positions of the edges to keep, from the left, so that every bin has `least` rows of two rows or clusters."""
    keep: list[int] = []
    start = 0

    def enough(start: int, end: int) -> bool:
        return size[start:end].sum() >= least and len(set().union(*units[start:end])) >= 2

    for end in range(1, len(units)):
        if enough(start, end):
            keep.append(end - 1)
            start = end
    while keep and not enough(start, len(units)):  # what is left over joins the bin before it
        keep.pop()
        start = keep[-1] + 1 if keep else 0
    return keep
