"""Pictures of a report: drawn from records, with what they show in words, in hints, and in the table behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment import Assessment
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.parts import Value
from orthocal.formats import between, estimate, number, off_by, percent
from orthocal.group_maps import GroupMap
from orthocal.maps import Map
from orthocal.reporting.page.document import Picture, Pictures, Slider, Table
from orthocal.reporting.page.render import TIP, picture
from orthocal.reporting.page.tables import (
    base_of,
    bins_table,
    decision_table,
    errors_table,
    groups_table,
    map_table,
    propensities_table,
    ranking_table,
    survival_table,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 4.4
"""Of a drawing, in inches: its letters are then still read on a phone."""
HOW_TO_READ = (
    "Each mark is a bin of people with similar predictions. Thick bars: interval of that bin; thin bars: band for all bins "
    "at once. On the dashed line predictions are right."
)


def errors_picture(verdicts: Mapping[str, Assessment], name: str = "errors") -> Picture:
    """Draw the error of each verdict beside its tolerance."""
    from orthocal import plots

    ax = plots.calibration_errors(verdicts, axes_for_page(0.75 + 0.42 * len(verdicts)))
    tips = [_error_in_words(one, verdict) for one, verdict in verdicts.items()]
    hints(ax, [verdict.error for verdict in verdicts.values()], list(range(len(verdicts)))[::-1])
    caption = "Calibration errors with intervals, beside the tolerance: an error this large would matter."
    return picture_of(ax, " ".join(tips), caption, name, tips=tips, table=errors_table(verdicts))


def _error_in_words(name: str, verdict: Assessment) -> str:
    error = estimate(verdict.error, verdict.interval)
    return f"{name}: error {error}, tolerance {number(verdict.tolerance)}, {verdict.status}."


def before_after_pictures(
    before: Assessment, after: Assessment, place: str = "reliability", band: EffectBand | None = None
) -> Pictures:
    """Draw two reliability curves on the same scale; pictures of one page differ by their place.

    The band is of predictions before calibration, and drawn there.
    """
    from orthocal import plots
    from orthocal.drawing import GREY

    axes = [
        plots.reliability(before, axes_for_page(WIDTH), title="before", color=GREY, marker="s", band=band),
        plots.reliability(after, axes_for_page(WIDTH), title="after"),
    ]
    plots.on_one_scale(axes, square=before.curve is not None)
    caption = f"{HOW_TO_READ}{about_band(band)}"
    drawn = [
        _bins_picture(ax, verdict, name, f"{place}-{name}", caption)
        for ax, (name, verdict) in zip(axes, {"before": before, "after": after}.items(), strict=True)
    ]
    return Pictures(tuple(drawn), caption)


def reliability_picture(assessment: Assessment, name: str, band: EffectBand | None = None) -> Picture:
    """Draw one reliability curve, over the band of the average effect where there is one."""
    from orthocal import plots

    ax, caption = plots.reliability(assessment, axes_for_page(WIDTH), band=band), f"{HOW_TO_READ}{about_band(band)}"
    return _bins_picture(ax, assessment, "", f"reliability-{name}", caption)


def about_band(band: EffectBand | None) -> str:
    """Return what the shaded band of a picture is; nothing where there is none."""
    if band is None:
        return ""
    return f" Shaded: {percent(band.level)} band, from all rows, {band.meaning}; it holds for all predictions at once."


def _bins_picture(ax: Axes, verdict: Assessment, title: str, name: str, caption: str) -> Picture:
    bins = verdict.bins
    hints(ax, bins["prediction"], bins["target"] if verdict.curve is not None else -bins["residual"])
    tips = [
        f"Predicted {number(p)}, estimated {number(t) or '(too uncertain)'}{_gap(gap, low, high)}; {n:,.0f} rows."
        for p, t, gap, low, high, n in zip(
            *(bins[k] for k in ("prediction", "target", "residual", "residual_lower", "residual_upper", "n")),
            strict=True,
        )
    ]
    words = f"{title}: {_bins_in_words(verdict)}." if title else f"{_bins_in_words(verdict)}."
    without_legend(ax)
    without_notes(ax)
    error = f"error {estimate(verdict.error, verdict.interval)}"
    ax.set_title(f"{title}: {error}" if title else error, fontsize="medium")
    return picture_of(ax, words, caption, name, tips=tips, table=bins_table(verdict, title))


def _gap(gap: float, low: float, high: float) -> str:
    return f"; gap {number(gap)} ({between((low, high))})" if low <= high else ""


def without_legend(ax: Axes) -> None:
    """Take the legend away where the caption says what is drawn."""
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()


def without_notes(ax: Axes) -> None:
    """Take words off a drawing, where they may lie on its marks; title, caption or table say the same."""
    for text in list(ax.texts):
        text.remove()


def map_picture(fitted: Map, assessment: Assessment, band: EffectBand | None = None, name: str = "map") -> Picture:
    """Draw what the map does to the predictions there are."""
    from orthocal import plots

    predictions = assessment.predictions
    low, high = float(predictions[0]), float(predictions[-1])
    base = base_of(fitted)
    ends = base([low, high])
    words = f"The map takes a prediction of {low:.4g} to {ends[0]:.4g} and one of {high:.4g} to {ends[1]:.4g}."
    caption = "Calibrated against original prediction; the dashed line leaves predictions as they are."
    if isinstance(fitted, GroupMap):
        caption += " What is added in subgroups comes on top; see the table of shifts."
    caption += about_band(band)
    table = map_table(fitted, assessment, band)
    ax = plots.calibration_map(fitted, predictions, axes_for_page(4.0), band=band)
    grid = np.linspace(low, high, len(table.rows))
    hints(ax, grid, np.asarray(base(grid)))
    bands = [f"; band {row[2] or 'open'} to {row[3] or 'open'}" if band is not None else "" for row in table.rows]
    tips = [f"{row[0]} becomes {row[1]}{ends}." for row, ends in zip(table.rows, bands, strict=True)]
    return picture_of(ax, words, caption, name, tips=tips, table=table)


def ranking_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the estimated effects from the highest prediction down."""
    from orthocal import plots

    table = ranking_table(assessment)
    ax, bins = plots.ranked_effects(assessment, axes_for_page(3.6)), assessment.bins
    share = 100 * np.cumsum(bins["n"][::-1]) / bins["n"].sum()
    hints(ax, share - 50 * bins["n"][::-1] / bins["n"].sum(), bins["target"][::-1])
    tips = [f"People {row[0]} by prediction: estimated effect {row[3]}, predicted {row[2]}." for row in table.rows]
    words = "; ".join(f"{row[0]}: {row[3]}" for row in table.rows)
    caption = (
        "Estimated effects of people from the highest prediction down, with intervals; a prediction that ranks well shows marks "
        "that fall from left to right. Dashed and shaded: the average effect and its interval."
    )
    return picture_of(ax, f"Estimated effects, {words}.", caption, f"ranking-{name}", tips=tips, table=table)


