"""What an experiment is: its rows, findings, claims and pictures, the truth they are held to, and the sizes of its learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import matplotlib.pyplot as plt
import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.bins import binned
from orthocal.assessment.error import squared_error
from orthocal.drawing import ACCENT, GREY, INK
from orthocal.errors import require_one_of
from orthocal.losses import QuadraticLoss
from orthocal.nuisances.learners import SETTINGS
from orthocal.reporting.page.document import Picture
from orthocal.reporting.page.render import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from orthocal.reporting.page.document import Block, Table


Key = dict[str, Any]
"""What tells one repetition from another: it, and the seed, determine the row."""
Row = dict[str, Any]


def rows_by_size(rows: Sequence[Row], sizes: Sequence[str]) -> dict[str, list[Row]]:
    """Return the rows of each size of learners, in the order of `sizes`; a size without rows is left out."""
    found = {size: [row for row in rows if row["learners"] == size] for size in sizes}
    return {size: own for size, own in found.items() if own}


@dataclass(frozen=True)
class Claim:
    """Something that was claimed, whether it held in this run (None: too few repetitions to say), and what was measured."""

    text: str
    held: bool | None
    measured: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the rows of a run say.

    Parameters
    ----------
    tables : tuple of Table
    claims : tuple of Claim
    blocks : tuple of blocks of a page
        Pictures and words around them.
    notes : tuple of str
        How it was done, and where that departs from the paper.
    answer : str
        The question's answer in a sentence or two.
    """

    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...]
    answer: str


class Experiment(Protocol):
    """An experiment with its settings; small, so that it travels to worker processes."""

    name: str
    title: str
    question: str
    repeats: int
    """How many repetitions when the user does not say."""

    def settings(self) -> Mapping[str, Any]:
        """Everything besides the key that rows depend on; a run is continued only under equal settings."""
        ...

    def keys(self, repeats: int) -> list[Key]:
        """The repetitions, in the order of their rows; more repeats only add rows at the end."""
        ...

    def run(self, key: Key) -> Row:
        """One repetition, from its key and the seed alone."""
        ...

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Tables, claims and pictures of the rows there are."""
        ...


def true_calibration_error(prediction: Floats, residual: Floats, bins: int) -> float:
    r"""Return :math:`\sqrt{E[E[r \mid \theta]^2]}` over bins of the prediction, with the bins' sampling noise taken off.

    `residual` is the row's own expected residual, known without noise: :math:`\tau(x) - \theta(x)` for an average effect,
    :math:`Q - F(\theta(x) \mid x)` for a quantile.
    """
    loss = QuadraticLoss(prediction + residual, np.ones(len(prediction)))
    return float(np.sqrt(max(squared_error(binned(prediction, loss, bins))[0], 0.0)))


SIZES: dict[str, dict[str, Any]] = {
    "large": {"early_stopping": False},
    "shallow": {"early_stopping": False, "max_depth": 3},
    "default": SETTINGS,
}
WORDS = {
    "large": "100 trees of 31 leaves, as libraries have by default",
    "shallow": "100 trees of depth 3",
    "default": "trees of depth 3 that stop early, orthocal's default",
}


def regressor(size: str, **settings: Any) -> Any:
    """Return boosted regression trees of a size."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(**{**SIZES[size], **settings})


def classifier(size: str, **settings: Any) -> Any:
    """Return boosted classification trees of a size."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(**{**SIZES[size], **settings})


def chosen_sizes(text: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sizes named in a comma-separated text."""
    sizes = tuple(dict.fromkeys(name.strip() for name in text.split(","))) if text else default
    for size in sizes:
        require_one_of(size, SIZES, "learners")
    return sizes


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
