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


MOST_BESIDE = 4
"""Entries in a line of a legend that do not overlap."""


def legend_above(ax: Axes, entries: int) -> None:
    """Put the legend above the axes, where it hides nothing."""
    ax.legend(
        frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(entries, MOST_BESIDE)
    )
    ax.spines[["top", "right"]].set_visible(False)


def marked_at(ax: Axes, place: float, text: str) -> None:
    """Mark a place along the axis by a line, with its name at the foot, on the side where there is room."""
    ax.axvline(place, color=INK, linewidth=0.8)
    side = "right" if place > sum(ax.get_xlim()) / 2 else "left"
    ax.text(place, 0.01, f" {text} ", transform=ax.get_xaxis_transform(), fontsize="small", color=INK, ha=side)
