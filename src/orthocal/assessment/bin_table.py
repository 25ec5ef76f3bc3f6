"""The bins as a table: what was predicted and estimated in each, its best constant, and the intervals of the gap between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, singledispatch

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import t as t_distribution

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.assessment.bins import Binned, Cells, scaled
from orthocal.assessment.crossings import Bracket, crossings
from orthocal.assessment.parts import Curve
from orthocal.assessment.pieces import Piece, Runs
from orthocal.assessment.ratios import MeanMass, Shown
from orthocal.assessment.sweeps import Rows, Stage, cluster_sums, count_rows, merged, pair_codes
from orthocal.losses import Loss, QuadraticLoss, is_ratio, score_at
from orthocal.solvers import constants
from orthocal.solvers.constants import PRECISION, finite_bounds, narrowest, ratios

ROUGH = 1e-4
"""Precision, as a share of the bounds' distance, of a minimiser at which a search begins."""
PARTS = 16
"""Into so many parts each sweep divides the interval in which a minimiser lies."""
FIRST_STEP = 1 / 32
"""Of the search, as a share of the bounds' distance."""


def minimisers(rows: Rows, edges: Floats) -> Stage[Floats]:
    """Return for each bin the number that minimises its summed loss, with the loss taken at that number itself."""
    found: Floats = yield from by_kind(rows.like, edges)
    return found


@singledispatch
def by_kind(like: Loss, edges: Floats) -> Stage[Floats]:
    """Any convex loss: where it depends on the level, the level is moved until the loss taken there is least there.

    With a conditional distribution F taken at another level than the minimiser, its correction does not remove an error of the
    propensity. Taken at the minimiser v, E[F(v | X) - Q | bin] = 0 holds whichever of the two is right (mathematics 7.6).
    """
    if _stays(like):
        return (yield from _least(like, edges))
    low, high = finite_bounds(like)
    first = _off_bounds((yield from _divided(like, edges, ROUGH)), low, high)
    search = crossings(first, np.full(len(first), FIRST_STEP * (high - low)), Bracket.unknown(low, high, len(first)))
    level = next(search)
    while True:
        sums, squares = np.sum((yield partial(_scores, edges=edges, level=level)), axis=0)
        try:
            level = search.send(np.divide(sums, np.sqrt(squares), out=np.zeros(len(sums)), where=squares > 0))
        except StopIteration as done:
            return np.asarray(done.value)


def _off_bounds(found: Floats, low: float, high: float) -> Floats:
    """Begin in the middle of the other bins where a bin's minimiser is a bound: the loss was taken too far from it."""
    inside = (found - low > ROUGH * (high - low)) & (high - found > ROUGH * (high - low))
    return np.where(inside, found, np.median(found[inside]) if inside.any() else (low + high) / 2)


def _stays(like: Loss) -> bool:
    """Whether a loss is the same at every level."""
    return getattr(like, "distribution", None) is None and like.at(np.zeros(len(like))) is like


@by_kind.register(QuadraticLoss)
def _(like: QuadraticLoss, edges: Floats) -> Stage[Floats]:
    del like
    numerator, denominator = np.sum((yield partial(_ratio_sums, edges=edges)), axis=0)
    return ratios(numerator, denominator)


def _least(like: Loss, edges: Floats) -> Stage[Floats]:
    """Minimise the loss as it is, at once where all rows are in one piece."""
    if len((yield count_rows)) > 1:
        return (yield from _divided(like, edges, PRECISION))
    (found,) = yield partial(_whole, edges=edges)
    return np.asarray(found)


def _divided(like: Loss, edges: Floats, precision: float) -> Stage[Floats]:
    """Minimise the loss as it is by dividing the intervals in which minimisers lie, in sweeps."""
    low, high = finite_bounds(like)
    below, above = np.full(len(edges) + 1, low), np.full(len(edges) + 1, high)
    while (above - below).max() > narrowest(low, high, precision):
        grid = np.linspace(below, above, PARTS + 1)
        slopes = np.sum((yield partial(_slopes, edges=edges, values=grid[1:-1])), axis=0)
        falling, bins = (slopes < 0).sum(axis=0), np.arange(len(below))
        below, above = grid[falling, bins], grid[falling + 1, bins]
    return above


