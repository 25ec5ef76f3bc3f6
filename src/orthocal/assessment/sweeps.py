"""Sweeps over rows sorted by prediction: statistics of a verdict are computed from summaries, without holding the rows.

A statistic is a generator (a `Stage`). It yields a summary, which is a function of a piece of the rows (a `Question`), and is
sent the summaries of all pieces, lowest predictions first; when it has what it needs it returns its value. `answered` runs
many statistics side by side, so that one sweep over the rows serves them all. In memory a piece is a few thousand rows, which
fit the cache; on a cluster it is a range of the prediction. Summaries are module-level functions, so that they can travel
(mathematics 11.1).

Examples
--------
The deviation of the residuals in two sweeps: the first summary is sums, and the second needs the mean that they give.

>>> from functools import partial
>>> from orthocal.losses import QuadraticLoss
>>> def sums(piece):
...     return len(piece), piece.residual.sum()
>>> def squares(piece, mean):
...     return ((piece.residual - mean) ** 2).sum()
>>> def deviation():
...     count, total = np.sum((yield sums), axis=0)
...     return float(np.sqrt(sum((yield partial(squares, mean=total / count))) / count))
>>> prediction = np.arange(3000.0)
>>> rows = SortedRows(prediction, QuadraticLoss(prediction + np.tile([1.5, -0.5], 1500), np.ones(3000)))
>>> len(rows.pieces), answered(rows, {"deviation": deviation(), "number": count_units(rows)})
(3, {'deviation': 1.0, 'number': 3000})
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.assessment.pieces import Piece, Runs
from orthocal.errors import OrthocalError
from orthocal.losses import Loss, QuadraticLoss

PIECE, FEWEST = 2**13, 2**10
"""Rows of a piece in memory: a dozen columns of them fit the cache, and few rows are in several pieces, too."""


T = TypeVar("T")
Question: TypeAlias = Callable[[Piece], Any]
"""A summary of a piece."""
Stage: TypeAlias = Generator[Question, list[Any], T]
"""A statistic: yields summaries, is sent those of all pieces, and returns its value."""


class Rows(Protocol):
    """Rows sorted by prediction, wherever they are."""

    @property
    def like(self) -> Loss:
        """A loss of the same kind: its type, unit, bounds, and whether it has clusters hold for all rows, its rows need not."""
        ...

    def ask(self, questions: Sequence[Question]) -> list[list[Any]]:
        """Return each summary of all pieces, lowest predictions first."""
        ...


class SortedRows:
    """Rows in memory, already sorted; their pieces have `longest` rows, or a few thousand."""

    def __init__(self, prediction: Floats, loss: Loss, longest: int | None = None) -> None:
        self.like = loss
        ends = piece_ends(prediction, longest or longest_piece(loss))
        starts = np.concatenate([[0], ends[:-1]])
        self.pieces = [
            Piece(prediction[a:b], loss if len(ends) == 1 else loss[slice(a, b)], number, int(a))
            for number, (a, b) in enumerate(zip(starts, ends, strict=True))
        ]

    def ask(self, questions: Sequence[Question]) -> list[list[Any]]:
        """Take the pieces in turn, each for all summaries."""
        answers: list[list[Any]] = [[] for _ in questions]
        for piece in self.pieces:
            for answer_list, question in zip(answers, questions, strict=True):
                answer_list.append(question(piece))
        return answers


@singledispatch
def longest_piece(loss: Loss) -> int:
    """All rows: the minimiser of a loss in general is found from all of them together."""
    return max(len(loss), 1)


@longest_piece.register(QuadraticLoss)
def _(loss: QuadraticLoss) -> int:
    """Sums are enough."""
    return min(PIECE, max(len(loss) // 8, FEWEST))


def piece_ends(prediction: Floats, longest: int) -> Integers:
    """Return where pieces end, after the last of tied predictions."""
    wanted = np.minimum(np.arange(longest, len(prediction) + longest, longest), len(prediction))
    return np.unique(np.searchsorted(prediction, prediction[wanted - 1], side="right"))


def answered(rows: Rows, stages: Mapping[str, Stage[Any]]) -> dict[str, Any]:
    """Compute statistics side by side: each that is not done asks for one summary in a sweep. Return their values by name.

    Of several that fail, the error of the first by order is raised.
    """
    results: dict[str, Any] = {}
    failed: dict[str, OrthocalError] = {}
    asking: dict[str, Question] = {}

    def go_on(name: str, answers: list[Any] | None) -> None:
        asking.pop(name, None)
        try:
            asking[name] = stages[name].send(answers)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as done:
            results[name] = done.value
        except OrthocalError as error:
            failed[name] = error

    for name in stages:
        go_on(name, None)
    while asking:
        names = list(asking)
        for name, answers in zip(names, rows.ask([asking[name] for name in names]), strict=True):
            go_on(name, answers)
    if failed:
        raise failed[min(failed, key=list(stages).index)]
    return {name: results[name] for name in stages}


def answer(rows: Rows, stage: Stage[T]) -> T:
    """Compute one statistic by itself."""
    result: T = answered(rows, {"": stage})[""]
    return result


def count_rows(piece: Piece) -> int:
    """Summary: how many rows."""
    return piece.rows


def cluster_codes(piece: Piece) -> Integers:
    """Summary: which clusters occur."""
    assert piece.loss.groups is not None  # noqa: S101
    return np.unique(piece.loss.groups)


def count_units(rows: Rows) -> Stage[int]:
    """Return the number of rows, or of clusters."""
    if rows.like.groups is None:
        return sum((yield count_rows))
    return len(np.unique(np.concatenate((yield cluster_codes))))


def count_effective(rows: Rows) -> Stage[tuple[int, float]]:
    """Return the number of rows, or of clusters, and Kish's effective number of them."""
    if rows.like.groups is None:
        units, total, squares = np.sum((yield _row_weights), axis=0)
        return int(units), effective_number(total, squares)
    _, (weight,) = merged((yield _cluster_weights))
    return len(weight), effective_number(weight.sum(), weight @ weight)


