"""The picture of a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orthocal.assessment.rivals import Rival
from orthocal.drawing import ACCENT, GREY, INK, axes_or_new, plain, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def leaderboard(rivals: Sequence[Rival], ax: Axes | None = None, *, level: float = 0.95) -> Axes:
    """Draw the mean losses of rivals relative to that of the average effect, with intervals, the best at the top.

    Filled marks are in the confidence set: they cannot be distinguished from the best. Squares are calibrated predictions, discs
    predictions as they are, diamonds one number for everyone. Rivals far beyond the others are written at the edge.
    """
    ax = axes_or_new(ax, (5.4 + 0.075 * max(len(short_name(rival.name)) for rival in rivals), 1.5 + 0.36 * len(rivals)))
    low, high = _reach_of_rivals(rivals)
    ax.axvline(0, color=GREY, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    for place, rival in enumerate(rivals):
        look, loss = _look(rival), rival.relative_loss
        if loss.value > high:
            words = f"{loss.value:.3g} \N{RIGHTWARDS ARROW}"
            ax.text(
                0.985,
                place,
                words,
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                color=look["color"],
                bbox=PAPER,
            )
            continue
        ax.plot(loss.interval, [place, place], color=look["color"], linewidth=2.2, solid_capstyle="butt", zorder=2)
        ax.plot([loss.value], [place], markersize=7.5, linestyle="none", zorder=3, **look)
    ax.set(xlim=(low, high), ylim=(len(rivals) - 0.4, -0.6))
    ax.set_yticks(range(len(rivals)), [plain(short_name(rival.name)) for rival in rivals])
    ax.set_xlabel(f"mean loss minus that of the average effect ({100 * level:g}% intervals); lower is better")
    for name, look in LOOKS.items():
        ax.plot([], [], linestyle="none", markersize=7.5, label=name, **look)
    ax.plot(
        [], [], linestyle="none", marker="o", color=GREY, markerfacecolor="white", label="not in the confidence set"
    )
    ax.legend(frameon=False, fontsize="small", ncols=4, loc="lower right", bbox_to_anchor=(1, 1), handletextpad=0.2)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


LOOKS: dict[str, dict[str, Any]] = {
    "calibrated": {"color": ACCENT, "marker": "s"},
    "as it is": {"color": INK, "marker": "o"},
    "same for everyone": {"color": GREY, "marker": "D"},
}
"""How rivals are drawn."""
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
"""What hides lines behind words."""
FARTHEST = 3
"""Widths of the better rivals beyond which a worse one is only written."""


def _look(rival: Rival) -> dict[str, Any]:
    kind = "same for everyone" if rival.model is None else "calibrated" if rival.is_calibrated else "as it is"
    return LOOKS[kind] | ({} if rival.is_in_set else {"markerfacecolor": "white"})


def _reach_of_rivals(rivals: Sequence[Rival]) -> tuple[float, float]:
    """Hull of the intervals, but for rivals that are so much worse that the others would be one line."""
    near = [
        end for one in rivals if one.is_in_set or one.relative_loss.value <= 0 for end in one.relative_loss.interval
    ]
    width = max(near) - min(near)
    ends = near + [
        end
        for one in rivals
        if one.relative_loss.value <= max(near) + FARTHEST * width
        for end in one.relative_loss.interval
    ]
    margin = 0.04 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin
