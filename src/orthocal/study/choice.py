"""A choice among models: a leaderboard on rows that no map saw, with the average effect and no effect among the rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment.confidence_set import DRAWS
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.assessment.rivals import BlanketRule, Entry, PairedDifference, Rival, board_of
from orthocal.calibrators import Calibrator
from orthocal.engines.protocol import Engine, JudgedMap
from orthocal.errors import OrthocalError, require_one_of
from orthocal.formats import shown
from orthocal.maps import AffineMap, IdentityMap
from orthocal.study.choice_words import AVERAGE, NO_EFFECT, calibrated_name, verdict_on

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

WITHOUT_EFFECT = {"effect": 0.0, "ratio": 1.0}
"""What no effect is, by the unit of the effect; quantiles and expectiles are no differences, and have none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """A leaderboard of predictions, as they are and calibrated, beside the average effect and no effect.

    The order is by mean loss, never by calibration error: a calibrated prediction may be useless. All rivals are judged on the
    same held-out rows, which no map has seen, by losses from the same nuisances. The interval of the best is not widened for its
    having been picked; the confidence set holds whichever is picked.

    Parameters
    ----------
    rivals : tuple of Rival
        The lowest mean loss first.
    comparisons : tuple of PairedDifference
        Of every two models, both as they are or both calibrated.
    rules : tuple of BlanketRule
        Where a cost was given: what treating no one and everyone is worth.
    average : float, or dict of str to float
        The average effect of the rows the maps were fitted on; of several arms, that of each.
    cost : float or None
    level : float
        Confidence level of the set and of intervals.
    draws : int
        Draws that p-values of the confidence set rest on.
    unit : str
        Of the effect: losses are in half its square where it is "effect" or "ratio".
    rows, fitted_rows : int
        Judged, and those that the maps were fitted on.
    reasons : mapping of str to str
        By model: why its method was chosen, where it was chosen from the data.
    checks : tuple of Check
        Of the data and the predictions.

    Examples
    --------
    >>> import pandas as pd
    >>> from orthocal import Study
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, confounding=0, random_state=0)
    >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "good": data.effect, "poor": -data.X[:, 4]})
    >>> study = Study(trial, outcome="y", treatment="a", covariates=[], propensity=0.5)
    >>> choice = study.choose(["good", "poor"], method="linear")
    >>> choice.better_than("good", "poor"), choice.better_than("good", "average effect")
    (True, True)
    """

    rivals: tuple[Rival, ...]
    comparisons: tuple[PairedDifference, ...]
    rules: tuple[BlanketRule, ...] = ()
    average: float | dict[str, float]
    cost: float | None
    level: float
    draws: int
    unit: str
    rows: int
    fitted_rows: int
    reasons: Mapping[str, str]
    checks: tuple[Check, ...] = ()

    def __str__(self) -> str:
        return self.summary()

    @property
    def best(self) -> str:
        """The name of the rival with the lowest mean loss."""
        return self.rivals[0].name

    @property
    def confidence_set(self) -> tuple[str, ...]:
        """Names of the rivals that cannot be distinguished from the best."""
        return tuple(rival.name for rival in self.rivals if rival.is_in_set)

    @property
    def verdict(self) -> str:
        """Which is best, which cannot be distinguished from it, and whether any model is better than the average effect."""
        return " ".join(verdict_on(self))

    def better_than(self, one: str, other: str) -> bool:
        """Return whether one model is shown to be better than another.

        It is where the confidence set contains the one, as it is or calibrated, and the other in neither form. Names are those of
        models, of rivals, or "average effect" and "no effect".
        """
        return self._is_in_set(one) and not self._is_in_set(other)

    def _is_in_set(self, name: str) -> bool:
        names = {known: None for rival in self.rivals for known in (rival.model, rival.name) if known is not None}
        require_one_of(name, list(names), "model")
        return any(rival.is_in_set for rival in self.rivals if name in {rival.model, rival.name})

    def table(self) -> dict[str, list[Any]]:
        """Return the leaderboard as columns, ready for any data frame."""
        from orthocal.reporting.choices import choice_columns

        return choice_columns(self)

    def summary(self) -> str:
        """Return the verdict and the leaderboard as text."""
        from orthocal.reporting.choices import choice_summary

        return choice_summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts, ready for JSON."""
        from orthocal.reporting.choices import choice_record

        return choice_record(self)

    def report(self, path: str | Path, *, title: str | None = None, how: Mapping[str, str] | None = None) -> None:
        """Write one self-contained HTML page: the verdict, the leaderboard, and paired differences of models.

        `how` is what else another person needs in order to repeat it, such as the file the data came from.
        """
        from orthocal.reporting.page.choices import choice_report

        choice_report(self, path, title, how)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw mean losses relative to that of the average effect, with intervals; filled marks are in the confidence set."""
        from orthocal.plots import leaderboard

        return leaderboard(self.rivals, ax=ax, level=self.level)

    def _repr_html_(self) -> str:
        from orthocal.reporting.notebook import choice_html

        return choice_html(self)


