"""Calibrators fitted from summaries: the same maps as from the rows."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.calibrators import Histogram, Identity, Isotonic, Linear, new_calibrator
from orthocal.calibrators.isotonic import isotonic_map
from orthocal.distributed.ranges import blocks, ranges
from orthocal.distributed.sketches import histogram_wanted
from orthocal.distributed.summaries import CELLS
from orthocal.errors import OrthocalError, require_at_least, require_whole
from orthocal.losses import QuadraticLoss
from orthocal.maps import AffineMap, StepMap
from orthocal.solvers.constants import ratios
from orthocal.solvers.monotone import Blocks

if TYPE_CHECKING:
    from orthocal.calibrators import Calibrator
    from orthocal.distributed.source import Source


@singledispatch
def fit_on(calibrator: Any, source: Source, *, exact: bool) -> Calibrator:
    """Return the calibrator fitted; one that has no summaries is refused."""
    del source, exact
    raise OrthocalError(
        f"`method` must be one that sums are enough for: 'linear', 'histogram', 'isotonic' or 'identity'; it is "
        f"{calibrator!r}. Fit it in memory on a sample."
    )


@fit_on.register(Identity)
def _(calibrator: Identity, source: Source, *, exact: bool) -> Calibrator:
    del exact
    calibrator.rows_ = source.sketch.counts.rows
    return calibrator.fit(np.zeros(1), QuadraticLoss(np.zeros(1), np.ones(1)))


@fit_on.register(Linear)
def _(calibrator: Linear, source: Source, *, exact: bool) -> Calibrator:
    """By moments, in one pass."""
    del exact
    line = source.line()
    calibrator.rows_ = line.rows
    calibrator.map_ = AffineMap(*line.coefficients(source.pivot))
    return calibrator


@fit_on.register(Histogram)
def _(calibrator: Histogram, source: Source, *, exact: bool) -> Calibrator:
    """By sums of bins, whose edges are exact order statistics: two passes over the predictions, one over all columns."""
    del exact
    require_whole(calibrator.bins, 1, "bins")
    edges = source.edges(histogram_wanted(source.sketch.counts, calibrator.bins))
    cells = source.cells(edges)
    calibrator.rows_ = source.sketch.counts.rows
    calibrator.map_ = StepMap(edges, ratios(cells.numerator, cells.denominator))
    return calibrator


@fit_on.register(Isotonic)
def _(calibrator: Isotonic, source: Source, *, exact: bool) -> Calibrator:
    """Exactly, from blocks of ranges of the prediction; or on a grid, in one pass and without moving rows."""
    require_at_least(calibrator.min_samples, 1, "min_samples")
    scale, calibrator.rows_ = source.sketch.counts.factor, source.sketch.counts.rows
    if exact:
        found = _range_blocks(source, scale)
        level, loss, count = found.level, found.loss, found.weight
        calibrator.bound_ = 0.0
    else:
        edges, highest = source.sketch.grid(CELLS), float(source.sketch.level[-1])
        cells = source.cells(edges, bounded=True)
        calibrator.bound_ = cells.bound() / float(cells.denominator.sum())
        level, some = cells.without_empty(edges, highest)
        loss, count = QuadraticLoss(some.numerator, some.denominator, some.weight), some.weight * scale
    calibrator.map_ = isotonic_map(level, loss, count, calibrator.min_samples)
    return calibrator


def _range_blocks(source: Source, scale: float) -> Blocks:
    import dask

    pieces = ranges(source)
    least = min(dask.compute(*[dask.delayed(_least_mass)(piece) for piece in pieces]))
    if not least > 0:
        raise OrthocalError(
            f"Masses must be positive for exact isotonic calibration on Dask; one is {least:.4g}. Use exact=False."
        )
    return Blocks.together(dask.compute(*[dask.delayed(blocks)(piece, scale) for piece in pieces]))


def _least_mass(piece: Any) -> float:
    return float(piece.loss.mass.min()) if len(piece) else np.inf


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
    calibrator.fit(*source.pairs(HINGE_CELLS, HINGE_STEPS))
    for _ in range(refinements if source.depends_on_level else 0):
        source = replace(source, level_map=calibrator.map_)
        calibrator.fit(*source.pairs(HINGE_CELLS, HINGE_STEPS))
    calibrator.rows_ = source.sketch.counts.rows  # type: ignore[attr-defined]
    return calibrator
