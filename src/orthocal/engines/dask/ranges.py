"""Rows by ranges of the prediction: the one step that moves rows between workers, and what is asked of them then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthocal.assessment.bin_edges import settled_order
from orthocal.assessment.subgroups import missing_last
from orthocal.assessment.sweeps import Piece, Question, Rows
from orthocal.engines.dask.partition_loss import Job
from orthocal.engines.dask.source import Source, prediction_and_loss
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, columns_of, of_columns
from orthocal.maps import Map
from orthocal.observations import MISSING, as_groups
from orthocal.solvers.monotone import Blocks, blocks_of

ROWS_A_RANGE = 2**20
"""Rows of a range of predictions that are sorted together."""


def ranges(source: Source) -> list[Any]:
    """Return the rows by ranges of the prediction, each sorted: delayed pieces, which the cluster keeps.

    This is the one step that moves rows between workers.
    """
    import dask
    from dask import dataframe as dd

    inner = source.sketch.grid(max(1, -(-source.sketch.counts.rows // ROWS_A_RANGE)))
    divisions = np.concatenate([[-np.inf], np.nextafter(inner, np.inf), [np.inf]])
    job, move = dask.delayed(source.job, pure=False), dask.delayed(source.map, pure=False)
    like = dask.delayed(source.like, pure=False)
    tables = [dask.delayed(_table)(part, number, job, move, like) for number, part in enumerate(source.parts)]
    table = dd.from_delayed(tables, meta=_table_like(source.like, source.job.roles.by), verify_meta=False)
    if len(divisions) > 2:
        table = table.set_index("prediction", divisions=divisions.tolist(), drop=False)
    else:
        table = table.repartition(npartitions=1)
    pieces = [dask.delayed(_sorted)(part, like) for part in table.to_delayed()]
    return list(dask.persist(*pieces))


class DaskRows:
    """Rows sorted by prediction on a cluster: the pieces a verdict asks its questions of."""

    def __init__(self, pieces: Sequence[Any], like: Loss) -> None:
        import dask

        self.like = like
        sizes: Any = dask.compute(*[dask.delayed(len)(piece) for piece in pieces])
        some = [(piece, size) for piece, size in zip(pieces, sizes, strict=True) if size]
        self._starts = np.cumsum([0, *(size for _, size in some)])
        self.rows = int(self._starts[-1])
        self._pieces = [piece for piece, _ in some]

    def ask(self, questions: Sequence[Question]) -> list[list[Any]]:
        """Send all questions to every piece."""
        import dask

        told = dask.delayed(list(questions), pure=False, traverse=False)
        places = [(number, int(self._starts[number])) for number in range(len(self._pieces))]
        tasks = [dask.delayed(_answers)(piece, *at, told) for piece, at in zip(self._pieces, places, strict=True)]
        return [list(answers) for answers in zip(*dask.compute(*tasks), strict=True)]

    def among(self, column: str, level: Any) -> Rows:
        """The rows of a subgroup."""
        import dask

        return DaskRows([dask.delayed(_of_group)(piece, column, level) for piece in self._pieces], self.like)

    def levels(self, column: str, most: int) -> list[Any]:
        """Return the levels of a column of subgroups."""
        import dask

        found = dask.compute(*[dask.delayed(_levels)(piece, column, most) for piece in self._pieces])
        return sorted(set().union(*found), key=missing_last)


@dataclass(frozen=True, eq=False)
class SortedPiece(Piece):
    """A piece with the columns of its subgroups."""

    by: Any = None


def _table_like(like: Loss, by: Sequence[str]) -> Any:
    import pandas as pd

    columns = {name: column[:0] for name, column in columns_of(like).items()}
    return pd.DataFrame(
        {"prediction": np.empty(0), **columns, **{f"by {name}": np.empty(0, dtype=object) for name in by}}
    )


def _table(part: Any, number: int, job: Job, map_: Map | None, like: Loss) -> Any:
    """Rows of a partition as a frame that can be moved."""
    import pandas as pd

    part = part if job.roles.sample_weight is None else part[part[job.roles.sample_weight] != 0]
    if not len(part):
        return _table_like(like, job.roles.by)
    try:
        prediction, loss = prediction_and_loss(part, job, map_)
        by = {f"by {name}": _subgroup(part[name], name) for name in job.roles.by}
    except OrthocalError as error:
        raise OrthocalError(f"Partition {number}: {error}") from None
    return pd.DataFrame({"prediction": prediction, **columns_of(loss), **by})


def _subgroup(column: Any, name: str) -> Any:
    """Return the subgroup of each row; one that is not known is a subgroup, too."""
    values = as_groups(column, f"by[{name!r}]")
    unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    values = values.astype(object)
    values[unknown] = MISSING
    return values


def _sorted(table: Any, like: Any) -> SortedPiece:
    """Turn a range of rows back into a loss, sorted as rows in memory are: tied ones by what they hold, however they arrived."""
    column = {name: table[name].to_numpy() for name in table.columns}
    prediction = column.pop("prediction")
    by = {name[3:]: column.pop(name) for name in list(column) if name.startswith("by ")}
    loss = of_columns(like, column)
    order = settled_order(prediction, loss)
    return SortedPiece(prediction[order], loss[order], by={name: values[order] for name, values in by.items()})


def _answers(piece: Piece, number: int, start: int, questions: Sequence[Question]) -> list[Any]:
    placed = Piece(piece.prediction, piece.loss, number, start)
    return [question(placed) for question in questions]


def _of_group(piece: SortedPiece, column: str, level: Any) -> Piece:
    rows = np.flatnonzero(piece.by[column] == level)
    return Piece(piece.prediction[rows], piece.loss[rows])


def _levels(piece: SortedPiece, column: str, most: int) -> Any:
    return sorted(set(piece.by[column].tolist()), key=missing_last)[: most + 1]


def blocks(piece: Piece, scale: float | None) -> Blocks:
    """Return the blocks of a sorted piece, weights as numbers of rows: scaled, or one each."""
    loss: Any = piece.loss
    count = np.ones(len(piece)) if scale is None else loss.weight * scale
    return blocks_of(piece.prediction, loss.numerator, loss.denominator, count)
