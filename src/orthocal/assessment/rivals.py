"""Rivals on a leaderboard: mean losses with paired differences, which may be the best, and what deciding by them is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from orthocal.assessment.compare import WEIGHT, Clusters, Moments
from orthocal.assessment.confidence_set import ConfidenceSet, PairedLosses, confidence_set, paired, rows_to_separate
from orthocal.assessment.parts import Coefficient
from orthocal.assessment.records import Assessment, Settings
from orthocal.assessment.rivals_side_by_side import RivalSums, rival_sums, that_count
from orthocal.assessment.subgroups import holm


class Entry(NamedTuple):
    """A rival before it is judged.

    `prediction` is of the rows judged: a number for each, or a column for each contrast of several arms; in partitions, a column
    and a map. `model` is the name of the prediction it comes from; constants have none. `verdict` is that on it alone, where
    there is one.
    """

    name: str
    prediction: Any
    model: str | None = None
    is_calibrated: bool = False
    verdict: Assessment | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Rival:
    """One line of a leaderboard.

    Parameters
    ----------
    name : str
    model : str or None
        The prediction it comes from; None for the average effect and for no effect.
    is_calibrated : bool
        Whether it is a calibrated prediction, or the prediction as it is.
    relative_loss : Coefficient
        Mean loss minus that of the average effect, row by row: negative is better. For a squared loss this is half a difference
        of mean squared errors, in squared units of the effect.
    is_in_set : bool
        Whether it is in the confidence set: it cannot be distinguished from the best.
    p_value : float
        Of the model confidence set; 1 for the lowest mean loss.
    rows_needed : int or None
        About how many rows in all would distinguish it from the rival of the lowest mean loss with probability 0.8; None
        for that one, for a rival with the same losses, and outside the set.
    value : Coefficient or None
        Where a cost was given: net gain per row of treating those predicted to gain more than the cost.
    gain : Coefficient or None
        That value minus the value of the best rule that is the same for everyone, row by row.
    assessment : Assessment or None
        The verdict on it alone.
    """

    name: str
    model: str | None
    is_calibrated: bool
    relative_loss: Coefficient
    is_in_set: bool
    p_value: float
    rows_needed: int | None = None
    value: Coefficient | None = None
    gain: Coefficient | None = None
    assessment: Assessment | None = field(default=None, repr=False)

    @property
    def status(self) -> str | None:
        """Calibrated, miscalibrated or inconclusive."""
        return None if self.assessment is None else self.assessment.status

    @property
    def error(self) -> float | None:
        """The calibration error."""
        return None if self.assessment is None else self.assessment.error

    @property
    def error_interval(self) -> tuple[float, float] | None:
        """The interval of the calibration error."""
        return None if self.assessment is None else self.assessment.interval

    @property
    def autoc(self) -> Coefficient | None:
        """How well it ranks: 0 for a random order; None for a constant."""
        rate = None if self.assessment is None else self.assessment.rate
        return None if rate is None else rate.autoc

    @property
    def ranking(self) -> str | None:
        """The ranking in words."""
        return None if self.assessment is None else self.assessment.ranking


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """Mean loss of one rival minus that of another, row by row: negative is better for the first.

    Parameters
    ----------
    first, second : str
    difference : Coefficient
    p_value, p_value_adjusted : float
        Two-sided, alone and by Holm over all pairs compared.
    """

    first: str
    second: str
    difference: Coefficient
    p_value: float
    p_value_adjusted: float


@dataclass(frozen=True)
class BlanketRule:
    """A rule of treatment that is the same for everyone, and its net gain per row."""

    name: str
    value: Coefficient


class Board(NamedTuple):
    """A leaderboard: rivals by mean loss, paired differences of models, rules for everyone, and the confidence set."""

    rivals: tuple[Rival, ...]
    comparisons: tuple[PairedDifference, ...]
    rules: tuple[BlanketRule, ...]
    found: ConfidenceSet


def leaderboard_of(entries: Sequence[Entry], loss: Any, settings: Settings, share: float = 1.0) -> Board:
    """Return the rivals in the order of their mean losses.

    Parameters
    ----------
    entries : sequence of Entry
        The first is the average effect, to whose loss all others are relative.
    loss : Loss or ArmScores
        Of the rows judged; anything that `loss_change` and, with a cost, `decided_gain` and `blanket_gains` are registered for.
    settings : Settings
        Of which level, cost and random_state are used.
    share : float, default 1
        Of all rows, that are judged.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import QuadraticLoss
    >>> rng = np.random.default_rng(0)
    >>> effect = rng.standard_normal(500)
    >>> loss = QuadraticLoss(effect + rng.standard_normal(500), np.ones(500))
    >>> entries = [Entry("average effect", np.zeros(500)), Entry("forest", effect, "forest"), Entry("lasso", -effect, "lasso")]
    >>> [(rival.name, rival.is_in_set) for rival in leaderboard_of(entries, loss, Settings()).rivals]
    [('forest', True), ('average effect', False), ('lasso', False)]
    """
    rows = that_count(loss)
    found = rival_sums([one.prediction[rows] for one in entries], loss[rows], settings.cost)
    return board_of(entries, found, settings, share)


def board_of(entries: Sequence[Entry], found: RivalSums, settings: Settings, share: float) -> Board:
    """Return the leaderboard from what is known of the rows, wherever they are."""
    judged = _Judged(found.paired, PairedLosses.of(found.paired, len(entries)), found.rules, settings.level)
    chosen = confidence_set(judged.pairs, settings.level, random_state=settings.random_state)
    rivals = [_rival(judged, place, one, chosen, found.rows / share) for place, one in enumerate(entries)]
    return Board(
        tuple(sorted(rivals, key=lambda one: one.relative_loss.value)),
        _compared(entries, judged),
        judged.blanket,
        chosen,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """Sums of columns of the rows: weights, relative losses of the rivals, values of the rivals, values of the rules by name."""

    sums: Moments | Clusters
    pairs: PairedLosses
    rules: tuple[str, ...]
    level: float

    def mean(self, one: int, other: int | None = None) -> Coefficient:
        """Return the mean of a column, or of one minus another."""
        return paired(self.sums, WEIGHT + 1 + one, None if other is None else WEIGHT + 1 + other, self.level).difference

    @property
    def count(self) -> int:
        """How many rivals there are."""
        return len(self.pairs.difference)

    @cached_property
    def best(self) -> int:
        """The rival of the lowest mean loss."""
        return int(np.argmin(self.pairs.difference[:, 0]))

    @cached_property
    def blanket(self) -> tuple[BlanketRule, ...]:
        """The rules that are the same for everyone."""
        return tuple(BlanketRule(name, self.mean(2 * self.count + k)) for k, name in enumerate(self.rules))

    def values(self, place: int) -> dict[str, Coefficient]:
        """Return what deciding by a rival is worth, and what it gains over the best of the rules for everyone."""
        if not self.rules:
            return {}
        top = 2 * self.count + int(np.argmax([rule.value.value for rule in self.blanket]))
        return {"value": self.mean(self.count + place), "gain": self.mean(self.count + place, top)}


def _rival(judged: _Judged, place: int, entry: Entry, found: ConfidenceSet, rows: float) -> Rival:
    is_in_set, best = bool(found.members[place]), judged.best
    apart = float(judged.pairs.normal[place, best])
    return Rival(
        name=entry.name,
        model=entry.model,
        is_calibrated=entry.is_calibrated,
        relative_loss=judged.mean(place),
        is_in_set=is_in_set,
        p_value=float(found.p_values[place]),
        rows_needed=rows_to_separate(apart, rows, found.critical) if is_in_set else None,
        assessment=entry.verdict,
        **judged.values(place),
    )


def _compared(entries: Sequence[Entry], judged: _Judged) -> tuple[PairedDifference, ...]:
    """Compare every two models, both as they are or both calibrated."""
    pairs = [
        (i, j)
        for (i, one), (j, other) in combinations(enumerate(entries), 2)
        if one.model is not None and other.model is not None and one.is_calibrated == other.is_calibrated
    ]
    p_values = np.array([judged.pairs.p_value(i, j) for i, j in pairs], dtype=np.float64)
    return tuple(
        PairedDifference(
            first=entries[i].name,
            second=entries[j].name,
            difference=judged.mean(i, j),
            p_value=float(p_value),
            p_value_adjusted=float(adjusted),
        )
        for (i, j), p_value, adjusted in zip(pairs, p_values, holm(p_values), strict=True)
    )
