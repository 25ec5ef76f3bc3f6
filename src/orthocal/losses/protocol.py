"""What a loss must offer, and losses as columns, so that their rows can be moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np

from orthocal.arrays import Floats, Integers, RowIndex, is_constant
from orthocal.distributions import TableDistribution
from orthocal.errors import OrthocalError, require_positive_mass, require_rows
from orthocal.losses.average_curves import AverageCurves
from orthocal.losses.balance import Balance
from orthocal.values import as_numbers


@dataclass(frozen=True, eq=False)
class Overlap:
    """How well the arms overlap: whether covariates leave the treatment open.

    Parameters
    ----------
    clip : float
        Fitted propensities were kept inside [clip, 1 - clip].
    clipped : dict of str to float
        Share of all fitted rows moved by that, per fitted propensity; given ones are never moved.
    levels : dict of str to (array, array)
        Per arm: which rows got it, and their propensities of it.
    weight : array of shape (rows,)
    notes : tuple of str
        Further diagnostics in words, such as the strength of an instrument.
    balance : Balance, optional
        Of a continuous treatment, which has no propensities: how well its correction balances.
    curves : AverageCurves, optional
        Of censored times: the survival curve of each arm, averaged over all rows.
    residual : array of shape (rows,), optional
        Outcome minus its mean given covariates and arm, 0 outside the arms compared: how far an omitted variable can reach. Of
        a CATE in memory with a learnt propensity; where it is given there is no unmeasured confounding.
    """

    clip: float
    clipped: dict[str, float]
    levels: dict[str, tuple[Any, Floats]]
    weight: Floats
    notes: tuple[str, ...] = ()
    balance: Balance | None = None
    curves: AverageCurves | None = field(default=None, kw_only=True)
    residual: Floats | None = field(default=None, kw_only=True)

    def __getitem__(self, rows: RowIndex) -> Overlap:
        levels = {name: (got[rows], propensity[rows]) for name, (got, propensity) in self.levels.items()}
        residual = None if self.residual is None else self.residual[rows]
        return replace(self, levels=levels, weight=self.weight[rows], residual=residual)

    @property
    def propensity(self) -> dict[str, tuple[float, float]]:
        """Least and largest propensity of each arm."""
        return {name: (float(p.min()), float(p.max())) for name, (_, p) in self.levels.items()}

    @property
    def effective_rows(self) -> dict[str, float]:
        """Per level: (sum of inverse propensity weights)^2 / sum of their squares over the rows that got it."""
        inverse = {name: (self.weight / p)[got] for name, (got, p) in self.levels.items()}
        return {name: float(w.sum() ** 2 / (w @ w)) if w.any() else 0.0 for name, w in inverse.items()}

    @property
    def rows(self) -> dict[str, int]:
        """How many rows got each arm."""
        return {name: int(np.count_nonzero(got)) for name, (got, _) in self.levels.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain numbers and strings."""
        summary = {"clip": self.clip, "clipped": self.clipped, "propensity": self.propensity}
        balance = {} if self.balance is None else {"balance": self.balance.to_dict()}
        curves = {} if self.curves is None else {"curves": self.curves.to_dict()}
        return {**summary, "effective_rows": self.effective_rows, "notes": list(self.notes), **balance, **curves}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a loss comes from, so that another person can build it again.

    Parameters
    ----------
    effect : str
        As it would be written in Python.
    estimand, formula, assumption : str
        What is estimated, how, and what must hold, in words.
    learners : dict of str to str
        By nuisance: its learner as it would be written in Python, or that it was given.
    folds : int
    clip : float
    seed : str
    rows : int
        Of the data the nuisances were learnt from.
    """

    effect: str
    estimand: str
    formula: str
    assumption: str
    learners: dict[str, str]
    folds: int
    clip: float
    seed: str
    rows: int


@runtime_checkable
class Loss(Protocol):
    """What a loss must offer; a custom loss with these members works with every solver and every verdict.

    A loss may also say `is_ratio`, which is False where it is left out (see `is_ratio`).

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import Loss, QuadraticLoss
    >>> isinstance(QuadraticLoss(np.array([1.0, 3.0]), np.ones(2)), Loss)
    True
    """

    @property
    def mass(self) -> Floats:
        """What a row's derivative is measured against: the denominator of a quadratic loss, else its weight."""
        ...

    @property
    def weight(self) -> Floats:
        """Sample weight of each row, never negative."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """Where minimisers are sought."""
        ...

    @property
    def groups(self) -> Integers | None:
        """Cluster code of each row."""
        ...

    @property
    def overlap(self) -> Overlap | None:
        """How well treatment arms overlap."""
        ...

    @property
    def unit(self) -> str:
        """What the residuals are measured in."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: RowIndex) -> Self:
        """The loss of some rows."""
        ...

    def value(self, v: Floats) -> Floats:
        """Loss of each row at its own number."""
        ...

    def derivative(self, v: Floats) -> Floats:
        """Right derivative of each row's loss at its own number."""
        ...

    def at(self, prediction: Floats) -> Loss:
        """The loss with its nuisances taken at this prediction; itself when universally orthogonal."""
        ...


