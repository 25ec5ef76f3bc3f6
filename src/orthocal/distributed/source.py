"""Partitions and what can be asked of them: sketches, sums, rows in the order of their predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from orthocal.assessment.sweeps import Piece
from orthocal.distributed.passes import each, merged, partitions
from orthocal.distributed.rows import Job, loss_of
from orthocal.distributed.summaries import Cells, Inside, Line, Pairs, Sketch
from orthocal.errors import OrthocalError, UnavailableError
from orthocal.losses import Loss, QuadraticLoss, columns_of, of_columns, without_overlap
from orthocal.observations import as_numbers
from orthocal.solvers.monotone import Blocks, blocks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orthocal.arrays import Floats
    from orthocal.assessment.sweeps import Question, Rows
    from orthocal.maps import Map

KEPT = 2**20
"""Predictions that sketches of all partitions keep together."""
ROWS_A_RANGE = 2**20
"""Rows of a range of predictions that are sorted together."""


@dataclass(frozen=True, eq=False)
class Source:
    """The partitions of a table and the job to be done on them.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        The columns that are needed.
    job : Job
    map : Map, optional
        Of the predictions, before anything is asked of them.
    level_map : Map, optional
        The loss is taken at this map of the predictions, where it depends on the level; the predictions stay as they are.
    """

    frame: Any
    job: Job
    map: Map | None = None
    level_map: Map | None = None

    @cached_property
    def parts(self) -> list[Any]:
        """Every partition, all columns."""
        return partitions(self.frame)

    @cached_property
    def prediction_parts(self) -> list[Any]:
        """Every partition, predictions and weights only: for passes that need no more."""
        columns = self.job.columns
        return partitions(self.frame[[name for name in (columns.prediction, columns.sample_weight) if name]])

    @property
    def kept(self) -> int:
        """Predictions that one partition's sketch keeps."""
        return int(np.clip(KEPT // max(len(self.parts), 1), 2**10, 2**16))

    @cached_property
    def sketch(self) -> Sketch:
        """Of all predictions."""
        return merged(self.prediction_parts, _sketch, Sketch.merge, self.job, self.map, self.kept)

    def edges(self, wanted: Floats) -> Floats:
        """Return the predictions at which the running weight reaches each of these, exactly."""
        brackets = self.sketch.brackets(wanted, len(self.parts), self.kept)
        if not len(brackets):
            return np.empty(0)
        inside = merged(self.prediction_parts, _inside, Inside.merge, self.job, self.map, brackets)
        return inside.edges(wanted, brackets, float(self.sketch.level[-1]))

    def line(self) -> Line:
        """Return the moments of a straight line."""
        return merged(self.parts, _line, Line.merge, self.job, self.map, self.pivot)

    def cells(self, edges: Floats, *, bounded: bool = False) -> Cells:
        """Return the sums of the cells between these edges."""
        return merged(self.parts, _cells, Cells.merge, self.job, self.map, edges, bounded)

    def pairs(self, cells: int, steps: int) -> tuple[Floats, Any]:
        """Return (prediction, loss) of all rows, those with nearly the same prediction and outcome put together."""
        edges, outcomes = self.sketch.grid(cells), self.outcomes.grid(steps)
        highest = float(self.sketch.level[-1]), float(self.outcomes.level[-1])
        found = merged(self.parts, _pairs, Pairs.merge, self.job, self.map, self.level_map, edges, outcomes)
        return found.rows(self.like, edges, outcomes, highest)

    @cached_property
    def outcomes(self) -> Sketch:
        """Of all outcomes."""
        return merged(self.parts, _outcomes, Sketch.merge, self.job, self.kept)

    def ranges(self) -> list[Any]:
        """Return the rows by ranges of the prediction, each sorted: delayed pieces, which the cluster keeps.

        This is the one step that moves rows between workers.
        """
        import dask
        from dask import dataframe as dd

        count = max(1, -(-self.sketch.counts.rows // ROWS_A_RANGE))
        inner = self.sketch.grid(count)
        divisions = np.unique(
            np.concatenate([[self.sketch.level[0]], np.nextafter(inner, np.inf), [self.sketch.level[-1]]])
        )
        job, move = dask.delayed(self.job, pure=False), dask.delayed(self.map, pure=False)
        tables = [dask.delayed(_table)(part, number, job, move) for number, part in enumerate(self.parts)]
        table = dd.from_delayed(tables, meta=_table_like(self.like, self.job.columns.by), verify_meta=False)
        if len(divisions) > 2:
            table = table.set_index("prediction", divisions=divisions.tolist(), drop=False)
        else:
            table = table.repartition(npartitions=1)
        like = dask.delayed(self.like, pure=False)
        pieces = [dask.delayed(_sorted)(part, like) for part in table.to_delayed()]
        return list(dask.persist(*pieces))

    @cached_property
    def _first(self) -> tuple[Loss, float]:
        """The loss of a few rows, and the mean prediction of their partition."""
        for number, part in enumerate(self.parts):
            (found,) = each([part], _few, self.job, self.map, first=number)
            if found is not None:
                return found
        raise OrthocalError("The data must have rows that count; every partition is empty, or of weight 0.")

    @property
    def _first_rows(self) -> Loss:
        return self._first[0]

    @property
    def pivot(self) -> float:
        """A prediction among the others, about which moments are taken."""
        return self._first[1]

    @property
    def like(self) -> Loss:
        """A loss of a few rows, of the kind that all have."""
        loss = without_overlap(self._first_rows)
        if self.job.origin is None or not hasattr(loss, "origin"):
            return loss
        origin = replace(self.job.origin, rows=self.sketch.counts.rows)
        return cast("Loss", replace(cast("Any", loss), origin=origin))

    @property
    def depends_on_level(self) -> bool:
        """Whether the loss is another at another level."""
        return getattr(self._first_rows, "law", None) is not None

    @property
    def has_overlap(self) -> bool:
        """Whether the loss tells how well treatment levels overlap."""
        return self._first_rows.overlap is not None


class DaskRows:
    """Rows sorted by prediction on a cluster: the pieces a verdict asks its questions of."""

    def __init__(self, pieces: Sequence[Any], like: Loss) -> None:
        import dask

        self.like = like
        sizes: Any = dask.compute(*[dask.delayed(len)(piece) for piece in pieces])
        some = [(piece, size) for piece, size in zip(pieces, sizes, strict=True) if size]
        self._starts = np.cumsum([0, *(size for _, size in some)])
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
        return list(np.unique(np.concatenate(found)).tolist())


@dataclass(frozen=True, eq=False)
class SortedPiece(Piece):
    """A piece with the columns of its subgroups."""

    by: Any = None


def _predicted(part: Any, job: Job, map_: Map | None) -> tuple[Floats, Floats | None]:
    """Predictions and weights of a partition; rows of weight 0 are left out."""
    columns = job.columns
    prediction = as_numbers(part[columns.prediction], "prediction")
    weight = None if columns.sample_weight is None else as_numbers(part[columns.sample_weight], "sample_weight")
    if weight is not None and not weight.all():
        prediction, weight = prediction[weight > 0], weight[weight > 0]
    return prediction if map_ is None else map_.predict(prediction), weight


def _sketch(part: Any, number: int, job: Job, map_: Map | None, keep: int) -> Sketch | None:
    del number
    prediction, weight = _predicted(part, job, map_)
    return Sketch.of(prediction, weight, keep) if len(prediction) else None


def _inside(part: Any, number: int, job: Job, map_: Map | None, brackets: Floats) -> Inside | None:
    del number
    prediction, weight = _predicted(part, job, map_)
    return Inside.of(prediction, weight, brackets) if len(prediction) else None


def judged(part: Any, job: Job, map_: Map | None) -> tuple[Floats, Any]:
    """Return the predictions of a partition, calibrated where there is a map, and their loss there."""
    prediction, loss = loss_of(part, job)
    if map_ is not None:
        prediction = map_.predict(prediction)
    return prediction, loss.at(prediction)


def _quadratic(part: Any, job: Job, map_: Map | None) -> tuple[Floats, QuadraticLoss]:
    prediction, loss = judged(part, job, map_)
    assert isinstance(loss, QuadraticLoss)  # noqa: S101  # others are not summed
    return prediction, loss


def _line(part: Any, number: int, job: Job, map_: Map | None, pivot: float) -> Line | None:
    del number
    prediction, loss = _quadratic(part, job, map_)
    return Line.of(prediction, loss, pivot) if len(prediction) else None


def _cells(part: Any, number: int, job: Job, map_: Map | None, edges: Floats, bounded: bool) -> Cells | None:
    del number
    prediction, loss = _quadratic(part, job, map_)
    return Cells.of(prediction, loss, edges, bounded=bounded) if len(prediction) else None


def _pairs(
    part: Any, number: int, job: Job, map_: Map | None, level_map: Map | None, edges: Floats, outcomes: Floats
) -> Pairs | None:
    del number
    prediction, loss = judged(part, job, map_)
    if level_map is not None:
        loss = loss.at(level_map.predict(prediction))
    return Pairs.of(prediction, loss, edges, outcomes) if len(prediction) else None


def _outcomes(part: Any, number: int, job: Job, keep: int) -> Sketch | None:
    del number
    prediction, loss = loss_of(part, job)
    if not hasattr(loss, "outcome"):
        raise UnavailableError(
            f"A {type(loss).__name__} must have outcomes to be put on a grid; it has none. Calibrate a sample in memory."
        )
    return Sketch.of(loss.outcome, None, keep) if len(prediction) else None


def _few(part: Any, number: int, job: Job, map_: Map | None) -> tuple[Loss, float] | None:
    del number
    prediction, loss = judged(part, job, map_)
    return (loss[np.arange(min(len(loss), 2))], float(prediction.mean())) if len(prediction) else None


def _table_like(like: Loss, by: Sequence[str]) -> Any:
    import pandas as pd

    columns = {name: column[:0] for name, column in columns_of(like).items()}
    return pd.DataFrame(
        {"prediction": np.empty(0), **columns, **{f"by {name}": np.empty(0, dtype=object) for name in by}}
    )


def _table(part: Any, number: int, job: Job, map_: Map | None) -> Any:
    """Rows of a partition as a frame that can be moved."""
    import pandas as pd

    try:
        prediction, loss = judged(part, job, map_)
    except OrthocalError as error:
        raise OrthocalError(f"Partition {number}: {error}") from None
    kept = part if len(part) == len(prediction) else part[part[job.columns.sample_weight] > 0]
    by = {f"by {name}": kept[name].to_numpy(dtype=object) for name in job.columns.by}
    return pd.DataFrame({"prediction": prediction, **columns_of(loss), **by})


def _sorted(table: Any, like: Any) -> SortedPiece:
    """Turn a range of rows back into a loss, sorted."""
    order = np.argsort(table["prediction"].to_numpy(), kind="stable")
    column = {name: table[name].to_numpy()[order] for name in table.columns}
    prediction = column.pop("prediction")
    by = {name[3:]: column.pop(name) for name in list(column) if name.startswith("by ")}
    return SortedPiece(prediction, of_columns(like, column), by=by)


def _answers(piece: Piece, number: int, start: int, questions: Sequence[Question]) -> list[Any]:
    placed = Piece(piece.prediction, piece.loss, number, start)
    return [question(placed) for question in questions]


def _of_group(piece: SortedPiece, column: str, level: Any) -> Piece:
    rows = np.flatnonzero(piece.by[column] == level)
    return Piece(piece.prediction[rows], piece.loss[rows])


def _levels(piece: SortedPiece, column: str, most: int) -> Any:
    return np.array(sorted(set(piece.by[column].tolist()))[: most + 1])


def blocks(piece: Piece, scale: float) -> Blocks:
    """Return the blocks of a sorted piece, weights as numbers of rows."""
    loss: Any = piece.loss
    return blocks_of(piece.prediction, loss.numerator, loss.denominator, loss.weight * scale)
