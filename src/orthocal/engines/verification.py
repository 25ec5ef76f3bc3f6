"""What an engine offers, rows held out, and the whole job on any engine: calibrate on some rows, judge on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from orthocal.arrays import Integers
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.records import Settings
from orthocal.assessment.status import Mark, mark_of_change
from orthocal.calibrators import Calibrator
from orthocal.effects import Effect
from orthocal.errors import OrthocalError
from orthocal.folds import HOLDOUT, split_rows
from orthocal.maps import Map
from orthocal.observations import Observations


def hold_out(holdout: float, effect: Effect, observations: Observations, seed: int) -> tuple[Integers, Integers]:
    """Return the rows the map is fitted on and the rows it is judged on: all for both where nothing is held out."""
    require_share(holdout)
    fitted = judged = np.arange(len(observations))
    if holdout > 0:
        part = split_rows(1 - holdout, effect.strata(observations), observations, seed, HOLDOUT)
        fitted, judged = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    require_both_sides(holdout, len(observations), len(fitted), len(judged))
    return fitted, judged


def require_both_sides(holdout: float, rows: int, fitted: int, judged: int) -> None:
    """There are rows to fit a map on, and rows to judge it on."""
    if judged < 2 or fitted < 2:
        raise OrthocalError(f"`holdout`={holdout} leaves too few of the {rows} rows on one side. Use more data.")


def require_share(holdout: float) -> None:
    """A share of the rows is held out, or none."""
    if not 0 <= holdout < 1:
        raise OrthocalError(
            f"`holdout` must lie in [0, 1); it is {holdout}. 0.3 keeps three rows of ten for the verdict."
        )


class JudgedMap(Protocol):
    """A map fitted on some rows, and the verdicts on rows it is judged on.

    `reason` says why the method was chosen, where it was chosen from the data; `judged` are the rows, a range only counts them;
    `bound` says how near an isotonic map on a grid is to that of all rows, 0 for the latter.
    """

    @property
    def map(self) -> Map:
        """The map."""
        ...

    @property
    def reason(self) -> str:
        """Why the method was chosen."""
        ...

    @property
    def bound(self) -> float:
        """How near a map on a grid is."""
        ...

    @property
    def judged(self) -> Integers | range:
        """The rows judged."""
        ...

    def assess(self, settings: Settings, *, calibrated: bool) -> Assessment:
        """Judge the prediction after the map, or as it was."""
        ...

    def compare(self, settings: Settings) -> Comparison:
        """Say whether the map did good or harm."""
        ...


class Engine(Protocol):
    """Rows that can be calibrated and judged; a share `holdout` of them never sees a map."""

    @property
    def holdout(self) -> float:
        """The share."""
        ...

    def trial(self, method: str | Calibrator) -> JudgedMap:
        """Fit a map on the rows that are not held out."""
        ...

    def errors_again(self, method: str | Calibrator, times: int) -> list[tuple[float, float]]:
        """Return the error before and after of the whole job done again with other draws; none where nothing is learnt."""
        ...

    def judge(self, names: Sequence[str], settings: Settings) -> dict[str, Assessment]:
        """Judge columns of predictions on all rows."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Verified:
    """A map with the verdict before and after it.

    Parameters
    ----------
    map : Map
        Fitted on the rows that were not held out.
    before : Assessment
        On the held-out rows; on all rows when nothing was held out.
    after : Assessment or None
        On the held-out rows; None when nothing was held out, for the map has seen every row.
    comparison : Comparison or None
    judged : array or range
        The rows the verdict rests on; a range only counts them.
    by_seed : tuple of (float, float)
        Error before and after, of the whole job done again with other draws of the folds and the same rows held out;
        none where no nuisance is learnt.
    reason : str
        Why the method was chosen, where it was chosen from the data.
    bound : float
        Of an isotonic map on a grid: how near its means are to those of the exact map; 0 for a map of all rows.
    """

    map: Map
    before: Assessment
    after: Assessment | None = None
    comparison: Comparison | None = None
    judged: Integers | range
    by_seed: tuple[tuple[float, float], ...] = ()
    reason: str = ""
    bound: float = 0.0

    @property
    def mark(self) -> Mark:
        """The answer in a word, and the sentences that go with it."""
        return mark_of_change(self.before, self.after, self.comparison)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts as plain numbers, strings, lists and dicts, ready for JSON."""
        return {
            "before": self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "verified_on_unseen_rows": self.after is not None,
            "errors_by_seed": [list(pair) for pair in self.by_seed],
            "reason": self.reason,
        }


def calibrate_and_verify(
    engine: Engine, method: str | Calibrator, settings: Settings | None = None, *, seeds: int = 3
) -> Verified:
    """Fit the map on the rows that are not held out and judge it on the others.

    Where nothing is held out, nothing can be said about the map, only about the prediction before it.
    """
    trial, settings = engine.trial(method), settings or Settings()
    before = trial.assess(settings, calibrated=False)
    if engine.holdout == 0:
        return Verified(map=trial.map, before=before, judged=trial.judged, reason=trial.reason, bound=trial.bound)
    after = trial.assess(settings, calibrated=True)
    again = engine.errors_again(method, seeds - 1)
    return Verified(
        map=trial.map,
        before=before,
        after=after,
        comparison=trial.compare(settings),
        judged=trial.judged,
        by_seed=((before.error, after.error), *again) if again else (),
        reason=trial.reason,
        bound=trial.bound,
    )
