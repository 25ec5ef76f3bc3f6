"""What an engine offers: rows, wherever they are, with one loss, some to fit maps on and others to judge them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orthocal.arrays import Integers
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.settings import Settings
from orthocal.calibrators import Calibrator
from orthocal.maps import Map


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
