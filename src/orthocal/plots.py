"""Pictures of records. Each takes a record and ``ax=``, returns the axes and computes no estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.bin_table import hull, reaches
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.status import SHARE
from orthocal.audit_plots import audit_forest
from orthocal.decisions.pictures import budget_curve, policy_values, top_shares
from orthocal.drawing import ACCENT, GREY, INK, SMALL, marked_at, plain, short_name
from orthocal.drawing import axes_or_new as _axes
from orthocal.errors import OrthocalError
from orthocal.formats import between, number, percent
from orthocal.map_plots import calibration_map, shaded_band
from orthocal.rival_plots import leaderboard
from orthocal.verdict_plots import calibration_errors, ranked_effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "audit_forest",
    "before_and_after",
    "budget_curve",
    "calibration_errors",
    "calibration_map",
    "contrasts",
    "decision_curve",
    "forest",
    "leaderboard",
    "on_one_scale",
    "overlap",
    "overlay",
    "policy_values",
    "ranked_effects",
    "reliability",
    "residuals",
    "shaded_band",
    "survival_curves",
    "top_shares",
]

MOST_COLUMNS = 3
PROPENSITIES = np.linspace(0, 1, 41)
"""Edges of the bins in which propensities are counted."""


def reliability(
    assessment: Assessment,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    curve: bool = False,
    band: EffectBand | None = None,
    **style: Any,
) -> Axes:
    """Draw estimated against predicted effect, bin by bin, with intervals, the diagonal and the predictions' density.

    Thick bars are pointwise intervals, thin ones the simultaneous band: the diagonal should cross all thin bars. `curve` draws
    the nondecreasing curve with its band instead. `band` is shaded behind: it needs no bins, and is for the average effect of
    people with that prediction, never for a person's own effect. Where residuals are not in units of the effect (quantiles,
    expectiles), they are drawn themselves, against zero. Bins of a ratio effect whose mass is not away from 0 are not drawn, nor
    bars without end.
    """
    ax = _axes(ax, (5.2, 5.2))
    if assessment.curve is None:
        return residuals(assessment, ax, title=title, **style)
    bins = assessment.bins
    style = {"color": ACCENT, "marker": "o", "markersize": 5.5, "linestyle": "none", **style}
    low, high = _limits(assessment)
    if band is not None:
        shaded_band(band, np.clip(assessment.predictions, low, high), ax)
        ax.legend(loc="lower right", bbox_to_anchor=(1, 0.12), frameon=False, fontsize="small")
    ax.axline((low, low), slope=1, color=GREY, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    if curve:
        fit = assessment.curve
        ax.fill_between(fit.prediction, fit.lower, fit.upper, step="mid", color=style["color"], alpha=0.2, linewidth=0)
        ax.step(fit.prediction, fit.target, where="mid", color=style["color"])
    else:
        _bars(ax, bins, bins["target"], 1, style)
    ax.set(xlim=(low, high), ylim=(low, high), box_aspect=1, title=title)
    _density(assessment, ax)
    return _labelled(ax, assessment, "predicted effect", "estimated effect of people with that prediction")


def residuals(assessment: Assessment, ax: Axes | None = None, *, title: str | None = None, **style: Any) -> Axes:
    """Draw minus the residual of each bin against the prediction: for a quantile, coverage minus what it should be."""
    ax = _axes(ax, (5.6, 4.2))
    bins = assessment.bins
    style = {"color": ACCENT, "marker": "o", "markersize": 5.5, "linestyle": "none", **style}
    ax.axhline(0, color=GREY, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    _bars(ax, bins, -bins["residual"], -1, style)
    _density(assessment, ax)
    ax.set_title(title or "")
    return _labelled(ax, assessment, "prediction (outcome units)", f"too high (+) or too low (-), {assessment.unit}")


def overlay(before: Assessment, after: Assessment, ax: Axes | None = None) -> Axes:
    """Draw two reliability curves in one picture: squares before, discs after."""
    ax = _axes(ax, (5.4, 5.4))
    reliability(before, ax, color=GREY, marker="s")
    limits = ax.get_xlim()
    for text in list(ax.texts):
        text.remove()
    reliability(after, ax)
    both = (min(limits[0], ax.get_xlim()[0]), max(limits[1], ax.get_xlim()[1]))
    if before.curve is not None:
        ax.set(xlim=both, ylim=both)
    ax.plot([], [], color=GREY, marker="s", linestyle="none", label="before")
    ax.plot([], [], color=ACCENT, marker="o", linestyle="none", label="after")
    ax.legend(loc="lower right", frameon=False)
    return ax


def forest(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw by how much predictions are too high in each subgroup, with intervals; filled where the adjusted test rejects."""
    groups = [group for group in assessment.subgroups if group.excess is not None and group.excess_interval is not None]
    ax = _axes(ax, (6.0, 1.2 + 0.34 * max(len(groups), 1)))
    ax.axvline(0, color=GREY, linewidth=1, linestyle=(0, (5, 3)))
    for place, group in enumerate(reversed(groups)):
        low, high = group.excess_interval or (0.0, 0.0)
        wrong = group.p_value_adjusted is not None and group.p_value_adjusted < SHARE * (1 - assessment.level)
        ax.plot([low, high], [place, place], color=INK, linewidth=1.6)
        ax.plot(
            [group.excess or 0.0],
            [place],
            marker="o",
            color=INK,
            markerfacecolor=INK if wrong else "white",
            markersize=7,
        )
    names = [plain(f"{short_name(f'{g.column} = {g.value}')} ({g.rows:,})") for g in reversed(groups)]
    ax.set_yticks(range(len(groups)), names)
    ax.set_xlabel("predictions too high by")
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def decision_curve(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw the net gain per row of deciding by the prediction, of treating everyone and of treating no one, over costs."""
    if assessment.value is None:
        raise OrthocalError("A decision curve must have a cost; give one to assess(..., cost=...).")
    ax, curve = _axes(ax, (5.6, 4.2)), assessment.value.curve
    ax.plot(curve["cost"], curve["by_prediction"], color=ACCENT, linewidth=2, label="by prediction")
    ax.plot(curve["cost"], curve["everyone"], color=GREY, linewidth=1.4, linestyle="--", label="everyone")
    ax.axhline(0, color=GREY, linewidth=1, linestyle=":", label="no one")
    marked_at(ax, assessment.value.cost, "cost")
    low, high = float(curve["by_prediction"].min()), float(curve["by_prediction"].max())
    ax.set_ylim(min(low, 0) - 0.3 * (high - low), high + 0.15 * (high - low))
    ax.set(xlabel="cost of treating one", ylabel="net gain per row")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def overlap(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw the propensities of those who got each treatment."""
    if assessment.overlap is None or not assessment.overlap.levels:
        raise OrthocalError("This effect has no propensities to draw.")
    ax = _axes(ax, (5.6, 3.8))
    styles: list[dict[str, Any]] = [{"color": ACCENT, "linestyle": "-"}, {"color": INK, "linestyle": "--"}]
    for style, (name, (got, propensity)) in zip(styles * 2, assessment.overlap.levels.items(), strict=False):
        own = propensity[got]
        ax.hist(
            own, bins=PROPENSITIES.tolist(), histtype="step", density=True, label=plain(name), linewidth=1.6, **style
        )
    ax.set(xlim=(0, 1), xlabel="propensity of the treatment received", ylabel="density")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def survival_curves(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw the survival curves of both arms, averaged over all rows, with bands of pointwise intervals."""
    curves = getattr(assessment.overlap, "curves", None)
    if curves is None:
        raise OrthocalError("This effect has no survival curves to draw; effects on censored times do.")
    ax = _axes(ax, (5.6, 3.8))
    styles: list[dict[str, Any]] = [{"color": ACCENT, "linestyle": "-"}, {"color": INK, "linestyle": "--"}]
    times = np.append(0.0, curves.times)
    for style, (name, (mean, _)) in zip(styles, curves.arms.items(), strict=True):
        low, high = (np.append(1.0, end) for end in curves.band(name))
        ax.plot(times, np.append(1.0, mean), label=plain(name), linewidth=1.6, **style)
        ax.fill_between(times, low, high, color=style["color"], alpha=0.15, linewidth=0)
    ax.set(xlim=(0, times[-1]), ylim=(0, 1), xlabel="time", ylabel="survival probability")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def before_and_after(
    before: Assessment, after: Assessment, *, title: str | None = None, band: EffectBand | None = None
) -> Figure:
    """Draw two reliability curves side by side on the same scale; `band`, of predictions before calibration, on the first."""
    figure, axes = plt.subplots(1, 2, figsize=(10.4, 5.6), layout="constrained")
    reliability(before, axes[0], title="before", color=GREY, marker="s", band=band)
    reliability(after, axes[1], title="after calibration")
    on_one_scale(axes, square=before.curve is not None)
    axes[1].set_ylabel("")
    if title:
        figure.suptitle(title, fontsize="x-large")
    return figure


def contrasts(before: Mapping[str, Assessment], after: Mapping[str, Assessment] | None = None) -> Figure:
    """Draw a reliability curve for each contrast of several arms; where there is an after, both in one picture."""
    columns = min(len(before), MOST_COLUMNS)
    rows = -(-len(before) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.6 * columns, 4.9 * rows), layout="constrained", squeeze=False)
    for ax, (name, verdict) in zip(axes.flat, before.items(), strict=False):
        if after is None:
            reliability(verdict, ax)
        else:
            overlay(verdict, after[name], ax)
        ax.set_title(plain(name))
    for ax in axes.flat[len(before) :]:
        ax.set_visible(False)
    return figure


def on_one_scale(axes: Sequence[Axes], *, square: bool) -> None:
    """Give pictures the same limits; `square` ones have the same upwards as across."""
    across = [end for ax in axes for end in ax.get_xlim()]
    up = across if square else [end for ax in axes for end in ax.get_ylim()]
    for ax in axes:
        ax.set_xlim(min(across), max(across))
        ax.set_ylim(min(up), max(up))


def _labelled(ax: Axes, assessment: Assessment, x: str, y: str) -> Axes:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.text(0.03, 0.97, _caption(assessment), transform=ax.transAxes, va="top", fontsize=SMALL, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _bars(ax: Axes, bins: Mapping[str, Floats], height: Floats, sign: int, style: dict[str, Any]) -> None:
    """Draw a mark for each bin with its thin and thick bar; `sign` is that of the residual in the height."""
    for name, look in (("band", {"elinewidth": 0.9, "marker": ""}), ("residual", {"elinewidth": 2.6})):
        ax.errorbar(bins["prediction"], height, yerr=reaches(bins, name)[::sign], **{**style, **look})


def _limits(assessment: Assessment) -> tuple[float, float]:
    """Hull of the points and their bars; predictions further out are in the outer bins."""
    bins = assessment.bins
    known = np.concatenate([bins["prediction"], hull(bins, bins["target"], 1)])
    margin = 0.08 * float(np.ptp(known)) or 1.0
    return float(known.min()) - margin, float(known.max()) + margin


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
    return f"error {number(assessment.error)}\n{percent(assessment.level)} interval {between(assessment.interval)}"
