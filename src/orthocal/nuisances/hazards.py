"""Hazards of an event and of censoring, learnt by classification of person-periods or by any survival learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.folds import generator
from orthocal.nuisances.time_grid import TimeGrid
from orthocal.nuisances.wrapped import fit_weighted

FEWEST_EVENTS = 2
"""With fewer events than this there is nothing to learn: every row has the share of person-periods that end in one."""

FEWEST_WITHOUT = 10
"""Periods without an event that are shown for each with one, where there are so many that not all are."""


class Process(Protocol):
    """What happens in time: the event, or censoring."""

    @property
    def grid(self) -> TimeGrid:
        """The cells of time."""
        ...

    @property
    def asked(self) -> Floats:
        """The times at which the chance that it has not happened is needed."""
        ...

    def happened(self, event: Booleans) -> Booleans:
        """For which rows the time observed is its time."""
        ...

    def periods(self, time: Floats, event: Booleans) -> tuple[Integers, Booleans]:
        """Of each row: in how many periods, the first ones, it could happen; whether it did, in the last of them."""
        ...


@dataclass(frozen=True, eq=False)
class EventProcess:
    """The event, in the cells of a grid; the chance of none is needed at the end of each."""

    grid: TimeGrid

    @property
    def asked(self) -> Floats:
        """The ends of the cells."""
        return self.grid.times

    def happened(self, event: Booleans) -> Booleans:
        """The event was seen."""
        return event

    def periods(self, time: Floats, event: Booleans) -> tuple[Integers, Booleans]:
        """The cells that a row entered."""
        entered, died = self.grid.histories(time, event)
        return entered, died


@dataclass(frozen=True, eq=False)
class CensoringProcess:
    """Censoring, at the ends of the cells of a grid: period k is that between being alive at the end of cell k - 1 and cell k.

    Events come first, so those at risk in period k are the rows without an event up to cell k - 1. The chance of none is needed
    on the way into each cell, which is the middle of the cell where censoring can happen at any time.
    """

    grid: TimeGrid

    @property
    def asked(self) -> Floats:
        """The middles of the cells."""
        return self.grid.middles

    def happened(self, event: Booleans) -> Booleans:
        """No event was seen."""
        return ~event

    def periods(self, time: Floats, event: Booleans) -> tuple[Integers, Booleans]:
        """The cells that a row entered, and one more where censoring kept it from entering."""
        entered, died = self.grid.histories(time, event)
        censored = ~died & (entered < len(self.grid))
        return entered + censored, censored


def signed_times(time: Floats, event: Booleans) -> Floats:
    """Return times as one column: negative where they are censored, as XGBoost's survival objectives have them."""
    return np.where(event, time, -time)


def curve_estimator(learner: Any, process: Process) -> DiscreteHazard | SurvivalLearner:
    """Return the estimator of a curve: a survival learner is asked for it, any other learns the hazards of its periods."""
    if hasattr(learner, "predict_survival_function"):
        return SurvivalLearner(learner, process)
    return DiscreteHazard(learner, process)


class DiscreteHazard(BaseEstimator):  # type: ignore[misc]
    r"""Learn the chance :math:`P(\text{no event by } t_k \mid x)` at every time of a grid by one classifier of person-periods.

    Every row is shown once for each period in which it was at risk, with the number of the period as a last feature and the
    answer to "did it happen now?". The chance is the product of one minus these hazards.

    Periods in which it did not happen are many and much alike. Beyond `most` of them, and ten for each in which it did, only a
    share q drawn by chance is shown; this multiplies all odds by 1/q, which is taken back.

    Parameters
    ----------
    learner : scikit-learn classifier
        Or a regressor of 0 and 1.
    process : Process
    most : int, default 50,000
    random_state : int, optional
    """

    def __init__(self, learner: Any, process: Process, most: int = 50_000, random_state: Any = None) -> None:
        self.learner = learner
        self.process = process
        self.most = most
        self.random_state = random_state

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Show the rows in their periods; `y` holds times, negative where censored."""
        count, happened = self.process.periods(np.abs(y), y > 0)
        answer = np.zeros(int(count.sum()), dtype=bool)
        answer[(np.cumsum(count) - 1)[happened]] = True
        weight = None if sample_weight is None else np.repeat(sample_weight, count)
        self.share_, events = 1.0, int(answer.sum())
        if min(events, len(answer) - events) < FEWEST_EVENTS:
            self.model_: Any = float(np.average(answer, weights=weight)) if len(answer) else 0.0
            return self
        self.share_ = min(1.0, max(self.most, FEWEST_WITHOUT * events) / (len(answer) - events))
        shown = answer | (generator(self.random_state).random(len(answer)) < self.share_)
        weight = None if weight is None else weight[shown]
        self.model_ = fit_weighted(self.learner, in_periods(X, count, shown), answer[shown].astype(np.int64), weight)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the chance of each row at every time of the grid."""
        table = np.empty((len(X), len(self.process.grid)))
        features = np.column_stack([X, np.zeros(len(X))])
        for k in range(table.shape[1]):
            features[:, -1] = k
            hazard = np.clip(self._hazard(features), 0, 1)
            table[:, k] = (1 - hazard) / (1 - hazard + self.share_ * hazard)
        return np.asarray(np.cumprod(table, axis=1))

    def _hazard(self, features: Floats) -> Any:
        if isinstance(self.model_, float):
            return np.full(len(features), self.model_)
        is_chance = is_classifier(self.model_)
        return self.model_.predict_proba(features)[:, 1] if is_chance else self.model_.predict(features)


def in_periods(X: Floats, count: Integers, shown: Booleans) -> Floats:
    """Repeat every row for each of its periods that is shown and add the number of the period."""
    row = np.repeat(np.arange(len(count)), count)[shown]
    stacked = np.empty((len(row), X.shape[1] + 1))
    for column, values in enumerate(X.T):
        stacked[:, column] = values[row]
    stacked[:, -1] = np.flatnonzero(shown) - (np.cumsum(count) - count)[row]
    return stacked


class SurvivalLearner(BaseEstimator):  # type: ignore[misc]
    """Ask a learner with `predict_survival_function`, as scikit-survival has them, for the curve.

    Parameters
    ----------
    learner : estimator
        Fitted on a structured array of (event, time); of each row it gives a step function of time, or its values at the times
        ``unique_times_``.
    process : Process
    """

    def __init__(self, learner: Any, process: Process) -> None:
        self.learner = learner
        self.process = process

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit on times and whether it happened then; `y` holds times, negative where censored."""
        target = np.empty(len(y), dtype=[("event", np.bool_), ("time", np.float64)])
        target["event"], target["time"] = self.process.happened(y > 0), np.abs(y)
        self.model_ = fit_weighted(self.learner, X, target, sample_weight)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the chance of each row at every time that is needed."""
        answer, asked = np.asarray(self.model_.predict_survival_function(X)), self.process.asked
        if answer.ndim == 2:
            table = _at(np.asarray(self.model_.unique_times_), answer, asked)
        else:
            table = np.array([_at(step.x, np.asarray(step.y)[None, :], asked)[0] for step in answer])
        return np.asarray(np.minimum.accumulate(np.clip(table, 0, 1), axis=1))


def _at(times: Floats, values: Floats, asked: Floats) -> Floats:
    """Return step functions at other times: 1 before their first time, constant after their last."""
    place = np.searchsorted(times, asked, side="right")
    return np.column_stack([np.ones(len(values)), values])[:, place]
