"""Rows sorted by prediction, and where bins of it begin and end."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers, RowIndex, sorting_order_and_sorted
from orthocal.assessment.pieces import Piece, Runs
from orthocal.assessment.sweeps import Stage, pair_codes, piece_ends
from orthocal.calibrators.left_out import value_columns
from orthocal.folds import VALIDATION, drawn_within, hashed_ranks
from orthocal.losses import Loss
from orthocal.losses.counting import REACHED, Counts

AT_ONCE = 2**16
"""Rows whose ties are put in order at once, so that no more memory is needed than for these."""


def settled_order(prediction: Floats, loss: Loss) -> tuple[RowIndex, Floats]:
    """Return what sorts the predictions, and the sorted predictions.

    Tied rows stand in an order drawn by what their losses hold, not as they came: where halves of the rows judge each other it
    matters which of them are tied neighbours.
    """
    order, level = sorting_order_and_sorted(prediction)
    if not (level[1:] == level[:-1]).any():
        return order, level
    rows = np.arange(len(level))[order]
    columns = value_columns(prediction, loss)
    ends = piece_ends(level, AT_ONCE)
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        rises = level[start + 1 : end] > level[start : end - 1]
        if not rises.all():
            own = rows[start:end]
            contents = hashed_ranks([column[own] for column in columns])
            rows[start:end] = own[drawn_within(np.append(0, np.cumsum(rises)), contents, 0, VALIDATION)]
    return rows, level


LEAST_SHARE = 0.25
"""Of the rows of an equal bin, below which a bin left over between ties is not judged by itself."""


def cut(bins: int) -> Stage[Floats]:
    """Return the inner edges of bins of nearly equal weight that never divide tied predictions.

    A bin of fewer than two clusters has no variance, and the mean of a few rows with a binary outcome is far from normal: small
    bins join their right neighbour (the last one its left).
    """
    edges = yield from equal_mass_edges(bins)
    answers = yield partial(members, edges=edges)
    size = np.sum([rows for rows, _ in answers], axis=0)
    units = [set().union(*own) for own in zip(*(two for _, two in answers), strict=True)]
    return edges[_edges_to_keep(size, units, LEAST_SHARE * float(size.sum()) / bins)]


def counts_of(piece: Piece) -> tuple[Counts, float]:
    """Summary: how the weights count, and the last prediction."""
    return Counts.of(piece.loss.weight) if piece.packed is None else piece.packed.counts, piece.ends[1]


def equal_mass_edges(bins: int) -> Stage[Floats]:
    """Return the inner edges that `orthocal.calibrators.histogram.uniform_mass_edges` has for all rows together."""
    summaries: list[tuple[Counts, float]] = yield counts_of
    every = reduce(Counts.merge, (counts for counts, _ in summaries))
    reached = np.cumsum([0.0, *(float(c.rows) if every.are_alike else c.total for c, _ in summaries)])
    wanted = replace(every, total=float(reached[-1])).edges(bins)
    edges = np.concatenate((yield partial(_where_reached, wanted=wanted, reached=reached, ones=every.are_alike)))
    return np.unique(edges[edges < summaries[-1][1]])


def _where_reached(piece: Piece, wanted: Floats, reached: Floats, *, ones: bool) -> Floats:
    before, after = reached[piece.number], reached[piece.number + 1]
    own = wanted[(wanted > before) & (wanted <= after)]
    if not len(own):
        return np.empty(0)
    running = before + np.cumsum(piece.each(np.ones(len(piece)) if ones else piece.loss.weight))
    if piece.packed is not None:  # sums of cells are rounded
        own = own * REACHED
    return np.asarray(piece.level[np.minimum(np.searchsorted(running, own, side="left"), len(piece) - 1)])


def members(piece: Piece, edges: Floats) -> tuple[Integers, list[set[Any]]]:
    """Question: how many rows each bin has, and two different rows, or clusters, of each, where it has them."""
    size = Runs.of(piece, edges).size
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