def forest_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the subgroups."""
    from orthocal import plots

    drawn = [one for one in assessment.subgroups if one.excess is not None and one.excess_interval is not None]
    tips = [
        f"{group.column} = {group.value}: {off_by(group.excess or 0.0, group.excess_interval or (0.0, 0.0))}, {group.rows:,} rows"
        for group in drawn
    ]
    ax = plots.forest(assessment, axes_for_page(0.9 + 0.34 * max(len(drawn), 1)))
    hints(ax, [group.excess or 0.0 for group in drawn], list(range(len(drawn)))[::-1])
    caption = (
        "By how much predictions are too high in each subgroup, with intervals; filled where the adjusted test rejects."
    )
    return picture_of(ax, f"{'; '.join(tips)}.", caption, f"forest-{name}", tips=tips, table=groups_table(assessment))


def decision_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the net gain of deciding by the prediction, with a slider over costs."""
    from orthocal import plots

    value: Any = assessment.value
    words = (
        f"At cost {value.cost:.4g}: by prediction {value.value:.4g}, everyone {value.treating_everyone:.4g}, no one 0."
    )
    caption = (
        "Net gain per row of treating where the prediction exceeds the cost, of treating everyone, and of treating no one; "
        "estimates, whose interval at the cost that was given stands below."
    )
    ax, steps = plots.decision_curve(assessment, axes_for_page(3.8)), _decisions(value)
    for place, (cost, _, _) in enumerate(steps):
        ax.axvline(cost, linewidth=7, alpha=0, zorder=9, gid=f"{TIP}{place}")
    texts = tuple(_decided(*step) for step in steps)
    start = [cost for cost, _, _ in steps].index(value.cost)
    places = tuple(f"cost {number(cost)}" for cost, _, _ in steps)
    slider = Slider("What if treating one person cost more, or less?", places, texts, start)
    table = decision_table(assessment)
    return picture_of(ax, words, caption, f"decision-{name}", tips=texts, table=table, slider=slider)


