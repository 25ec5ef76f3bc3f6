"""Where bins of the prediction begin and end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from orthocal.assessment.sweeps import Piece, Runs, Stage, pair_codes
from orthocal.calibrators.histogram import wanted_mass

if TYPE_CHECKING:
    from orthocal.arrays import Floats


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


def members(piece: Piece, edges: Floats) -> list[set[Any]]:
    """Question: two different rows, or clusters, of each bin, where it has them."""
    if piece.loss.groups is None:
        size = Runs(piece.prediction, edges).size
        return [{(piece.number, b, row) for row in range(min(int(many), 2))} for b, many in enumerate(size)]
    count = len(edges) + 1
    pairs = np.unique(pair_codes(piece, edges))
    return [set((pairs[pairs % count == b][:2] // count).tolist()) for b in range(count)]


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
