"""Pictures of experiments: spreads over repetitions, and lines over sample sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from orthocal.arrays import Floats
from orthocal.plots import ACCENT, GREY, INK
from orthocal.reporting.page.document import Picture
from orthocal.reporting.page.render import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES: list[dict[str, Any]] = [
    {"color": GREY, "marker": "s", "linestyle": "--"},
    {"color": ACCENT, "marker": "o", "linestyle": "-"},
    {"color": "#c4601d", "marker": "^", "linestyle": "-."},
    {"color": "#3d8b5f", "marker": "D", "linestyle": ":"},
    {"color": INK, "marker": "v", "linestyle": (0, (1, 1))},
]
"""Told apart by shape as well as by colour."""


def box_plots(
    panels: Mapping[str, Mapping[str, Floats]], *, of: str, label: str, columns: int, caption: str
) -> Picture:
    """Return the boxes of all panels as a picture of a page, with the medians in words."""
    words = "; ".join(
        f"{title}: " + ", ".join(f"{method} {np.median(values):.3g}" for method, values in methods.items())
        for title, methods in panels.items()
    )
    drawn = boxes(panels, f"{label} (log scale)", columns)
    return picture(drawn, f"Box plots of the {of}. Medians: {words}.", caption, "boxes")


def boxes(panels: Mapping[str, Mapping[str, Floats]], label: str, columns: int) -> Figure:
    """Draw a box per method and panel: quartiles, whiskers to Q1 - 1.5 IQR, Q3 + 1.5 IQR (mathematics 12.16), points beyond."""
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.4 * columns, 3.4 * rows), layout="constrained", squeeze=False, sharey=False
    )
    for ax, (title, methods) in zip(axes.ravel(), panels.items(), strict=False):
        drawn = ax.boxplot(
            list(methods.values()),
            tick_labels=list(methods),
            whis=1.5,
            widths=0.55,
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": GREY},
            medianprops={"color": ACCENT, "linewidth": 2},
        )
        for part in ("boxes", "whiskers", "caps"):
            plt.setp(drawn[part], color=INK)
        ax.set_yscale("log")
        ax.set_title(title)
        ax.set_ylabel(label)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def lines(
    panels: Mapping[str, Mapping[str, tuple[Floats, Floats, Floats]]], x_label: str, y_labels: Sequence[str]
) -> Figure:
    """Draw a grid of panels, two to a row: each method's mean over repetitions against size, with its interval."""
    rows = -(-len(panels) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(9.4, 2.9 * rows + 0.5), layout="constrained", squeeze=False)
    for place, (ax, (title, methods)) in enumerate(zip(axes.ravel(), panels.items(), strict=False)):
        for shift, (style, (name, (size, mean, half))) in enumerate(zip(STYLES, methods.items(), strict=False)):
            width = (shift - len(methods) / 2) * 0.006 * float(np.ptp(size) or 1.0)
            ax.errorbar(size + width, mean, yerr=half, label=name, markersize=4, linewidth=1.4, elinewidth=1, **style)
        ax.set(title=title, xlabel=x_label, ylabel=y_labels[place % 2])
        ax.spines[["top", "right"]].set_visible(False)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    return figure
