"""Rows summed up by cells of the prediction: a verdict without moving rows (mathematics 11.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Floats, is_constant
from orthocal.assessment.pieces import Packed, Piece
from orthocal.assessment.sweeps import Question
from orthocal.engines.partitioned.cell_finder import CellFinder, CellNumbers, sums_in_cells
from orthocal.engines.partitioned.grid_cells import CELLS, PredictionEnds, are_several, halves
from orthocal.losses import Loss, QuadraticLoss, of_columns
from orthocal.losses.counting import Counts

HALVES = 2
NOISELESS = 1e-12
"""Share of a squared mean below which a variance is rounding."""
MOMENTS = ("", "p", "r", "rr", "rrr")
"""Sums over the rows of a cell: their number, weight times prediction, and powers of the residual r."""
OF_MASS, OF_WEIGHT = ("m", "mm", "mmm", "mr", "r/m"), ("w", "ww", "www", "wm", "wr")
"""With the mass m and the weight w, where these are not the same for all rows, or not the same as each other; r/m is r^2 / m."""


class MomentKind(NamedTuple):
    """What need not be summed: a mass that all rows have, and weights that are the masses."""

    mass: float | None
    same: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What is summed."""
        return (*MOMENTS, *(OF_MASS if self.mass is None else ()), *(() if self.same else OF_WEIGHT))


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentCells:
    """Moments of residuals, masses and weights by cells of the prediction, in two halves of the rows.

    Parameters
    ----------
    kind : MomentKind
    sums : dict of str to array of shape (halves, cells)
    edges : array
        Inner ends of the cells ( , ].
    ends : PredictionEnds
        Of all predictions.
    counts : Counts
    least : float
        The least mass of a row.
    """

    kind: MomentKind
    sums: dict[str, Floats]
    edges: Floats
    ends: PredictionEnds
    counts: Counts
    least: float

    @classmethod
    def of(cls, prediction: Floats, loss: QuadraticLoss, finder: CellFinder) -> MomentCells:
        """Of some rows."""
        return cls.in_cells(finder.cells(prediction), prediction, loss, finder.edges)

    @classmethod
    def in_cells(cls, cell: CellNumbers, prediction: Floats, loss: QuadraticLoss, edges: Floats) -> MomentCells:
        """Of rows whose cells are known; by chance half of them are in the other half."""
        mass, weight = loss.denominator, loss.weight
        kind = MomentKind(float(mass[0]) if is_constant(mass) else None, weight is mass)
        alike = kind.mass is not None and kind.same
        place = HALVES * cell
        place += halves(len(cell))
        column = {"r": loss.numerator - (prediction if kind.mass == 1 else mass * prediction), "m": mass, "w": weight}
        found = _moments(place, HALVES * (len(edges) + 1), column, prediction, kind)
        return cls(
            kind=kind,
            sums={name: values.reshape(-1, HALVES).T for name, values in found.items()},
            edges=edges,
            ends=PredictionEnds.of(prediction),
            counts=Counts.alike(float(mass[0]), len(cell)) if alike else Counts.of(weight, len(cell)),
            least=float(mass.min()) if kind.mass is None else kind.mass,
        )

    def without(self, cells: Booleans) -> MomentCells:
        """Return the sums without some cells; counts are still those of all rows."""
        return replace(self, sums={name: np.where(cells, 0.0, values) for name, values in self.sums.items()})

    def moved(self, finer: Floats) -> MomentCells:
        """Return the cells between finer edges; those that are divided have no rows."""
        place = np.append(np.searchsorted(finer, self.edges), len(finer))
        wide = {name: np.zeros((HALVES, len(finer) + 1)) for name in self.sums}
        for name, values in self.sums.items():
            wide[name][:, place] = values
        return replace(self, sums=wide, edges=finer)

    @property
    def weight(self) -> Floats:
        """Of each half and cell."""
        if not self.kind.same:
            return self.sums["w"]
        return self.sums["m"] if self.kind.mass is None else self.kind.mass * self.sums[""]

    @property
    def reach(self) -> float:
        """The range of the sums of residuals in order, seen where a cell ends."""
        walk = np.append(0.0, np.cumsum(self.sums["r"].sum(axis=0)))
        return float(np.ptp(walk))

    def merge(self, other: MomentCells) -> MomentCells:
        """Of both."""
        if self.kind != other.kind:
            return self.full().merge(other.full())
        return MomentCells(
            kind=self.kind,
            sums={name: own + other.sums[name] for name, own in self.sums.items()},
            edges=self.edges,
            ends=self.ends.merge(other.ends),
            counts=self.counts.merge(other.counts),
            least=min(self.least, other.least),
        )

    def full(self) -> MomentCells:
        """Return all moments, those that need not be summed filled in."""
        found = dict(self.sums)
        each = self.kind.mass
        if each is not None:
            rows = found[""]
            found |= {"m": each * rows, "mm": each**2 * rows, "mmm": each**3 * rows, "mr": each * found["r"]}
            found["r/m"] = found["rr"] / each if each else 0 * rows
        if self.kind.same:
            found |= dict(zip(OF_WEIGHT, (found[name] for name in ("m", "mm", "mmm", "mm", "mr")), strict=True))
        return replace(self, kind=MomentKind(None, False), sums=found)

    @property
    def rows(self) -> Floats:
        """Of each cell."""
        return np.asarray(self.sums[""].sum(axis=0))

    @property
    def _upper(self) -> Floats:
        return np.asarray(np.minimum(np.append(self.edges, self.ends.high), self.ends.high))

    @property
    def _prediction(self) -> Floats:
        """The mean prediction of each cell, by weight."""
        lower, upper = np.append(self.ends.low, self.edges), self._upper
        weight = self.weight.sum(axis=0)
        mean = np.divide(self.sums["p"].sum(axis=0), weight, out=upper.copy(), where=weight > 0)
        return np.asarray(np.clip(mean, np.minimum(lower, upper), upper))

    def is_uneven(self, most: float) -> bool:
        """Whether a cell of more than one prediction holds many times its share of the rows, in a grid with all its cells."""
        share = self.rows[are_several(self._prediction, self._upper)] / self.counts.rows
        return bool(share.max(initial=0.0) > most / max(len(self._upper), CELLS))

    def excursion(self) -> float:
        r"""Return how far the sums of residuals in order can leave, inside a cell, what they are at its ends, at most.

        By half of :math:`\sum|r_i - \bar r|`, and that by half the root of rows times squares (Cauchy and Schwarz).
        """
        several = are_several(self._prediction, self._upper)
        rows, total, squares = (self.sums[name].sum(axis=0)[several] for name in ("", "r", "rr"))
        left = squares - np.divide(total**2, rows, out=np.zeros_like(total), where=rows > 0)
        return float(0.5 * np.sqrt(rows * np.maximum(left, 0.0)).max(initial=0.0))

    def lost(self, piece: Piece) -> float:
        """Return by how much the mean loss of the entries falls short of the rows': of r^2 / 2m, where masses are positive."""
        if not self.least > 0:
            return 0.0
        short = float(self.full().sums["r/m"].sum()) - piece.sum(piece.residual**2 / piece.loss.mass)
        return 0.5 * short / piece.sum(piece.loss.weight)

    def piece(self, like: Loss) -> Piece:
        """Return entries that stand for the rows: in each cell and half so few that their moments are those of the rows."""
        some, full = np.flatnonzero(self.rows), self.full()
        moments = {name: values[:, some] for name, values in full.sums.items()}
        prediction = self._prediction[some]
        count, (w, m, r) = _atoms(moments)
        place = np.broadcast_to(np.arange(len(some))[:, None, None], count.shape)[kept := count > 0]
        half = np.broadcast_to(np.arange(HALVES)[None, :, None], count.shape)[kept]
        count, w, m, r, at = count[kept], w[kept], m[kept], r[kept], prediction[place]
        columns = {"numerator": r + m * at, "denominator": m, **({} if self.kind.same else {"weight": w})}
        packed = Packed(
            count=count,
            level=self._upper[some][place],
            lowest=self.ends.low,
            half=half,
            counts=self.counts,
            least=self.least,
        )
        return Piece(at, of_columns(like, columns), packed=packed)


