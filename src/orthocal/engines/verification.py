"""Calibrate on some rows, judge on others: the whole job on any engine, with a verdict that is honest by construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orthocal.arrays import Integers
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.settings import Settings
from orthocal.assessment.status import Mark, mark_of_change
from orthocal.calibrators import Calibrator
from orthocal.engines.protocol import Engine
from orthocal.maps import Map


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
