"""The picture of an audit: by how much predictions are too high in each subgroup, before and perhaps after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orthocal.assessment.audit_records import Audit, AuditedCell
from orthocal.drawing import ACCENT, GREY, INK, axes_or_new, plain, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DRAWN = 40
"""Subgroups in one picture, the most surprising ones."""


def audit_forest(audit: Audit, ax: Axes | None = None, *, after: Audit | None = None) -> Axes:
    """Draw by how much predictions are too high in each subgroup, with simultaneous intervals; filled where it is miscalibrated.

    With `after`, the same subgroups after calibration stand beside: squares before, discs after.
    """
    cells = drawn_cells(audit)
    ax = axes_or_new(ax, (6.4, 1.4 + 0.36 * len(cells)))
    ax.axvline(0, color=GREY, linewidth=1, linestyle=(0, (5, 3)))
    later = {} if after is None else {cell.group: cell for cell in after.cells if cell.range is None}
    step = 0.14 if later else 0.0
    for place, cell in enumerate(cells):
        _mark(ax, cell, place + step, cell in audit.found, GREY if later else INK, "s" if later else "o")
        if after is not None and cell.group in later:
            own = later[cell.group]
            _mark(ax, own, place - step, own in after.found, ACCENT, "o")
    ax.set_yticks(range(len(cells)), [plain(f"{short_name(cell.group)} ({cell.rows:,.0f})") for cell in cells])
    ax.set_xlabel("predictions too high by")
    if later:
        ax.plot([], [], color=GREY, marker="s", linestyle="none", label="before")
        ax.plot([], [], color=ACCENT, marker="o", linestyle="none", label="after")
        ax.legend(frameon=False, loc="best")
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def drawn_cells(audit: Audit) -> list[AuditedCell]:
    """Return the whole subgroups that are drawn, those that are too low first, from below."""
    whole = [cell for cell in audit.cells if cell.range is None][:MOST_DRAWN]
    return sorted(whole, key=lambda cell: cell.excess)


def _mark(ax: Axes, cell: AuditedCell, place: float, is_off: bool, color: str, marker: str) -> None:
    ax.plot(list(cell.interval), [place, place], color=color, linewidth=1.6)
    face = color if is_off else "white"
    ax.plot([cell.excess], [place], marker=marker, color=color, markerfacecolor=face, markersize=6.5, linestyle="none")
