"""What an engine must do: fit a map on some rows, judge it on others, wherever the rows are.

Rows come in memory, or in partitions. An engine of partitions is one class, `PartitionedTable`: the calibrators, verdicts and
nuisances in ``engines/partitioned/`` are written once, for any that has its verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.audit_records import Audit
from orthocal.assessment.records import Settings
from orthocal.assessment.rivals_side_by_side import RivalSums
from orthocal.calibrators import Calibrator
from orthocal.calibrators.within import GroupsWithin
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.maps import Map
from orthocal.nuisances import Nuisance
from orthocal.observations import as_numbers


def require_both_sides(holdout: Any, rows: int, fitted: int, judged: int) -> None:
    """There are rows to fit a map on, and rows to judge it on."""
    if judged < 2 or fitted < 2:
        raise OrthocalError(f"`holdout`={holdout} leaves too few of the {rows} rows on one side. Use more data.")


def require_share(holdout: float) -> None:
    """A share of the rows is held out, or none."""
    if isinstance(holdout, bool) or not isinstance(holdout, int | float) or not 0 <= holdout < 1:
        raise OrthocalError(
            f"`holdout` must lie in [0, 1), or name a column; it is {shown(holdout)}. 0.3 keeps three rows of ten for the "
            "verdict."
        )


def held_out(values: Any, name: str, n: int) -> Booleans:
    """Return which rows are held out, from a column of booleans, or of 0 and 1."""
    column = as_numbers(values, name, n)
    if not np.isin(column, (0.0, 1.0)).all():
        odd = column[~np.isin(column, (0.0, 1.0))][0]
        raise OrthocalError(
            f"`holdout` as a column must be boolean, 1 for rows to judge on; {name!r} holds {odd:g}. Make it one, for "
            "instance month >= 6."
        )
    return np.asarray(column == 1.0)


class JudgedMap(Protocol):
    """Maps fitted on some rows, and the verdicts on rows they are judged on."""

    @property
    def map(self) -> Map:
        """The map of the method."""
        ...

    @property
    def constant(self) -> Map:
        """The average effect of the same rows, for everyone."""
        ...

    @property
    def reason(self) -> str:
        """Why the method was chosen, where it was chosen from the data."""
        ...

    @property
    def bound(self) -> float:
        """How near an isotonic map on a grid is to that of all rows; 0 for the latter."""
        ...

    @property
    def judged(self) -> Integers | range:
        """The rows judged; a range only counts them."""
        ...

    @property
    def fitted(self) -> int:
        """How many rows the map was fitted on."""
        ...

    @property
    def fitted_range(self) -> tuple[float, float]:
        """The lowest and the highest prediction that the map was fitted on."""
        ...

    def assess(self, settings: Settings, map_: Map) -> Assessment:
        """Judge what a map makes of the prediction."""
        ...

    def compare(self, settings: Settings, before: Map, after: Map) -> Comparison:
        """Compare what two maps make of the prediction."""
        ...

    def audit(self, settings: Settings, map_: Map) -> Audit | None:
        """Test what a map makes of the prediction in groups; None where none were given."""
        ...

    def gaps(self, again: Map, predictions: Floats) -> Floats:
        """Return how far another map is from the map of the method."""
        ...

    def refitted(self) -> Map:
        """Return the map of the same method, its members and their weights as they are, fitted on all rows."""
        ...

    @property
    def unit(self) -> str:
        """Of the effect."""
        ...

    def rival(self, map_: Map) -> Any:
        """Return what a map makes of the prediction on the rows judged: an array, or in partitions column and map."""
        ...

    def rival_sums(self, predictions: Sequence[Any], cost: float | None) -> RivalSums:
        """Return what a leaderboard of such predictions must know of the rows judged."""
        ...


class Engine(Protocol):
    """Rows that can be calibrated and judged; nuisances are learnt on first need, and once.

    A `prediction` is an array in memory, and the name of a column elsewhere.
    """

    @property
    def to_learn(self) -> tuple[list[Nuisance], list[str]]:
        """The nuisances that are not known, and the names of those that are."""
        ...

    def trial(
        self, prediction: Any, method: str | Calibrator, holdout: Any, by: Any, within: GroupsWithin | None = None
    ) -> JudgedMap:
        """Fit a map on the rows that are not held out, with shifts of groups after it where groups are given."""
        ...

    def judge(self, prediction: Any, settings: Settings) -> Assessment:
        """Judge predictions on all rows."""
        ...

    def judged_again(self, prediction: Any, times: int) -> Sequence[float]:
        """Return the error on all rows under further draws of the folds."""
        ...

    def compare(self, one: Any, other: Any, settings: Settings, rivals: tuple[str, str]) -> Comparison:
        """Compare two predictions on all rows."""
        ...

    def errors_again(
        self,
        prediction: Any,
        method: str | Calibrator,
        holdout: Any,
        times: int,
        within: GroupsWithin | None = None,
    ) -> Sequence[tuple[float, float]]:
        """Return the error before and after of the whole job done again with other draws of the folds."""
        ...


class SortedRanges(Protocol):
    """Rows by ranges of the prediction, lowest first, each range an object that stays where it was made."""

    @property
    def notes(self) -> Sequence[Any]:
        """What the partitions noted when their rows were moved, in order."""
        ...

    def answers(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return ``function(range, number, *shared)`` of every range, in order."""
        ...

    def changed(self, function: Callable[..., Any], *shared: Any) -> Self:
        """Return the ranges that ``function(range, *shared)`` makes of these."""
        ...


@runtime_checkable
class PartitionedTable(Protocol):
    """A table in partitions: all that an engine must do.

    Functions that are passed are of a module, so that they can travel, and so is what they return. A partition is a pandas
    frame; answers come in the order of the partitions, and what was lost on the way is done again.
    """

    @property
    def place(self) -> str:
        """Where the rows are, as in 'this study's rows are on Dask'."""
        ...

    @property
    def sampling(self) -> str:
        """How a user would take a sample of the rows into memory, in Python."""
        ...

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """What each partition is called, as in 'Partition 3': sentences about what is wrong begin with it."""
        ...

    def select(self, columns: Sequence[str]) -> Self:
        """Return the table with some columns, so that no other is read, in the same partitions."""
        ...

    def where(self, columns: Sequence[str], function: Callable[..., Booleans], *shared: Any) -> Self:
        """Return the table of the rows for which ``function(partition of these columns, *shared)`` is true."""
        ...

    def answers(self, function: Callable[..., Any], *shared: Any, parts: Sequence[int] | None = None) -> list[Any]:
        """Return ``function(partition, name, *shared)`` of every partition, or of some, in order."""
        ...

    def merged(self, function: Callable[..., Any], merge: Callable[[Sequence[Any]], Any], *shared: Any) -> Any:
        """Return the answers of all partitions merged, a few at a time and in order, so that they never lie in one place."""
        ...

    def ranges(
        self,
        function: Callable[..., Any],
        build: Callable[..., Any],
        inner: Floats,
        empty: Any,
        *shared: Any,
    ) -> SortedRanges:
        """Move rows to ranges of the prediction: the one verb that moves rows, each once.

        Parameters
        ----------
        function : callable
            ``function(partition, name, *shared)`` gives a frame of numbers and labels, with a column ``prediction``, and a
            note on the partition.
        build : callable
            ``build(frame, *shared)`` makes a range of the rows that arrive, in whatever order.
        inner : array
            Inner ends of the ranges ( , ].
        empty : pandas.DataFrame
            Such a frame without rows.
        """
        ...

    def calls(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], *shared: Any) -> list[Any]:
        """Return ``function(*own, *shared)`` for each tuple of arguments, side by side: work that needs no rows, such as fits."""
        ...

    def trained(self, job: Any, learners: Mapping[str, Any] | str | None, probed: Any) -> tuple[Any, ...]:
        """Learn nuisances on all rows, by learners made for such partitions; refused where there are none."""
        ...

    def with_column(self, name: str, function: Callable[..., Any], source: str, *shared: Any) -> Any:
        """Return the user's table with one more column, ``function(column, *shared)`` of another; nothing is computed yet."""
        ...
