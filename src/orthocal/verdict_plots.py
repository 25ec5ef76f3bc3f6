"""Pictures of what a verdict says in short: how large errors are beside the tolerance, and whether the order is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from orthocal.assessment import Assessment
from orthocal.assessment.bin_table import reaches
from orthocal.assessment.status import CALIBRATED
from orthocal.drawing import ACCENT, GREY, INK, SMALL, axes_or_new, plain, short_name
from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration_errors(verdicts: Mapping[str, Assessment], ax: Axes | None = None) -> Axes:
    """Draw the calibration error of each verdict with its interval beside the tolerance, and its status in words.

    Filled marks are calibrated. Tolerances are upright lines, one for all where they agree.
    """
    ax = axes_or_new(ax, (5.6, 1.0 + 0.42 * len(verdicts)))
    names, found = list(verdicts)[::-1], list(verdicts.values())[::-1]
    for place, verdict in enumerate(found):
        colour = ACCENT if verdict.status == CALIBRATED else INK
        face = colour if verdict.status == CALIBRATED else "white"
        ax.plot(verdict.interval, [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        ax.plot([verdict.error], [place], marker="o", markersize=7, color=colour, markerfacecolor=face)
        ax.text(1.02, place, verdict.status, transform=ax.get_yaxis_transform(), va="center", color=colour)
    ax.set_yticks(range(len(found)), [plain(short_name(name)) for name in names])
    ax.set(ylim=(-0.6, len(found) - 0.4), xlabel=f"calibration error (unit: {found[0].unit})")
    end = max(max(verdict.interval[1], verdict.tolerance) for verdict in found)
    ax.set_xlim(-0.04 * end, 1.05 * end)  # so that a mark at 0 is whole
    _tolerances(ax, [verdict.tolerance for verdict in found])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _tolerances(ax: Axes, tolerances: list[float]) -> None:
    """Draw the tolerances, in one line and with its name where all are the same."""
    for place, tolerance in enumerate(tolerances):
        ax.plot([tolerance, tolerance], [place - 0.5, place + 0.5], color=GREY, linewidth=1.2, linestyle=(0, (4, 2)))
    if max(tolerances) - min(tolerances) <= 1e-9 * max(tolerances):
        side = "right" if tolerances[0] > sum(ax.get_xlim()) / 2 else "left"
        top = len(tolerances) - 0.45
        ax.text(tolerances[0], top, " tolerance ", fontsize=SMALL, color=GREY, ha=side, va="bottom")


def ranked_effects(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw the estimated effect of people from the highest prediction down, bin by bin, with intervals, and the average.

    A prediction that ranks shows marks that fall from left to right. Bins of a ratio effect without an estimate are left out.
    """
    if assessment.rate is None:
        raise OrthocalError("This verdict has no ranking to draw: its effect is no mean, or its prediction one number.")
    ax, bins = axes_or_new(ax, (5.2, 3.9)), assessment.bins
    share = 100 * np.cumsum(bins["n"][::-1]) / bins["n"].sum()
    middle = share - 50 * bins["n"][::-1] / bins["n"].sum()
    average = assessment.average
    ax.axhspan(*average.interval, color=GREY, alpha=0.18, linewidth=0)
    ax.axhline(average.effect, color=GREY, linewidth=1, linestyle=(0, (5, 3)))
    ax.text(1.01, average.effect, "average", transform=ax.get_yaxis_transform(), va="center", color=GREY)
    reach = reaches(bins, "residual")[:, ::-1]
    ax.errorbar(
        middle,
        bins["target"][::-1],
        yerr=reach,
        color=ACCENT,
        marker="o",
        markersize=5.5,
        elinewidth=2.2,
        linestyle="none",
    )
    ax.set(xlim=(0, 100), xlabel="people by prediction, the highest first (%)", ylabel="estimated effect")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