def require_loss(loss: Any) -> None:
    """Something is the loss of some rows."""
    if not (hasattr(loss, "derivative") and hasattr(loss, "weight") and hasattr(loss, "__len__")):
        raise OrthocalError(f"`loss` must be a loss, as `orthogonal_loss` returns; it is a {type(loss).__name__}.")
    require_rows(len(loss))


def counted_rows(prediction: Any, loss: Any) -> tuple[Floats, Loss]:
    """Return predictions, checked, and the loss of the same rows, of those that count."""
    require_loss(loss)
    return rows_that_count(as_numbers(prediction, "prediction", len(loss)), loss)


def rows_that_count(prediction: Floats, loss: Loss) -> tuple[Floats, Loss]:
    """Leave out rows of weight 0: they are no evidence, and must not be counted as any."""
    if is_constant(loss.weight) and loss.weight[0] > 0:
        return prediction, loss
    counting = loss.weight > 0
    if counting.all():
        return prediction, loss
    if not counting.any():
        raise OrthocalError("At least one row must have positive weight; all are 0.")
    rows = np.flatnonzero(counting)
    return prediction[rows], loss[rows]


def without_overlap(loss: Loss) -> Loss:
    """Return the loss without the propensities it carries for summaries: selecting rows of them would be idle work."""
    if loss.overlap is None or not is_dataclass(loss):
        return loss
    return cast("Loss", replace(cast("Any", loss), overlap=None))


def is_ratio(loss: Loss) -> bool:
    """Return whether the loss is of a ratio effect: its derivative at v is mass * v minus something.

    The mass of a ratio effect is an estimate, not a sample weight. It can be 0 or negative in a row, and by chance in a bin, so
    a verdict must not divide by it there.
    """
    return bool(getattr(loss, "is_ratio", False))


def total_mass(loss: Loss) -> float:
    """Return the summed mass, which must be positive for an effect to be defined."""
    total = float(loss.mass.sum())
    require_positive_mass(total)
    return total


L = TypeVar("L", bound="Loss")
DISTRIBUTION = "distribution "
"""How columns of a conditional distribution begin: one for each level of its table."""


def unchecked(loss: L, **columns: Any) -> L:
    """Return the loss with other columns that need no check, as rows of its own do not."""
    found = object.__new__(type(loss))
    found.__dict__.update(loss.__dict__ | columns)
    return found


def columns_of(loss: Any) -> dict[str, Any]:
    """Return the arrays of a loss that have one entry per row; weights that are the masses are not repeated."""
    found = {field.name: getattr(loss, field.name) for field in fields(loss)}
    kept = {name: value for name, value in found.items() if isinstance(value, np.ndarray) and len(value) == len(loss)}
    if "weight" in kept and kept["weight"] is kept.get("denominator"):
        del kept["weight"]
    distribution: Any = getattr(loss, "distribution", None)
    if hasattr(distribution, "tabulated"):
        kept |= {f"{DISTRIBUTION}{j}": column for j, column in enumerate(distribution.tabulated().table.T)}
    return kept


def of_columns(like: L, columns: Mapping[str, Any]) -> L:
    """Return a loss of the same kind with these columns; without columns of a conditional distribution it stays at its level."""
    own = {name: column for name, column in columns.items() if not name.startswith(DISTRIBUTION)}
    weight = own.get("weight", own.get("denominator"))
    left: dict[str, Any] = {"groups": None, "overlap": None} | (
        {"distribution": _law(like, columns)} if hasattr(like, "distribution") else {}
    )
    return replace(like, **{**left, **own, "weight": weight})  # type: ignore[type-var]


def _law(like: Any, columns: Mapping[str, Any]) -> TableDistribution | None:
    count = sum(name.startswith(DISTRIBUTION) for name in columns)
    table = [columns[f"{DISTRIBUTION}{number}"] for number in range(count)]  # whatever order they come in
    return TableDistribution(like.distribution.tabulated().levels, np.column_stack(table)) if table else None


def joined(losses: Sequence[L]) -> L:
    """Return the loss of all rows of several of one kind."""
    parts = [columns_of(loss) for loss in losses]
    return of_columns(losses[0], {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
