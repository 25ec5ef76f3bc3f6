"""Candidates judged on rows they were not fitted on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from orthocal.arrays import MANY, Floats, Integers, packed_argsort
from orthocal.calibrators.evidence import bend_evidence, by_unit, score_noise
from orthocal.errors import OrthocalError
from orthocal.folds import assign_folds
from orthocal.losses import Loss, columns_of, without_overlap
from orthocal.losses.units import Units, restated, units_of


def validation_folds(loss: Loss, folds: int, random_state: Any) -> Integers:
    """Return the fold of each of the rows, which are in the order of their values; clusters are kept whole.

    Of neighbours one goes to each fold, by chance: all folds have the same predictions, whatever the outcomes.
    """
    neighbours = np.minimum(np.arange(len(loss)) // folds, max(len(loss) // folds - 1, 0))
    strata = neighbours if loss.groups is None else np.zeros(len(loss), dtype=np.int64)
    return assign_folds(folds, strata, loss.groups, random_state)


def by_value(prediction: Floats, loss: Loss) -> tuple[Floats, Loss]:
    """Return the rows in the order of their values, so that which are left out does not depend on where they stood."""
    order = value_order(prediction, loss)
    return prediction[order], without_overlap(loss)[order]


def value_order(prediction: Floats, loss: Loss) -> Integers:
    """Return the rows by prediction, those of one prediction by what their losses are made of."""
    order = packed_argsort(prediction) if len(prediction) > MANY else np.argsort(prediction, kind="stable")
    level = prediction[order]
    alike = level[1:] == level[:-1]
    if alike.any():
        tied = np.flatnonzero(np.append(alike, False) | np.concatenate([[False], alike]))
        own = order[tied]
        columns = [column[own] for column in value_columns(prediction, loss)]
        order[tied] = own[np.lexsort((*reversed(columns), level[tied]))]
    return order


def value_columns(prediction: Floats, loss: Loss) -> list[Floats]:
    """Return what a row's loss is made of: numerator, denominator, ...; of a custom loss, what it says at the prediction."""
    columns: list[Floats] = list(columns_of(loss).values()) if is_dataclass(loss) else []
    return columns or [loss.derivative(prediction), loss.value(prediction), loss.weight]


