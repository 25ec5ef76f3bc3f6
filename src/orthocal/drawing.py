"""What all pictures share: colours, and axes where none are given."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.ticker import AutoLocator, FuncFormatter, MaxNLocator

from orthocal.formats import LARGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GREY, ACCENT = "#1b1b1b", "#8a8a8a", "#0b5fa5"


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes, or those of a new figure of that size in inches."""
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


SMALL = 9
"""Points of letters in legends and notes: still read on a phone, where a drawing shrinks."""
LONGEST = 30
"""Letters of a name beside a picture."""
LETTERS = 15
"""Small letters in an inch."""


def short_name(name: str, longest: int = LONGEST) -> str:
    """Return a name that fits beside a picture: of a long one the middle is left out, since ends tell names apart."""
    if len(name) <= longest:
        return name
    first = longest // 2 - 1
    return f"{name[:first]}…{name[len(name) - (longest - first - 1) :]}"


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


def legend_above(ax: Axes, entries: int) -> None:
    """Put the legend above the axes, where it hides nothing, in as many columns as fit."""
    ax.legend(
        frameon=False,
        fontsize=SMALL,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=min(entries, _columns_that_fit(ax)),
    )
    ax.spines[["top", "right"]].set_visible(False)


def legend_outside(ax: Axes) -> None:
    """Move the legend, if there is one, above the whole drawing, where it may be wider than the axes; for constrained layouts."""
    legend = ax.get_legend()
    if legend is None:
        return
    legend.remove()
    shown = ax.get_legend_handles_labels()
    ncols = min(len(shown[1]), _columns_that_fit(ax))
    ax.figure.legend(*shown, frameon=False, fontsize=SMALL, loc="outside upper center", ncols=ncols)


def _columns_that_fit(ax: Axes) -> int:
    widest = max((len(str(label)) for label in ax.get_legend_handles_labels()[1]), default=0)
    inches = ax.figure.bbox.width / ax.figure.dpi  # of a part of a figure, too
    return max(1, int(LETTERS * inches) // (widest + 6))


FEW = 5
"""Steps along the lower axis, so that numbers do not touch each other."""


def few_ticks(ax: Axes) -> None:
    """Leave few numbers along the lower axis, and write large ones with commas on both; named places stay as they are."""
    for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if not isinstance(axis.get_major_locator(), AutoLocator):
            continue
        if axis is ax.xaxis:
            axis.set_major_locator(MaxNLocator(FEW, steps=[1, 2, 2.5, 5, 10]))
        if max(map(abs, ends)) >= LARGE:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")))


def marked_at(ax: Axes, place: float, text: str) -> None:
    """Mark a place along the axis by a line, with its name at the foot, on the side where there is room."""
    ax.axvline(place, color=INK, linewidth=0.8)
    side = "right" if place > sum(ax.get_xlim()) / 2 else "left"
    ax.text(place, 0.01, f" {text} ", transform=ax.get_xaxis_transform(), fontsize=SMALL, color=INK, ha=side)
