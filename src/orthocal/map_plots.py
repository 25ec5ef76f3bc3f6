"""Pictures of a map, and of the band for the average effect of people with the same prediction."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment.effect_band import EffectBand
from orthocal.drawing import ACCENT, GREY, axes_or_new
from orthocal.group_maps import GroupMap
from orthocal.maps import Map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL = 34
"""Letters in a line of a legend."""


def calibration_map(fitted: Map, predictions: Any, ax: Axes | None = None, band: EffectBand | None = None) -> Axes:
    """Draw what the map does to predictions, against doing nothing; with the band of the average effect where one is given."""
    ax = axes_or_new(ax, (5.2, 4.4))
    low, high = float(np.min(predictions)), float(np.max(predictions))
    grid = np.linspace(low, high, 801)
    if band is not None:
        shaded_band(band, predictions, ax)
    ax.plot(grid, grid, color=GREY, linewidth=1, linestyle=(0, (5, 3)), label="unchanged")
    within = isinstance(fitted, GroupMap)
    drawn = fitted.base_value(grid) if isinstance(fitted, GroupMap) else fitted.predict(grid)
    ax.plot(grid, drawn, color=ACCENT, linewidth=2, label="map, before shifts of subgroups" if within else "map")
    ax.set(xlabel="prediction", ylabel="calibrated prediction")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def shaded_band(band: EffectBand, predictions: Any, ax: Axes | None = None) -> Axes:
    """Draw the band for the average effect of people with the same prediction, never for a person's own effect.

    Where an end is open, only the other is drawn.
    """
    ax = axes_or_new(ax, (5.2, 4.4))
    grid = np.linspace(float(np.min(predictions)), float(np.max(predictions)), 801)
    low, high = band.interval(grid)
    label = fill(f"{100 * band.level:g}% band {band.meaning}", LABEL)
    ax.fill_between(grid, low, high, color=ACCENT, alpha=0.16, linewidth=0, label=label)
    for end in (low, high):
        ax.plot(grid, end, color=ACCENT, linewidth=0.8, alpha=0.7)
    ax.set(xlabel="prediction", ylabel="average effect")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
