"""Means of neighbouring rows over many intervals, their standard errors, and one critical value for all (mathematics 10.10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.stats import norm
from scipy.stats import t as t_distribution

from orthocal.arrays import Booleans, Floats, Integers, group_sums

CELL = 32
"""Rows of a cell, the half of the shortest interval; ties can make a cell longer."""
LEAST = 48
"""Effective sample size of the shortest interval that is used: with 32 rows the coverage falls to two thirds."""
REACH = 8
"""Neighbours on each side that a row is compared with; with as many, their own noise is one part in seventeen."""
AROUND = 8
"""Cells on either side of an interval whose noise is looked at as well."""
STEPS = 4
"""An interval starts a quarter of its length after the one before: with halves the band is 6% wider."""
BATCH_SIZE = 2_000_000
"""Numbers drawn at once."""


@dataclass(frozen=True, eq=False)
class BandRows:
    """Rows sorted by prediction: pseudo-outcomes, weights and cluster codes from 0 on (None: every row is its own cluster)."""

    prediction: Floats
    value: Floats
    weight: Floats
    groups: Integers | None


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over cells of neighbouring rows.

    Parameters
    ----------
    lowest, highest : array of shape (cells,)
        Predictions at the ends of each cell.
    total, weight : array of shape (cells,)
        Summed weighted pseudo-outcomes, and summed weights.
    noise, held : sparse array of shape (cells, clusters)
        Summed weighted residuals, and weights, of each cluster in each cell. Rows without clusters are independent, so that one
        column for each cell, with the root of its sum of squares, has the same distribution.
    moments : array of shape (3, cells)
        Sums over clusters (or rows) in each cell of squared weights, and of squared and cubed weighted residuals.
    """

    lowest: Floats
    highest: Floats
    total: Floats
    weight: Floats
    noise: Any
    held: Any
    moments: Floats


@dataclass(frozen=True, eq=False)
class IntervalMeans:
    """Means over intervals of cells, their standard errors, skewness and effective sample sizes, and the ends of predictions."""

    first: Integers
    stop: Integers
    weight: Floats
    mean: Floats
    error: Floats
    skewness: Floats
    size: Floats
    lowest: Floats
    highest: Floats

    def __getitem__(self, kept: Booleans) -> IntervalMeans:
        return IntervalMeans(*(column[kept] for column in vars(self).values()))


def tied_starts(prediction: Floats, length: int = CELL) -> Integers:
    """Return where cells of at least `length` rows start, so that no tie is divided and the last one is not shorter."""
    wanted = np.arange(length, len(prediction), length)
    after = np.searchsorted(prediction, prediction[wanted - 1], side="right")
    starts = np.unique(np.append(0, after))
    return np.asarray(starts[(starts == 0) | (starts <= len(prediction) - length)], dtype=np.int64)


def interval_sums(rows: BandRows, starts: Integers, residual: Floats) -> CellSums:
    """Return the sums of cells that start at `starts`; `residual` is the noise of each row."""
    cell = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows.value))))
    weighted, noise = rows.weight * rows.value, rows.weight * residual
    return CellSums(
        lowest=rows.prediction[starts],
        highest=rows.prediction[np.append(starts[1:], len(rows.value)) - 1],
        total=np.add.reduceat(weighted, starts),
        weight=np.add.reduceat(rows.weight, starts),
        noise=_by_cluster(cell, noise, rows.groups),
        held=_by_cluster(cell, rows.weight, rows.groups),
        moments=_moments(cell, rows.weight, noise, rows.groups),
    )


def _moments(cell: Integers, weight: Floats, noise: Floats, groups: Integers | None) -> Floats:
    if groups is not None:
        count = int(groups.max()) + 1
        pairs, place = np.unique(cell * count + groups, return_inverse=True)
        cell, weight, noise = pairs // count, *(group_sums(place, one, len(pairs)) for one in (weight, noise))
    return np.array([np.bincount(cell, column) for column in (weight**2, noise**2, noise**3)])


def _by_cluster(cell: Integers, value: Floats, groups: Integers | None) -> Any:
    if groups is None:
        squares = np.sqrt(np.bincount(cell, value**2))
        own = np.arange(len(squares))
        return csr_array(coo_array((squares, (own, own))))
    return csr_array(coo_array((value, (cell, groups))))


def local_residuals(rows: BandRows) -> Floats:
    r"""Return :math:`e_i = (\chi_i - m_i) / \sqrt{1 + s_i}`: m the mean of the neighbours, s what their noise adds.

    The neighbours are `REACH` rows on each side, their two means averaged, so that a slope cancels. They are of other clusters:
    rows of one cluster that follow each other count as one row, or what they share would cancel too.
    """
    if rows.groups is None:
        mean, added = _neighbours(rows.value, rows.weight, np.arange(len(rows.value)))
        return np.asarray((rows.value - mean) / np.sqrt(1 + added))
    run = np.cumsum(np.append(False, np.diff(rows.groups) != 0))
    weight = group_sums(run, rows.weight, int(run[-1]) + 1)
    value = group_sums(run, rows.weight * rows.value, len(weight)) / weight
    mean, added = _neighbours(value, weight, rows.groups[np.append(True, np.diff(run) > 0)])
    return np.asarray((rows.value - mean[run]) / np.sqrt(1 + added[run]))


