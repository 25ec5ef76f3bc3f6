"""Pictures of a report: each draws a record with `orthocal.plots` and says in words what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment import Assessment
from orthocal.maps import Map
from orthocal.reporting.page.document import Picture, Pictures
from orthocal.reporting.page.render import picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW_TO_READ = (
    "Each mark is a bin of people with like predictions. Thick bars: interval of that bin; thin bars: band for all bins at once. "
    "On the dashed line predictions are right."
)


def before_after_pictures(before: Assessment, after: Assessment) -> Pictures:
    """Draw two reliability curves on the same scale."""
    from orthocal import plots

    axes = [
        plots.reliability(before, title="before", color=plots.GREY, marker="s"),
        plots.reliability(after, title="after"),
    ]
    plots.on_one_scale(axes, square=before.curve is not None)
    drawn = [
        _of(ax, f"{name}: {_bins_in_words(verdict)}.", HOW_TO_READ, f"reliability-{name}")
        for ax, (name, verdict) in zip(axes, {"before": before, "after": after}.items(), strict=True)
    ]
    return Pictures(tuple(drawn), HOW_TO_READ)


def reliability_picture(assessment: Assessment, name: str) -> Picture:
    """Draw one reliability curve."""
    from orthocal import plots

    return _of(plots.reliability(assessment), f"{_bins_in_words(assessment)}.", HOW_TO_READ, f"reliability-{name}")


def map_picture(fitted: Map, assessment: Assessment) -> Picture:
    """Draw what the map does to the predictions there are."""
    from orthocal import plots

    predictions = assessment.predictions
    low, high = float(predictions[0]), float(predictions[-1])
    ends = fitted.predict([low, high])
    words = f"The map takes a prediction of {low:.4g} to {ends[0]:.4g} and one of {high:.4g} to {ends[1]:.4g}."
    caption = "Calibrated against original prediction; the dashed line leaves predictions as they are."
    return _of(plots.calibration_map(fitted, predictions), words, caption, "map")


def forest_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the subgroups."""
    from orthocal import plots

    words = "; ".join(
        f"{group.column} = {group.level}: too high by {group.excess:.4g}"
        for group in assessment.groups
        if group.excess is not None
    )
    caption = (
        "By how much predictions are too high in each subgroup, with intervals; filled where the adjusted test rejects."
    )
    return _of(plots.forest(assessment), f"{words}.", caption, f"forest-{name}")


def decision_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the net gain of deciding by the prediction."""
    from orthocal import plots

    value: Any = assessment.value
    words = (
        f"At cost {value.cost:.4g}: by prediction {value.value:.4g}, everyone {value.treating_everyone:.4g}, no one 0."
    )
    caption = "Net gain per row of treating where the prediction exceeds the cost, of treating everyone, and of treating no one."
    return _of(plots.decision_curve(assessment), words, caption, f"decision-{name}")


def overlap_picture(assessment: Assessment, name: str) -> Picture:
    """Draw the propensities."""
    from orthocal import plots

    spread: Any = assessment.overlap
    words = "; ".join(f"{level}: {low:.3g} to {high:.3g}" for level, (low, high) in spread.propensity.items())
    caption = "Propensities of the level people got: mass near 0 means that some rows had hardly any chance of it."
    return _of(plots.overlap(assessment), f"Propensities, {words}.", caption, f"overlap-{name}")


def _of(ax: Axes, words: str, caption: str, name: str) -> Picture:
    return picture(ax.figure, words, caption, name)  # type: ignore[arg-type]


def _bins_in_words(assessment: Assessment) -> str:
    bins = assessment.bins
    pairs = zip(bins["prediction"], bins["target"], strict=True)
    return "predicted and estimated, bin by bin, " + ", ".join(
        f"{p:.3g} and {t:.3g}" if np.isfinite(t) else f"{p:.3g} and nothing certain" for p, t in pairs
    )
