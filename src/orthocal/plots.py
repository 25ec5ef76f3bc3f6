"""Pictures of records. Each takes a record and ``ax=``, returns the axes and computes no estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from orthocal.assessment import Assessment

INK, GREY, ACCENT = "#1b1b1b", "#8a8a8a", "#0b5fa5"


def reliability(assessment: Assessment, ax: Axes | None = None, *, title: str | None = None, **style: Any) -> Axes:
    """Draw estimated against predicted effect, bin by bin, with intervals, the diagonal and the predictions' density.

    Thick bars are pointwise intervals, thin ones the simultaneous band: the diagonal should cross all thin bars.
    """
    if ax is None:
        ax = plt.subplots(figsize=(5.2, 5.2), layout="constrained")[1]
    bins = assessment.bins
    pointwise = norm.ppf((1 + assessment.level) / 2) * bins["standard_error"]
    simultaneous = (assessment.linf.band or 0.0) * bins["standard_error"]
    style = {"color": ACCENT, "marker": "o", "markersize": 5.5, "linestyle": "none", **style}
    low, high = _limits(assessment, simultaneous)
    ax.axline((low, low), slope=1, color=GREY, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    ax.errorbar(bins["prediction"], bins["target"], yerr=simultaneous, **{**style, "elinewidth": 0.9, "marker": ""})
    ax.errorbar(bins["prediction"], bins["target"], yerr=pointwise, **{**style, "elinewidth": 2.6})
    ax.set(xlim=(low, high), ylim=(low, high), box_aspect=1, title=title)
    _density(assessment, ax)
    ax.set_xlabel("predicted effect")
    ax.set_ylabel("estimated effect of people with that prediction")
    ax.text(0.03, 0.97, _caption(assessment), transform=ax.transAxes, va="top", fontsize="small", color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def before_and_after(before: Assessment, after: Assessment, *, title: str | None = None) -> Figure:
    """Draw two reliability curves side by side on the same scale."""
    figure, axes = plt.subplots(1, 2, figsize=(10.4, 5.6), layout="constrained")
    reliability(before, axes[0], title="before", color=GREY, marker="s")
    reliability(after, axes[1], title="after calibration")
    both = [*axes[0].get_xlim(), *axes[1].get_xlim()]
    for ax in axes:
        ax.set(xlim=(min(both), max(both)), ylim=(min(both), max(both)))
    axes[1].set_ylabel("")
    if title:
        figure.suptitle(title, fontsize="x-large")
    return figure


def _limits(assessment: Assessment, reach: Any) -> tuple[float, float]:
    """Hull of the points and their bars; predictions further out are in the outer bins."""
    bins = assessment.bins
    low = min(bins["prediction"].min(), (bins["target"] - reach).min())
    high = max(bins["prediction"].max(), (bins["target"] + reach).max())
    margin = 0.08 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _density(assessment: Assessment, ax: Axes) -> None:
    """Draw a small histogram of the predictions along the lower edge."""
    count, edge = np.histogram(assessment.predictions, bins=40, range=ax.get_xlim())
    height = 0.12 * count / count.max()
    ax.bar(
        edge[:-1],
        height,
        width=np.diff(edge),
        align="edge",
        color=GREY,
        alpha=0.35,
        linewidth=0,
        transform=ax.get_xaxis_transform(),
        zorder=0,
    )


def _caption(assessment: Assessment) -> str:
    low, high = assessment.interval
    return f"error {assessment.error:.3g}\n{100 * assessment.level:g}% interval {low:.3g} to {high:.3g}"
