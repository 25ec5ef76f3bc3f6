"""Calibrators fitted from summaries: the same maps as from the rows."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce, singledispatch
from typing import Any

import numpy as np
from sklearn.base import clone

from orthocal.arrays import Floats
from orthocal.calibrators import (
    CALIBRATORS,
    Auto,
    Calibrator,
    Constant,
    Histogram,
    Identity,
    Isotonic,
    Linear,
    Platt,
    Shift,
    Spline,
    new_calibrator,
)
from orthocal.calibrators.evidence import line_evidence
from orthocal.calibrators.histogram import filled
from orthocal.calibrators.isotonic import isotonic_map
from orthocal.calibrators.lines import Rising, Tilt
from orthocal.calibrators.mixture import Mixture, mixed
from orthocal.engines.partitioned.ranges import blocks, ranges
from orthocal.engines.partitioned.source import SPREAD_ERRORS, Source
from orthocal.engines.partitioned.summaries import Bracketed
from orthocal.errors import OrthocalError, require_at_least, require_whole
from orthocal.losses import QuadraticLoss, is_ratio
from orthocal.losses.counting import Counts
from orthocal.maps import AffineMap, StepMap
from orthocal.solvers.constants import ratios
from orthocal.solvers.monotone import Blocks, pool

MOST_SAMPLED = 100_000
"""Rows of a sample on which it is decided how smooth a spline is."""


@singledispatch
def fit_on(calibrator: Any, source: Source, *, exact: bool) -> Calibrator:
    """Return the calibrator fitted; one that has no summaries is refused."""
    del source, exact
    raise OrthocalError(
        f"`method` in partitions must be one of {', '.join(map(repr, CALIBRATORS))}; it is {calibrator!r}. Use one of "
        "these, or calibrate a sample in memory."
    )


@fit_on.register(Identity)
def _(calibrator: Identity, source: Source, *, exact: bool) -> Calibrator:
    del exact
    calibrator.rows_ = source.sketch.counts.rows
    return calibrator.fit(np.zeros(1), QuadraticLoss(np.zeros(1), np.ones(1)))


@fit_on.register(Constant)
def _(calibrator: Constant, source: Source, *, exact: bool) -> Calibrator:
    """By two sums, in one pass."""
    del exact
    line = source.line
    calibrator.rows_ = line.rows
    calibrator.map_ = StepMap(np.empty(0), np.array([line.average]))
    return calibrator


@fit_on.register(Linear)
def _(calibrator: Linear, source: Source, *, exact: bool) -> Calibrator:
    """By moments, in one pass."""
    del exact
    line = source.line
    calibrator.rows_ = line.rows
    calibrator.map_ = AffineMap(*line.coefficients(source.pivot))
    return calibrator


@fit_on.register(Shift)
def _(calibrator: Shift, source: Source, *, exact: bool) -> Calibrator:
    """By three sums."""
    del exact
    line = source.line
    calibrator.rows_ = line.rows
    calibrator.map_ = AffineMap(line.average - line.middle(source.pivot), 1.0)
    return calibrator


@fit_on.register(Tilt)
def _(calibrator: Tilt, source: Source, *, exact: bool) -> Calibrator:
    """By moments."""
    del exact
    middle, slope = source.line.middle(source.pivot), max(source.line.coefficients(source.pivot)[1], 0.0)
    calibrator.map_ = AffineMap(middle * (1 - slope), slope)
    return calibrator


@fit_on.register(Platt)
def _(calibrator: Platt, source: Source, *, exact: bool) -> Calibrator:
    """On cells of the prediction, each as one row."""
    del exact
    calibrator.rows_ = source.grid.counts.rows
    return calibrator.fit(*source.grid.as_summed())


@fit_on.register(Spline)
def _(calibrator: Spline, source: Source, *, exact: bool) -> Calibrator:
    """On cells of the prediction, each as one row; a sample of the rows says how smooth, for cells have hardly any noise."""
    del exact
    calibrator.rows_ = source.grid.counts.rows
    level, loss = source.grid.as_summed()
    if calibrator.smoothings is not None and len(calibrator.smoothings) == 1:
        return calibrator.fit(level, loss)
    sampled = clone(calibrator).fit(*source.sample(MOST_SAMPLED))
    smooth = clone(calibrator).set_params(smoothings=(getattr(sampled, "smoothing_", 1.0),)).fit(level, loss)
    calibrator.map_ = smooth.map_
    return calibrator


@fit_on.register(Rising)
def _(calibrator: Rising, source: Source, *, exact: bool) -> Calibrator:
    """As the calibrator inside, unless that falls."""
    inner = fit_on(clone(calibrator.calibrator), source, exact=exact)
    first, last = inner.predict(np.array([source.line.low, source.line.high]))
    calibrator.map_ = inner.map_ if last >= first else fit_on(Constant(), source, exact=exact).map_
    return calibrator


@fit_on.register(Mixture)
def _(calibrator: Mixture, source: Source, *, exact: bool) -> Calibrator:
    """Member by member."""
    calibrator.rows_ = source.line.rows
    calibrator.map_ = mixed(
        calibrator.weights, [fit_on(clone(member), source, exact=exact).map_ for member in calibrator.members]
    )
    return calibrator


@fit_on.register(Auto)
def _(calibrator: Auto, source: Source, *, exact: bool) -> Calibrator:
    """As in memory: lines are compared on all rows, by moments of cells; shapes on a sample; members are fitted on all rows.

    How many rows decide the slope, and what the others say, is seen on the sample: cells know squares of scores, and no rows.
    """
    level, loss = source.grid.as_summed()
    if source.line.low == source.line.high:
        chosen = calibrator.choose(np.zeros(2), loss)
    else:
        chosen = calibrator.choose(*source.sample(calibrator.sample), line_evidence(level, loss))
    calibrator.rows_ = source.line.rows
    return calibrator.adopt(fit_on(chosen, source, exact=exact), level, loss)


@fit_on.register(Histogram)
def _(calibrator: Histogram, source: Source, *, exact: bool) -> Calibrator:
    """By sums of bins, whose edges are exact order statistics: in one pass, after a look at a few partitions."""
    del exact
    require_whole(calibrator.bins, 1, "bins")
    found, edges, numerator, denominator = _bins_of(calibrator.bins, source)
    if is_ratio(source.like):
        last = filled(denominator)
        edges, numerator, denominator = pool(np.append(edges, np.inf), last, numerator, denominator)
        edges = edges[:-1]
    calibrator.rows_ = found.counts.rows
    calibrator.map_ = StepMap(edges, ratios(numerator, denominator))
    return calibrator


def _bins_of(bins: int, source: Source) -> tuple[Bracketed, Floats, Floats, Floats]:
    """Return sums of rows, and (edges, numerators, denominators) of bins, with edges sought where a few partitions have them.

    Where those partitions are unlike the others, they are sought where all have them.
    """
    for sketch, slack in source.rough_then_whole(SPREAD_ERRORS):
        brackets = sketch.intervals(np.arange(1, bins) / bins, slack)
        found = source.bracketed(brackets)
        cut = found.bins(bins, brackets)
        if cut is not None:
            return found, *cut
    raise AssertionError("the bracket of a quantile does not hold it")


@fit_on.register(Isotonic)
def _(calibrator: Isotonic, source: Source, *, exact: bool) -> Calibrator:
    """Exactly, from blocks of ranges of the prediction; or on a grid, in one pass and without moving rows."""
    require_at_least(calibrator.min_samples, 1, "min_samples")
    if exact:
        level, loss, count, calibrator.rows_ = _range_blocks(source)
        calibrator.bound_ = 0.0
    else:
        cells = source.grid
        calibrator.rows_, calibrator.bound_ = cells.counts.rows, cells.bound() / float(cells.denominator.sum())
        level, loss, count = cells.as_rows()
    calibrator.map_ = isotonic_map(level, loss, count, calibrator.min_samples)
    return calibrator


def _range_blocks(source: Source) -> tuple[Floats, QuadraticLoss, Floats, int]:
    """Return (prediction, loss, count of rows) of the blocks of all ranges, each as one row; and how many rows there are."""
    pieces = ranges(source)
    facts = pieces.answers(_least_mass)
    least, counts = min(mass for mass, _ in facts), reduce(Counts.merge, [one for _, one in facts])
    if not least > 0:
        raise OrthocalError(
            f"Masses must be positive for exact isotonic calibration in partitions; one is {least:.4g}. Use exact=False."
        )
    scale = None if counts.are_alike else counts.factor
    found = Blocks.together(pieces.answers(blocks, scale))
    return found.level, found.loss, found.weight, counts.rows


def _least_mass(piece: Any, number: int) -> tuple[float, Counts]:
    del number
    if not len(piece):
        return np.inf, Counts(0, 0.0, True, np.inf, -np.inf)
    return float(piece.loss.mass.min()), Counts.of(piece.loss.weight, len(piece))


HINGE_CELLS, HINGE_STEPS = 2**11, 2**11
"""Cells of the prediction and steps of the outcome, for losses whose sums are not enough."""


def fitted(method: Any, source: Source, *, exact: bool, refinements: int = 0) -> Calibrator:
    """Return a new calibrator, fitted."""
    calibrator = new_calibrator(method)
    if source.is_quadratic:
        return fit_on(calibrator, source, exact=exact)
    if exact:
        raise OrthocalError(
            f"`exact` must be False for a {type(source.like).__name__}; only quadratic losses have exact summaries."
        )
    if isinstance(calibrator, Auto):
        raise OrthocalError(
            f"`method` must not be 'auto' for a {type(source.like).__name__} in partitions, whose noise is not known from sums. "
            "Name a method, such as 'isotonic' or 'linear'."
        )
    _fit_pairs(calibrator, source)
    for _ in range(refinements if source.depends_on_level else 0):
        source = replace(source, level_map=calibrator.map_)
        _fit_pairs(calibrator, source)
    calibrator.rows_ = source.sketch.counts.rows  # type: ignore[attr-defined]
    return calibrator


def _fit_pairs(calibrator: Any, source: Source) -> None:
    prediction, loss = source.pairs(HINGE_CELLS, HINGE_STEPS)
    if isinstance(calibrator, Isotonic):  # whose blocks hold so many rows, not pairs
        count = loss.weight * source.sketch.counts.factor
        calibrator.map_ = isotonic_map(prediction, loss, count, calibrator.min_samples)
    else:
        calibrator.fit(prediction, loss)