def _neighbours(value: Floats, weight: Floats, code: Integers) -> tuple[Floats, Floats]:
    """Return the mean of the neighbours of each row, and the sum of squares of their shares in it."""
    sums = np.zeros((2, 3, len(value)))
    terms = np.array([weight * value, weight, weight**2])
    for shift in range(1, min(REACH, len(value) - 1) + 1):
        differs = code[shift:] != code[:-shift]
        sums[0, :, shift:] += terms[:, :-shift] * differs
        sums[1, :, :-shift] += terms[:, shift:] * differs
    total, held, squares = sums.transpose(1, 0, 2)
    there = held > 0
    count = np.maximum(there.sum(axis=0), 1)
    means = np.divide(total, held, out=np.zeros_like(total), where=there)
    shares = np.divide(squares, held**2, out=np.zeros_like(total), where=there)
    return means.sum(axis=0) / count, shares.sum(axis=0) / count**2


def binned_residuals(rows: BandRows, starts: Integers) -> Floats:
    """Return the residual of each row from the mean of its bin."""
    mean = np.add.reduceat(rows.weight * rows.value, starts) / np.add.reduceat(rows.weight, starts)
    return np.asarray(rows.value - np.repeat(mean, np.diff(np.append(starts, len(rows.value)))))


def interval_means(cells: CellSums, lengths: list[int], around: int) -> IntervalMeans:
    r"""Return the means over all intervals of so many cells, overlapping; those with too few rows are left out.

    The noise of an interval is at least that of the interval with `around` cells more on either side: where outcomes are rare or
    skewed, rows without a large one would seem to be sure of their mean. The skewness of its mean is taken from there.
    """
    found = [_means(cells, *ends, around) for ends in _ends(len(cells.weight), lengths)]
    columns = zip(*(vars(one).values() for one in found), strict=True)
    every = IntervalMeans(*(np.concatenate(column) for column in columns))
    return every[(every.size >= LEAST) & (every.error > 0)]


def growing_lengths(count: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, ... up to the number of cells."""
    halves = {factor * 2**power for power in range(count.bit_length()) for factor in (1, 3)}
    return sorted(length for length in halves if length <= count)


def _ends(count: int, lengths: list[int]) -> Iterator[tuple[Integers, Integers]]:
    for length in lengths:
        first = np.unique(np.append(np.arange(0, count - length + 1, max(length // STEPS, 1)), count - length))
        yield first, first + length


def _means(cells: CellSums, first: Integers, stop: Integers, around: int) -> IntervalMeans:
    length, count = int(stop[0] - first[0]), len(first)
    place = (np.repeat(np.arange(count), length), (first[:, None] + np.arange(length)).ravel())
    joined = csr_array(coo_array((np.ones(count * length), place), shape=(count, len(cells.weight))))
    weight = joined @ cells.weight
    noise, held = joined @ cells.noise, joined @ cells.held
    running = np.hstack([np.zeros((3, 1)), np.cumsum(cells.moments, axis=1)])
    wider = running[:, np.minimum(stop + around, running.shape[1] - 1)] - running[:, np.maximum(first - around, 0)]
    share = (running[0, stop] - running[0, first]) / wider[0]
    variance = np.maximum((noise * noise).sum(axis=1), share * wider[1])
    return IntervalMeans(
        first=first,
        stop=stop,
        weight=weight,
        mean=joined @ cells.total / weight,
        error=np.sqrt(variance) / weight,
        skewness=np.divide(np.abs(share * wider[2]), variance**1.5, out=np.zeros(count), where=variance > 0),
        size=weight**2 / (held * held).sum(axis=1),
        lowest=cells.lowest[first],
        highest=cells.highest[stop - 1],
    )


def critical_values(
    cells: CellSums, means: IntervalMeans, freedom: Floats, *, level: float, draws: int, random_state: int
) -> Floats:
    r"""Return for each interval the critical value, in its standard errors, of a band that holds over all of them at once.

    One value :math:`\kappa` is the quantile of :math:`\max_I |\sum_I \xi_i e_i| / (W_I \mathrm{se}_I)` with a normal
    :math:`\xi` for each cluster; each interval takes the t quantile at the level that :math:`\kappa` has under the normal, and
    is widened on both sides by what the skewness of its mean adds to one of them (Cornish and Fisher).
    """
    rng, largest = np.random.default_rng(random_state), []
    scale = (means.weight * means.error)[:, None]
    batch = max(1, BATCH_SIZE // max(len(means.mean), cells.noise.shape[1]))
    for start in range(0, draws, batch):
        multiplier = rng.standard_normal((cells.noise.shape[1], min(batch, draws - start)))
        running = np.zeros((len(cells.weight) + 1, multiplier.shape[1]))
        np.cumsum(cells.noise @ multiplier, axis=0, out=running[1:])
        largest.append(np.abs((running[means.stop] - running[means.first]) / scale).max(axis=0))
    critical = np.quantile(np.concatenate(largest), level)
    return np.asarray(t_distribution.isf(norm.sf(critical), freedom) + means.skewness * (critical**2 - 1) / 6)