def _moments(
    place: CellNumbers, places: int, column: dict[str, Floats], prediction: Floats, kind: MomentKind
) -> dict[str, Floats]:
    """Sum products of columns, named by their letters, over cells and halves."""

    def sums(values: Floats | None) -> Floats:
        return sums_in_cells(place, values, places)

    each = kind.mass if kind.same else None
    pulled = column["w"] * prediction if each is None else prediction
    found = {"": sums(None), "p": sums(pulled) * (1.0 if each is None else each)}
    products = dict(column)
    if "r/m" in kind.names:
        found["r/m"] = sums(column["r"] ** 2 / np.where(column["m"] > 0, column["m"], np.inf))
    # A product of three is one of two, made just before, times one: in its place, for new memory costs as much as the product.
    for name in (name for name in kind.names[2:] if name != "r/m"):
        if name not in column:
            before = products.pop(name[:-1]) if len(name) > 2 else None
            products[name] = np.multiply(column[name[0]] if before is None else before, column[name[-1]], out=before)
        found[name] = sums(products[name])
    return found


def _atoms(moments: dict[str, Floats]) -> tuple[Floats, list[Floats]]:
    """Return the counts and values of entries, of shape (cells, halves, entries): products of distributions of two values.

    Weights, masses and residuals are made of independent ones, each of two values: so their means and covariances are those of
    the rows, and so is the third moment of the first that varies.
    """
    rows = moments[""]
    safe = np.where(rows > 0, rows, 1.0)
    mean = {name: moments[name] / safe for name in "wmr"}
    cov = {a + b: moments[name] / safe - mean[a] * mean[b] for a, b, name in _PAIRS}
    third = {a: moments[a * 3] / safe - 3 * mean[a] * moments[a * 2] / safe + 2 * mean[a] ** 3 for a in "wmr"}
    for a in "wmr":
        cov[a + a] = np.where(cov[a + a] > NOISELESS * mean[a] ** 2, cov[a + a], 0.0)
    loads = _triangle(cov)
    varying = [a for a in "wmr" if (loads[a + a] > 0).any()]
    nodes = {a: _two_values(third[a], loads[a + a]) for a in varying}
    count: list[Floats] = []
    values: dict[str, list[Floats]] = {a: [] for a in "wmr"}
    for choice in product((0, 1), repeat=len(varying)):
        z = {a: nodes[a][0][side] for a, side in zip(varying, choice, strict=True)}
        share = np.prod([nodes[a][1][side] for a, side in zip(varying, choice, strict=True)], axis=0)
        count.append(rows * share)
        for a in "wmr":
            values[a].append(mean[a] + sum(loads[a + b] * z[b] for b in varying if a + b in loads))
    return _stacked(count), [_stacked(values[a]) for a in "wmr"]