def _whole(piece: Piece, edges: Floats) -> Floats:
    return constants(piece.loss, Runs.of(piece, edges).index, len(edges) + 1)


def _slopes(piece: Piece, edges: Floats, values: Floats) -> Floats:
    """Question: summed derivatives of each bin at several values of its own."""
    runs = Runs.of(piece, edges)
    return np.array([runs.sums(piece.loss.derivative(runs.spread(one))) for one in values])


def _scores(piece: Piece, edges: Floats, level: Floats) -> Floats:
    """Question: summed derivatives of each bin at its level, of the loss taken there, and their squares."""
    runs = Runs.of(piece, edges)
    score = score_at(piece.loss, runs.spread(level))
    return np.array([runs.sums(score), runs.sums(score**2)])


def _ratio_sums(piece: Piece, edges: Floats) -> Floats:
    loss, runs = piece.loss, Runs.of(piece, edges)
    assert isinstance(loss, QuadraticLoss)  # noqa: S101
    return np.array([runs.sums(loss.numerator), runs.sums(loss.denominator)])


LONGEST_BAR = 3.0
"""In medians of all bars: what is longer, as Fieller's intervals of a weak mass can be, runs out of the picture."""


def table(rows: Rows, binned: Binned, shown: Shown, level: float) -> Stage[dict[str, Floats]]:
    """Return the bin table: one array per column, one entry per bin.

    A bin of a ratio effect whose mass is not away from 0 has no target and no residual: they are NaN.
    """
    answers = yield partial(_sums, edges=binned.edges)
    mass, pulled, weight, weighed = np.sum([sums for sums, _, _ in answers], axis=0)
    gap, error = shown.gap(_critical(binned, level))
    is_shown = np.isfinite(gap)
    prediction = np.where(is_shown, pulled, weighed) / np.where(is_shown, mass, weight)
    if is_ratio(rows.like):  # the minimiser sum n / sum d of the bin's loss lies by the gap above the prediction
        target = prediction + gap
    else:
        target = yield from minimisers(rows, binned.edges)
    return {
        "n": binned.size.astype(float),
        "mass": mass,
        "lower": np.concatenate([[answers[0][1]], binned.edges]),
        "upper": np.concatenate([binned.edges, [answers[-1][2]]]),
        "prediction": prediction,
        "target": target,
        "residual": gap,
        "standard_error": error,
    }


def intervals(binned: Binned, shown: Shown, level: float, band: float) -> dict[str, Floats]:
    """Return the columns of the residuals' intervals, bin by bin and for all bins at once; NaN where not bounded."""
    low, high = shown.interval(_critical(binned, level))
    lowest, highest = shown.interval(band)
    return {"residual_lower": low, "residual_upper": high, "band_lower": lowest, "band_upper": highest}


def reaches(bins: Mapping[str, Floats], name: str) -> Floats:
    """Return how far the bars ("residual" or "band") of each bin go down and up from its residual; NaN where they have no end."""
    return np.maximum([bins["residual"] - bins[f"{name}_lower"], bins[f"{name}_upper"] - bins["residual"]], 0.0)


def hull(bins: Mapping[str, Floats], height: Floats, sign: int) -> Floats:
    """Return the heights that a picture must hold: those of the marks and the ends of their bars."""
    reach = np.vstack([reaches(bins, "residual"), reaches(bins, "band")])
    if np.isfinite(reach).any():
        reach = np.minimum(reach, LONGEST_BAR * np.nanmedian(reach))
    down, up = reach[::2], reach[1::2]
    ends = np.concatenate([height, *(height - (down if sign > 0 else up)), *(height + (up if sign > 0 else down))])
    return np.asarray(ends[np.isfinite(ends)])


def _critical(binned: Binned, level: float) -> Floats:
    return np.asarray(t_distribution.ppf((1 + level) / 2, binned.freedom))


def _sums(piece: Piece, edges: Floats) -> tuple[Floats, float, float]:
    """Question: of each bin mass and weight, and predictions weighed by both; the ends of the predictions."""
    runs, mass, weight = Runs.of(piece, edges), piece.loss.mass, piece.loss.weight
    columns = [mass, mass * piece.prediction]
    columns += columns if weight is mass else [weight, weight * piece.prediction]
    return np.array([runs.sums(column) for column in columns]), *piece.ends