WELL_BEHAVED = 5.0
"""Squared paired statistics that are believed, at most: 2 where noise is normal, and some more for chance."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """What candidates predict, in the loss's own centre.

    Parameters
    ----------
    prediction : array
        Of the rows used.
    loss : Loss
        Of the rows used, centred: far from 0 the loss is large, and differences of it are lost in rounding.
    losses : dict of str to array
        Mean over the draws of each row's (cluster's) loss, under maps fitted without it.
    draws : list of dict of str to array
        Each row's prediction by such a map.
    fitted : dict of str to array
        Each row's prediction by the map of all rows.
    notes : dict of str to str
        Why a candidate could not be fitted.
    """

    prediction: Floats
    loss: Loss
    losses: dict[str, Floats]
    draws: list[dict[str, Floats]]
    fitted: dict[str, Floats]
    notes: dict[str, str]

    @property
    def rows(self) -> int:
        """How many rows were used."""
        return len(self.loss)

    def rises(self, name: str) -> bool:
        """Whether the map of all rows nowhere falls."""
        values = self.fitted[name]
        return bool((np.diff(values) >= -1e-9 * np.ptp(values)).all())

    def behind(self, name: str, base: str) -> float:
        """Return how much more a candidate loses than another, in units of what one number fitted to noise loses.

        A candidate that is better by t standard errors of its shape loses t^2 / 2 less in these units, with a paired error of t;
        so no more than a few times the squared paired statistic is believed, and a few wild rows make no case.
        """
        rows = self.losses[name] - self.losses[base]
        gap, error = float(rows.sum()), float(np.sqrt(len(rows) * rows.var()))
        squares, slope = score_noise(self.loss, self.fitted[base])
        noise = squares / slope if slope > 0 else 0.0
        if not (noise > 0 and error > 0):
            return 0.0 if gap == 0 else np.inf
        return gap / noise if gap > 0 else -min(-gap / noise, WELL_BEHAVED * (gap / error) ** 2)

    def bends(self, base: str, most: int) -> Floats:
        """Return the evidence that the truth bends away from a line, in the 0, 1, ... smoothest ways."""
        return bend_evidence(self.prediction, self.loss, self.fitted[base], most)

    def excess(self, name: str, weights: Mapping[str, float]) -> tuple[float, float]:
        """Return (mean loss above that of the weighted mean of candidates, its standard error)."""
        if name not in self.losses:
            return np.nan, np.nan
        mixture = np.mean(
            [by_unit(self.loss, self.loss.value(_weighted(draw, weights))) for draw in self.draws], axis=0
        )
        gap, total = self.losses[name] - mixture, float(self.loss.weight.sum())
        return float(gap.sum()) / total, float(np.sqrt(len(gap) * gap.var())) / total


def left_out(
    candidates: Mapping[str, Any], prediction: Floats, loss: Loss, *, folds: int, repeats: int, sample: int
) -> LeftOut:
    """Fit every candidate with and without each fold of rows that are in the order of their values."""
    some = _some(loss, sample)
    prediction, loss = prediction[some], loss[some]
    folds = min(folds, len(loss) if loss.groups is None else len(np.unique(loss.groups)))
    units = Units(units_of(loss).centre, 1.0)
    centred = restated(loss, units)
    units = units if centred is not loss else Units(0.0, 1.0)  # a user's kind of loss stays as it is
    notes: dict[str, str] = {}
    everything = np.arange(len(loss))
    fitted = _predicted(candidates, prediction, loss, [(everything, everything)], notes)
    draws = []
    for draw in range(repeats):
        fold = validation_folds(loss, folds, draw)
        parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds)]
        draws.append(_predicted(candidates, prediction, loss, parts, notes))
    able = [name for name in candidates if name not in notes]
    if not able or "constant" in notes:  # where no constant can be fitted, nothing can be trusted
        raise OrthocalError(f"No candidate could be fitted; the first said: {next(iter(notes.values()))}")
    draws = [{name: units.standard(draw[name]) for name in able} for draw in draws]
    losses = {name: np.mean([by_unit(centred, centred.value(draw[name])) for draw in draws], axis=0) for name in able}
    return LeftOut(
        prediction=prediction,
        loss=centred,
        losses=losses,
        draws=draws,
        fitted={name: units.standard(fitted[name]) for name in able},
        notes=notes,
    )


def _predicted(
    candidates: Mapping[str, Any],
    prediction: Floats,
    loss: Loss,
    parts: Iterable[tuple[Any, Any]],
    notes: dict[str, str],
) -> dict[str, Floats]:
    """Return each row's prediction by maps fitted on the first rows of its part and used on the second."""
    value = {name: np.empty(len(loss)) for name in candidates}
    for fit_rows, held_out in parts:
        fit_prediction, fit_loss, new_prediction = prediction[fit_rows], loss[fit_rows], prediction[held_out]
        for name, candidate in candidates.items():
            if name in notes:
                continue
            try:
                value[name][held_out] = clone(candidate).fit(fit_prediction, fit_loss).predict(new_prediction)
            except OrthocalError as reason:
                notes[name] = str(reason)
    return value


def _some(loss: Loss, sample: int) -> Any:
    """Return all rows, or as many as asked for, drawn by chance; clusters whole."""
    if len(loss) <= sample:
        return np.arange(len(loss))
    rng = np.random.default_rng(0)
    if loss.groups is None:
        return np.sort(rng.choice(len(loss), sample, replace=False))
    codes, index = np.unique(loss.groups, return_inverse=True)
    return np.flatnonzero((rng.random(len(codes)) < sample / len(loss))[index])


def _weighted(draw: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    return np.asarray(sum(weight * draw[name] for name, weight in weights.items()))