def choice_among(
    engine: Engine,
    predictions: Mapping[str, Any],
    method: str | Calibrator,
    holdout: Any,
    settings: Settings,
) -> Choice:
    """Calibrate each prediction on the rows that are not held out, and judge all rivals on those that are."""
    require_names(predictions)
    require_held_out(np.ndim(holdout) > 0 or holdout != 0)
    trials = {name: engine.trial(one, method, holdout, settings.by) for name, one in predictions.items()}
    first = next(iter(trials.values()))
    average = float(first.constant.predict([0.0])[0])
    entries = [*_constants(first, average, settings)]
    entries += [entry for name, trial in trials.items() for entry in _as_is_and_calibrated(name, trial, settings)]
    judged = len(first.judged)
    sums = first.rival_sums([one.prediction for one in entries], settings.cost)
    board = board_of(entries, sums, settings, judged / (judged + first.fitted))
    return Choice(
        rivals=board.rivals,
        comparisons=board.comparisons,
        rules=board.rules,
        average=average,
        cost=settings.cost,
        level=settings.level,
        draws=DRAWS,
        unit=first.unit,
        rows=judged,
        fitted_rows=first.fitted,
        reasons={name: trial.reason for name, trial in trials.items() if trial.reason},
    )


def require_held_out(is_held_out: bool) -> None:
    """A choice rests on rows that no map saw."""
    if not is_held_out:
        raise OrthocalError(
            "`holdout` must be above 0: a choice must rest on rows that no map saw; it is 0. Hold out 0.3, for instance."
        )


def require_names(predictions: Mapping[str, Any]) -> None:
    """There is something to choose from, and no two rivals have one name."""
    if not predictions:
        raise OrthocalError("A choice must have at least one prediction; there is none. Name a column.")
    taken = {AVERAGE, NO_EFFECT, *(calibrated_name(name) for name in predictions)}
    for name in predictions:
        if name in taken:
            raise OrthocalError(
                f"A prediction must not be called {shown(name)}, as another rival is. Give it another name."
            )


def _constants(trial: JudgedMap, average: float, settings: Settings) -> Iterator[Entry]:
    """Yield the average effect of the rows the maps were fitted on, and no effect."""
    values = {AVERAGE: average, NO_EFFECT: WITHOUT_EFFECT.get(trial.unit)}
    for name, value in values.items():
        if value is not None:
            same = AffineMap(value, 0.0)
            yield Entry(name, trial.rival(same), verdict=trial.assess(settings, same))


def _as_is_and_calibrated(name: str, trial: JudgedMap, settings: Settings) -> Iterator[Entry]:
    """Yield a prediction before and after its map, judged by the same tolerance."""
    before = trial.assess(settings, IdentityMap())
    yield Entry(name, trial.rival(IdentityMap()), name, False, before)
    after = trial.assess(replace(settings, tolerance=before.tolerance), trial.map)
    after = replace(after, tolerance_note=before.tolerance_note)
    yield Entry(calibrated_name(name), trial.rival(trial.map), name, True, after)
