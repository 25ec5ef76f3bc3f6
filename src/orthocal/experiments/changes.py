"""What calibration by the default method changes in draws whose effects are known: how far errors fall, and where they rise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.experiments.protocol import Claim, Row
from orthocal.reporting.page.document import Table

HARMED, HARM = 0.1, 0.03
"""Share of the draws in which the default method may do harm, and how much of the base model's error it may add in any."""


def in_deviations(rows: Sequence[Row], model: str, method: str, figure: str) -> Floats:
    """A figure in deviations of the outcome: draws differ in scale, and in one the effect is the same for all."""
    power = {"error": 1, "mse": 2}[figure]
    return np.array([row[f"{model}_{method}_{figure}"] / row["outcome_deviation"] ** power for row in rows])


class Change(NamedTuple):
    """True mean squared error of a draw after the default method divided by that before, both means over repetitions.

    One repetition has no standard error (NaN).
    """

    draw: int
    ratio: float
    standard_error: float

    def in_words(self) -> str:
        """The ratio, with its standard error where there is one."""
        return f"{self.ratio:.3f}" + ("" if np.isnan(self.standard_error) else f" ({self.standard_error:.3f})")


def changes_by_draw(rows: Sequence[Row], model: str) -> list[Change]:
    """Return the change of each draw, by one base model."""
    found = []
    for draw in sorted({row["draw"] for row in rows}):
        own = [row for row in rows if row["draw"] == draw]
        before, after = (in_deviations(own, model, method, "mse") for method in ("base", "auto"))
        ratio = float(after.mean() / before.mean())
        spread = np.std(after - ratio * before, ddof=1) / before.mean() if len(own) > 1 else np.nan
        found.append(Change(draw, ratio, float(spread) / np.sqrt(len(own))))
    return found


def change_table(size: str, rows: Sequence[Row], models: Iterable[str]) -> Table:
    """Return the changes of every draw and base model."""
    changes = {f"{model}-learner": changes_by_draw(rows, model) for model in models}
    draws = [f"draw {one.draw}" for one in next(iter(changes.values()))]
    return Table(
        f"{size.capitalize()} trees: true mean squared error after auto divided by that before, both means over repetitions "
        "(standard error)",
        ("", *draws),
        tuple((model, *(one.in_words() for one in own)) for model, own in changes.items()),
    )


def harm_claims(size: str, rows: Sequence[Row], models: Iterable[str]) -> list[Claim]:
    """Whether the default method does harm in few draws only, and little."""
    changes = {model: changes_by_draw(rows, model) for model in models}
    rises = {model: sum(one.ratio > 1 for one in own) for model, own in changes.items()}
    worst = {model: max(own, key=lambda one: one.ratio) for model, own in changes.items()}
    draws = len(next(iter(changes.values())))
    return [
        Claim(
            f"Auto calibration raises the true mean squared error in at most {HARMED:.0%} of the draws of every base model "
            f"({size} trees).",
            max(rises.values()) <= HARMED * draws,
            ", ".join(f"{model} {count} of {draws}" for model, count in rises.items()),
        ),
        Claim(
            f"Auto calibration raises the true mean squared error by more than {HARM:.0%} in no draw ({size} trees).",
            max(one.ratio for one in worst.values()) <= 1 + HARM,
            "; ".join(f"{model} at most {one.in_words()}, in draw {one.draw}" for model, one in worst.items()),
        ),
    ]