_PAIRS = (("w", "w", "ww"), ("m", "m", "mm"), ("r", "r", "rr"), ("m", "w", "wm"), ("r", "w", "wr"), ("r", "m", "mr"))


def _stacked(values: Sequence[Any]) -> Floats:
    """One array of shape (cells, halves, entries)."""
    return np.stack(values, axis=-1).transpose(1, 0, 2)


def _triangle(cov: dict[str, Floats]) -> dict[str, Floats]:
    """Return the root of the covariances, in every cell (Cholesky): r is made of what w, m and itself bring."""
    found: dict[str, Floats] = {"ww": np.sqrt(cov["ww"])}
    found["mw"] = _over(cov["mw"], found["ww"])
    found["mm"] = _rest(cov["mm"], found["mw"])
    found["rw"] = _over(cov["rw"], found["ww"])
    found["rm"] = _over(cov["rm"] - found["rw"] * found["mw"], found["mm"])
    found["rr"] = _rest(cov["rr"], found["rw"], found["rm"])
    return found


def _over(one: Floats, other: Floats) -> Floats:
    return np.divide(one, other, out=np.zeros_like(one), where=other > 0)


def _rest(variance: Floats, *loads: Floats) -> Floats:
    left = variance - sum(load**2 for load in loads)
    return np.sqrt(np.where(left > NOISELESS * variance, left, 0.0))


def _two_values(third: Floats, deviation: Floats) -> tuple[list[Floats], list[Floats]]:
    """Return the two values, and their shares, of mean 0, variance 1 and this skewness: the nodes of Gauss."""
    skewness = np.divide(third, deviation**3, out=np.zeros_like(third), where=deviation > 0)
    root = np.sqrt(skewness**2 + 4)
    below, above = (skewness - root) / 2, (skewness + root) / 2
    return [below, above], [above / root, -below / root]


class CellRows:
    """Rows summed up by cells, of which a verdict asks its questions."""

    def __init__(self, cells: MomentCells, like: Loss) -> None:
        self.like, self.piece = like, cells.piece(like)

    def ask(self, questions: Sequence[Question]) -> list[list[Any]]:
        """Ask the one piece there is."""
        return [[question(self.piece)] for question in questions]