def shown_bins(rows: Rows, binned: Binned, mean: MeanMass | None) -> Stage[tuple[Shown, Binned]]:
    r"""Return what the bins' gaps are made of, and the moments with the noise of the mean mass in their covariance.

    The tests do without that noise: what is 0 is 0 in any unit. The size of an error is not known better than its unit: a row
    adds :math:`-\bar r_b h_i` to the error of the mean :math:`\bar r_b`, where :math:`h_i` is its part in the relative error of
    the mean mass.
    """
    if mean is None:
        nothing = np.zeros(len(binned.mass))
        return Shown(binned.residual, nothing + 1, np.array([binned.variance, nothing, nothing])), binned
    mass = np.sum((yield partial(_masses, edges=binned.edges)), axis=0)
    means = np.array([binned.residual, mass / binned.mass])
    if rows.like.groups is None:
        asked = partial(_row_products, edges=binned.edges, means=means, held=binned.mass, mean=mean)
        *squares, along = np.sum((yield asked), axis=0)
    else:
        codes, columns = merged((yield partial(_cell_columns, edges=binned.edges, mean=mean)))
        count = len(mass)
        units = np.unique(codes // count, return_inverse=True)[1]
        columns[3] = group_sums(units, columns[3], int(units.max()) + 1)[units]  # a cluster pulls with all it holds
        cells = Cells(units.astype(np.int64), codes % count, columns[0], columns[1], count)
        *squares, along = _products(cells, list(columns), means, binned.mass)
    turned = np.outer(along, binned.residual)
    noise = np.outer(binned.residual, binned.residual) * mean.relative_variance - turned - turned.T
    return Shown(means[0], means[1], np.array(squares)), replace(binned, covariance=binned.covariance + noise)


def _masses(piece: Piece, edges: Floats) -> Floats:
    return Runs.of(piece, edges).sums(piece.loss.mass)


def _columns(piece: Piece, mean: MeanMass) -> list[Floats]:
    """Mass in units of all rows' mean, residual, mass, and how a row moves the mean mass, as a share of it."""
    base = piece.loss.weight * mean.value
    return [base, piece.residual, piece.loss.mass, (piece.loss.mass - base) / (mean.value * mean.weight)]


def _row_products(piece: Piece, edges: Floats, means: Floats, held: Floats, mean: MeanMass) -> Floats:
    return _products(Runs.of(piece, edges), _columns(piece, mean), means, held)


def _cell_columns(piece: Piece, edges: Floats, mean: MeanMass) -> tuple[Integers, Floats]:
    return cluster_sums(pair_codes(piece, edges), _columns(piece, mean))


def _products(cells: Runs | Cells, columns: Sequence[Floats], means: Floats, held: Floats) -> Floats:
    """Variances and covariance of each bin's mean residual and mean mass, and the former's with all rows' mean mass."""
    base, *pair, move = columns
    residual, mass = (scaled(cells, base, one, own, held) for one, own in zip(pair, means, strict=True))
    products = [residual**2, residual * mass, mass**2, residual * move]
    return np.array([cells.sums(product) for product in products])


@singledispatch
def monotone_curve(loss: Loss, bins: Mapping[str, Floats]) -> Curve | None:
    """Return None: residuals of this loss are not in the units of the target."""
    del loss, bins
    return None


@monotone_curve.register(QuadraticLoss)
def _(loss: QuadraticLoss, bins: Mapping[str, Floats]) -> Curve | None:
    """Return the isotonic fit to the bins, with the simultaneous band made monotone.

    Where the true curve does not decrease, raising the lower edge to its running maximum and lowering the upper edge to its
    running minimum from the right keeps the coverage and narrows the band. Bins without a bounded band are left out.
    """
    del loss
    rows = np.flatnonzero(np.isfinite(bins["band_lower"]))
    prediction, target, residual, mass, low, high = (
        bins[name][rows] for name in ("prediction", "target", "residual", "mass", "band_lower", "band_upper")
    )
    if not len(rows):
        return Curve(prediction, target, low, high)
    fitted = np.asarray(isotonic_regression(target, weights=np.maximum(mass, 1e-300)).x)
    lower = np.maximum.accumulate(target + (low - residual))
    upper = np.minimum.accumulate((target + (high - residual))[::-1])[::-1]
    return Curve(prediction, fitted, np.minimum(lower, fitted), np.maximum(upper, fitted))
