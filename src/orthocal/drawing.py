"""What all pictures share: colours, and axes where none are given."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GREY, ACCENT = "#1b1b1b", "#8a8a8a", "#0b5fa5"


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes, or those of a new figure of that size in inches."""
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def plain(text: Any) -> str:
    """Return a name as it is drawn: a dollar starts no formula, and what cannot be printed is drawn by its number."""
    letters = (one if one.isprintable() else one.encode("unicode_escape").decode() for one in str(text))
    return "".join(letters).replace("$", r"\$")


def save_figure(figure: Any, target: Any, **how: Any) -> None:
    """Write a figure and close it; of letters that a font lacks nothing is said, for a page has fonts of its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(target, **how)
    plt.close(figure)


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