def _decisions(value: Value) -> list[tuple[float, float, float]]:
    """Return costs with the net gains of treating by prediction and of treating everyone: the curve, and the cost given."""
    columns = (value.curve[name].tolist() for name in ("cost", "by_prediction", "everyone"))
    drawn = {cost: (cost, gain, everyone) for cost, gain, everyone in zip(*columns, strict=True)}
    return sorted({**drawn, value.cost: (value.cost, value.value, value.treating_everyone)}.values())


def _decided(cost: float, by_prediction: float, everyone: float) -> str:
    """Say what three rules gain at a cost, and which gains most."""
    gains = {"treating by prediction": by_prediction, "treating everyone": everyone, "treating no one": 0.0}
    best = max(gains, key=lambda rule: gains[rule])
    return (
        f"At a cost of {number(cost)}: by prediction {number(by_prediction)} per row, everyone {number(everyone)}, no one 0. "
        f"Largest: {best}."
    )


def overlap_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the propensities."""
    from orthocal import plots

    spread: Any = assessment.overlap
    words = "; ".join(f"{level}: {low:.3g} to {high:.3g}" for level, (low, high) in spread.propensity.items())
    caption = (
        "Propensities of the treatment people received: mass near 0 means that some rows had hardly any chance of it."
    )
    ax, table = plots.overlap(assessment, axes_for_page(3.5)), propensities_table(spread, plots.PROPENSITIES)
    return picture_of(ax, f"Propensities, {words}.", caption, f"overlap-{name}", table=table)


def survival_pictures(assessment: Assessment, name: str) -> list[Picture]:
    """Draw the survival curves of both arms, where the effect is one on censored times."""
    from orthocal import plots

    curves = getattr(assessment.overlap, "curves", None)
    if curves is None:
        return []
    words = "; ".join(f"{arm}: {mean[-1]:.3g} at {curves.times[-1]:.4g}" for arm, (mean, _) in curves.arms.items())
    caption = (
        "Survival probability over time had everyone got each arm, doubly robust, with 95% intervals at each time."
    )
    ax = plots.survival_curves(assessment, axes_for_page(3.5))
    return [picture_of(ax, f"Survival curves, {words}.", caption, f"survival-{name}", table=survival_table(curves))]


def axes_for_page(height: float, width: float = WIDTH) -> Axes:
    """Return axes of a new figure of the width that pictures of a page have."""
    from orthocal.drawing import axes_or_new

    return axes_or_new(None, (width, height))


def hints(ax: Axes, across: Iterable[float], up: Iterable[float]) -> None:
    """Lay a mark over each point that is not seen, but can be pointed at."""
    from orthocal.drawing import INK

    limits = ax.get_xlim(), ax.get_ylim()
    for place, point in enumerate(zip(across, up, strict=True)):
        ax.plot(*[[end] for end in point], "o", markersize=15, color=INK, alpha=0, zorder=9, gid=f"{TIP}{place}")
    ax.set(xlim=limits[0], ylim=limits[1])


def picture_of(
    ax: Axes,
    words: str,
    caption: str,
    name: str,
    *,
    tips: Sequence[str] = (),
    table: Table | None = None,
    slider: Slider | None = None,
) -> Picture:
    """Return what is drawn on axes as a picture of a page, its legend above it, where it hides nothing."""
    from orthocal.drawing import few_ticks, legend_outside

    few_ticks(ax)
    legend_outside(ax)
    return picture(ax.figure, words, caption, name, table=table, tips=tips, slider=slider)  # type: ignore[arg-type]


def _bins_in_words(assessment: Assessment) -> str:
    bins = assessment.bins
    pairs = zip(bins["prediction"], bins["target"], strict=True)
    return "predicted and estimated, bin by bin, " + ", ".join(
        f"{p:.3g} and {t:.3g}" if np.isfinite(t) else f"{p:.3g} and too uncertain" for p, t in pairs
    )
