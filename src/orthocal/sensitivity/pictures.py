"""The contour picture: what is left of a conclusion at every strength of an unmeasured confounder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.omitted_variable import product_of
from orthocal.drawing import ACCENT, GREY, INK, axes_or_new, plain
from orthocal.formats import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from orthocal.sensitivity.records import Benchmark, Sensitivity

SIDE, CURVE = 121, 60
"""Points along a side of the picture, and of the curve behind it."""
WIDEST, ROOM = 0.95, 1.35
"""Largest share that is drawn, and how far beyond what is marked."""
LEAST, TURN = 0.02, 0.25
"""Least share that the picture reaches, and where the ray starts along which lines have their numbers: clear of most points."""
NAMED = 2
"""Covariates in one label."""
OVERTURNED = "#c2571a"
WORDS = {
    "average": "average effect",
    "error": "calibration error",
    "value": "value of deciding by it",
}


def strength_contours(found: Sensitivity, of: str, ax: Axes | None = None) -> Axes:
    """Draw the end of the interval nearest to 0 as lines over both parts of the strength; benchmarks are points.

    Beyond the thick line the interval includes 0: a confounder of such strength could overturn the conclusion.
    """
    ax, side = axes_or_new(ax, (6.4, 5.4)), _side(found)
    shares = np.linspace(0, side, SIDE)
    treatment, outcome = np.meshgrid(shares, shares)
    start = found.at_product(0.0)[of].interval
    place = 1 if of != "error" and start[1] < 0 else 0
    height = _heights(found, of, place, product_of(outcome, treatment))
    lines = ax.contour(
        treatment, outcome, height, levels=_levels(height), colors=GREY, linewidths=1.0, linestyles="solid"
    )
    ray = np.linspace(TURN * side, side, SIDE), shares
    _name_lines(ax, lines, ray, _heights(found, of, place, product_of(ray[1], ray[0])))
    _mark_zero(ax, found.product_to_zero(of), side)
    _mark_benchmarks(ax, found, side)
    ax.set(xlim=(0, side), ylim=(0, side))
    ax.set_title(
        f"{('Lower', 'Upper')[place]} end of the interval of the {WORDS[of]}", fontsize="medium", loc="left", pad=24
    )
    ax.set_xlabel("strength, treatment: share of the variance of the weights")
    ax.set_ylabel("strength, outcome: share of the residual variance")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _levels(height: Floats) -> Floats:
    """Return round numbers between the least and the largest, without 0, which has a line of its own."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(7).tick_values(float(height.min()), float(height.max()))
    return np.asarray(found[np.abs(found) > 1e-9 * np.ptp(found)])


def _name_lines(ax: Axes, lines: Any, ray: tuple[Floats, Floats], height: Floats) -> None:
    """Write each line's number on it, where it crosses a ray along which the height is known, and not at the edge."""
    sign = 1.0 if height[-1] > height[0] else -1.0
    at = [float(np.interp(sign * level, sign * height, np.linspace(0, 1, SIDE))) for level in lines.levels]
    inside = [share for share in at if 0.08 < share < 0.97]
    if inside:
        where = (np.interp(inside, np.linspace(0, 1, SIDE), part) for part in ray)
        ax.clabel(lines, fmt=number, fontsize="small", colors=INK, manual=list(zip(*where, strict=True)))


def _side(found: Sensitivity) -> float:
    """Return how far the picture reaches: beyond every benchmark and robustness value."""
    marked = [share for one in found.benchmarks for share in (one.outcome, one.treatment)]
    marked += [value for value in (found.robustness.error, found.robustness.average) if value is not None]
    return float(np.clip(ROOM * max(marked, default=0.1), LEAST, WIDEST))


def _heights(found: Sensitivity, of: str, place: int, product: Floats) -> Floats:
    """Return the end of the interval at each product, by a curve through some."""
    at = np.linspace(0, float(product.max()), CURVE)
    ends = [found.at_product(float(one))[of].interval[place] for one in at]
    return np.asarray(np.interp(product, at, ends))


def _mark_zero(ax: Axes, product: float, side: float) -> None:
    """Draw the line at which the interval reaches 0, a curve of one product, if it is in the picture."""
    if not 0 < product < product_of(side, side):
        return
    treatment = np.linspace(product**2 / (side + product**2), side, SIDE)
    ax.plot(
        treatment, product**2 * (1 - treatment) / treatment, color=OVERTURNED, linewidth=2.4, label="where it reaches 0"
    )
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(-0.02, 1.0), borderaxespad=0.1)


def _mark_benchmarks(ax: Axes, found: Sensitivity, side: float) -> None:
    """Draw covariates by what they would be had they not been measured; those that lie close together share a label."""
    groups: list[list[Benchmark]] = []
    for one in sorted(found.benchmarks, key=lambda one: -one.outcome - one.treatment):
        near = [group for group in groups if _is_near(group[0], one, side)]
        near[0].append(one) if near else groups.append([one])
    for group in groups:
        first = group[0]
        ax.plot(
            [one.treatment for one in group], [one.outcome for one in group], "o", color=ACCENT, zorder=5, clip_on=False
        )
        right = first.treatment > 0.6 * side
        ax.annotate(
            plain(_names(group)),
            (first.treatment, first.outcome),
            xytext=(-8 if right else 8, 6),
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize="small",
            color=ACCENT,
        )


def _names(group: list[Benchmark]) -> str:
    """Return the names of covariates that lie close together; of many the strongest."""
    names, more = [one.covariate for one in group[:NAMED]], len(group) - NAMED
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _is_near(one: Benchmark, other: Benchmark, side: float) -> bool:
    return abs(one.treatment - other.treatment) < side / 5 and abs(one.outcome - other.outcome) < side / 25
