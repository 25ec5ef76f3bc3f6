"""What all pictures share: colours, and axes where none are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GREY, ACCENT = "#1b1b1b", "#8a8a8a", "#0b5fa5"


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes, or those of a new figure of that size in inches."""
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax
