"""Rows by ranges of the prediction: the one step that moves rows between workers, and what is asked of them then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers, is_constant
from orthocal.assessment.bin_edges import settled_order
from orthocal.assessment.pieces import Piece
from orthocal.assessment.subgroups import missing_last
from orthocal.assessment.sweeps import Question, Rows, SortedRows, longest_piece, piece_ends
from orthocal.engines.partitioned.partition_loss import Job
from orthocal.engines.partitioned.passes import Reply, named
from orthocal.engines.partitioned.source import Source, prediction_and_loss
from orthocal.engines.protocol import SortedRanges
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, columns_of, of_columns
from orthocal.maps import Map
from orthocal.observations import MISSING, as_groups
from orthocal.solvers.monotone import Blocks, blocks_of

ROWS_A_RANGE = 2**20
"""Rows of a range of predictions that are sorted together."""
LONGER = 32
"""Times as many rows as in memory that a piece of a range has: ranges are asked side by side, and threads wait for each other
between the steps of a piece."""


def ranges(source: Source, noting: Callable[[Loss], Any] | None = None) -> SortedRanges:
    """Return the rows by ranges of the prediction, each sorted: the one step that moves rows.

    Each partition notes what `noting` makes of its loss, as an answer of a pass.
    """
    inner = source.rough_sketch.grid(max(1, round(source.about_rows / ROWS_A_RANGE)))
    empty = _table_like(source.like, source.job.roles.by)
    return source.table.ranges(_table, _sorted, inner, empty, source.job, source.map, source.like, noting)


class RangedRows:
    """Rows sorted by prediction in ranges: the pieces a verdict asks its questions of."""

    def __init__(self, pieces: SortedRanges, like: Loss) -> None:
        self.like, self._pieces = like, pieces
        sizes = np.array(pieces.answers(_sizes))
        self._places = np.cumsum(sizes, axis=0) - sizes
        self.rows = int(sizes[:, 1].sum())

    def ask(self, questions: Sequence[Question]) -> list[list[Any]]:
        """Send all questions to every range, which asks its pieces."""
        found = self._pieces.answers(_answers, self._places, list(questions))
        return [list(answers) for answers in zip(*(piece for own in found for piece in own), strict=True)]

    def among(self, column: str, level: Any) -> Rows:
        """The rows of a subgroup."""
        return RangedRows(self._pieces.changed(_of_group, column, level), self.like)

    def levels(self, column: str, most: int) -> list[Any]:
        """Return the levels of a column of subgroups."""
        return sorted(set().union(*self._pieces.answers(_levels, column, most)), key=missing_last)


@dataclass(frozen=True, eq=False)
class SortedPiece(Piece):
    """A piece with the columns of its subgroups."""

    by: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A column of one number stays such a one."""
        return _piece_of, (self.prediction, _columns_kept(self.loss), self.loss[np.arange(0)], self.by)


def _columns_kept(loss: Loss) -> dict[str, Any]:
    """Return the columns of a loss, of those that hold one number, as masses without weights do, that number only."""
    return {name: column[:1].copy() if is_constant(column) else column for name, column in columns_of(loss).items()}


def _piece_of(prediction: Floats, columns: dict[str, Any], like: Any, by: Any) -> SortedPiece:
    """Return a piece in which a column of one number takes no room."""
    whole = {name: np.broadcast_to(column, len(prediction)) for name, column in columns.items() if len(column) == 1}
    return SortedPiece(prediction, of_columns(like, columns | whole), by=by)


def _table_like(like: Loss, by: Sequence[str]) -> Any:
    import pandas as pd

    columns = {name: column[:0] for name, column in columns_of(like).items()}
    return pd.DataFrame(
        {"prediction": np.empty(0), **columns, **{f"by {name}": np.empty(0, dtype=object) for name in by}}
    )


def _table(
    part: Any, name: str, job: Job, map_: Map | None, like: Loss, noting: Callable[[Loss], Any] | None
) -> tuple[Any, Reply]:
    """Rows of a partition as a frame that can be moved, and what is noted of them."""
    reply = named(part, name, _columns, job, map_, noting)
    if reply.failed is not None:
        raise OrthocalError(reply.failed)
    table, note = reply.answer or (_table_like(like, job.roles.by), None)
    return table, reply._replace(answer=note)


def _columns(part: Any, job: Job, map_: Map | None, noting: Callable[[Loss], Any] | None) -> tuple[Any, Any]:
    import pandas as pd

    part = part if job.roles.sample_weight is None else part[part[job.roles.sample_weight] != 0]
    prediction, loss = prediction_and_loss(part, job, map_)
    by = {f"by {column}": subgroup_of(part[column], column) for column in job.roles.by}
    table = pd.DataFrame({"prediction": prediction, **columns_of(loss), **by}, copy=False)
    return table, None if noting is None else noting(loss)


def subgroup_of(column: Any, name: str) -> Any:
    """Return the subgroup of each row; one that is not known is a subgroup, too."""
    values = as_groups(column, f"by[{name!r}]")
    unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    values = values.astype(object)
    values[unknown] = MISSING
    return values


def _sorted(table: Any, job: Job, map_: Map | None, like: Any, noting: Any) -> SortedPiece:
    """Turn a range of rows back into a loss, sorted as rows in memory are: tied ones by what they hold, however they arrived."""
    del job, map_, noting
    column = {name: table[name].to_numpy() for name in table.columns}
    prediction = column.pop("prediction")
    by = {name[3:]: column.pop(name) for name in list(column) if name.startswith("by ")}
    loss = of_columns(like, column)
    order, prediction = settled_order(prediction, loss)
    by = {name: values[order] for name, values in by.items()}
    return _piece_of(prediction, _columns_kept(loss[order]), like, by)


def _sizes(piece: Piece, number: int) -> tuple[int, int]:
    """How many pieces that fit the cache a range has, and how many rows."""
    del number
    return len(piece_ends(piece.prediction, _longest(piece))) if len(piece) else 0, len(piece)


def _longest(piece: Piece) -> int:
    return LONGER * longest_piece(piece.loss)


def _answers(piece: Piece, number: int, places: Integers, questions: Sequence[Question]) -> list[list[Any]]:
    if not len(piece):
        return []
    before, start = places[number].tolist()
    own = SortedRows(piece.prediction, piece.loss, _longest(piece)).pieces
    placed = [replace(one, number=before + one.number, start=start + one.start) for one in own]
    return [[question(one) for question in questions] for one in placed]


def _of_group(piece: SortedPiece, column: str, level: Any) -> Piece:
    rows = np.flatnonzero(piece.by[column] == level)
    return Piece(piece.prediction[rows], piece.loss[rows])


def _levels(piece: SortedPiece, number: int, column: str, most: int) -> Any:
    del number
    return sorted(set(piece.by[column].tolist()), key=missing_last)[: most + 1]


def blocks(piece: Piece, number: int, scale: float | None) -> Blocks:
    """Return the blocks of a sorted piece, weights as numbers of rows: scaled, or one each."""
    del number
    loss: Any = piece.loss
    count = np.broadcast_to(1.0, len(piece)) if scale is None else loss.weight * scale
    return blocks_of(piece.prediction, loss.numerator, loss.denominator, count)