def effective_number(total: float, squares: float) -> float:
    """Return Kish's number of equal units that are worth as much as these, of which the weights are summed; at least two."""
    return max(float(total**2 / squares), 2.0)


def steadiness(parts: Floats) -> float:
    r"""Return how many equal normal parts would have a sum of squares as steady as that of these.

    A normal part has :math:`E p^4 = 3 v^2`, so :math:`3 (\sum p^2)^2 / \sum p^4` is the number of parts where all are alike.
    """
    parts = parts / max(float(np.abs(parts).max(initial=0.0)), 1e-300)  # fourth powers of any unit are doubles then
    squares = parts * parts
    fourth = float(squares @ squares)
    return 3 * float(squares.sum()) ** 2 / fourth if fourth > 0 else np.inf


def _row_weights(piece: Piece) -> Floats:
    """Summary: rows, their weights and squared weights."""
    weight = piece.loss.weight
    return np.array([piece.rows, piece.sum(weight), piece.dot(weight, weight)])


def _cluster_weights(piece: Piece) -> tuple[Integers, Floats]:
    """Summary: weights by cluster."""
    assert piece.loss.groups is not None  # noqa: S101
    return cluster_sums(piece.loss.groups, [piece.loss.weight])


def cluster_sums(groups: Integers, columns: Sequence[Floats]) -> tuple[Integers, Floats]:
    """Return (codes that occur, their sums of each column)."""
    codes, where = np.unique(groups, return_inverse=True)
    return codes, np.array([group_sums(where, column, len(codes)) for column in columns])


def pair_codes(piece: Piece, edges: Floats) -> Integers:
    """One number for each pair of cluster and bin."""
    assert piece.loss.groups is not None  # noqa: S101
    runs, count = Runs.of(piece, edges), len(edges) + 1
    return piece.loss.groups * count + runs.index


def merged(answers: Sequence[tuple[Integers, Floats]]) -> tuple[Integers, Floats]:
    """Merge summaries by cluster: return (codes, sums) of all pieces together."""
    if len(answers) == 1:
        return answers[0]
    return cluster_sums(
        np.concatenate([codes for codes, _ in answers]), list(np.concatenate([s for _, s in answers], axis=1))
    )


def predictions_at(positions: Integers) -> Stage[Floats]:
    """Return the predictions of the rows at these places of the sorted order, which must not fall."""
    found = yield _AtPlaces(positions)
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class _AtPlaces:
    """Summary: predictions at those of the places that lie in the piece."""

    positions: Integers

    def __call__(self, piece: Piece) -> Floats:
        own = (
            self.positions[(self.positions >= piece.start) & (self.positions < piece.start + piece.rows)] - piece.start
        )
        if piece.packed is None:
            return piece.prediction[own]
        place = np.searchsorted(np.cumsum(piece.packed.count), own, side="right")
        return piece.prediction[np.minimum(place, len(piece) - 1)]
