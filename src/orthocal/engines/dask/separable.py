"""A check, on a few rows, that an effect can be computed partition by partition."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.effects import Effect, sums_of
from orthocal.errors import OrthocalError
from orthocal.nuisances import Nuisance
from orthocal.nuisances.cross_fit import Fitted
from orthocal.observations import Observations

NEAR = 1e-9
"""Share of a column's size that rounding may move it by."""
FEWEST = 4
"""Rows that can be halved with something in both halves to compare."""


def require_separable(effect: Effect, rows: Observations, fitted: Fitted) -> None:
    """The loss of some rows is that of the same rows among all: other rows enter through `sums` only."""
    # In one fold, for a few rows need not have every level in each.
    fitted = replace(fitted, fold=None, is_part=True)
    fitted = replace(fitted, sums=sums_of(effect, rows, fitted))

    def scores(some: Observations, own: Fitted) -> list[Floats]:
        loss = effect.loss(some, own)
        assert some.prediction is not None  # noqa: S101
        return [loss.mass, *(loss.derivative(some.prediction + step) for step in (-spread, 0.0, spread))]

    spread = float(np.std(rows.outcome))
    _require_same(effect, "loss", rows, fitted, scores)


def require_separable_targets(effect: Effect, rows: Observations) -> None:
    """What is to be learnt of some rows is that of the same rows among all."""

    def targets(some: Observations, own: Fitted) -> list[Floats]:
        del own
        found = {n.name: n for n in effect.nuisances(some)}
        return [np.asarray(column, dtype=np.float64) for name in names for column in _columns(found[name])]

    names = [n.name for n in effect.nuisances(rows)]
    _require_same(effect, "target of a nuisance", rows, Fitted({}, 0.0), targets)


def _columns(nuisance: Nuisance) -> Iterator[Any]:
    for column in (nuisance.target, nuisance.rows, nuisance.features):
        if column is not None:
            yield column


def _require_same(
    effect: Effect,
    what: str,
    rows: Observations,
    fitted: Fitted,
    columns: Callable[[Observations, Fitted], Sequence[Floats]],
) -> None:
    for half in _halves(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = columns(rows, fitted)
            try:
                some = columns(rows[half], _of_rows(fitted, half))
            except (
                OrthocalError,
                KeyError,
            ):  # a level is missing here, as it may be in a partition: nothing to compare
                continue
        for every, own in zip(whole, some, strict=True):
            reach = NEAR * float(np.abs(every).max(initial=0.0))
            if not np.allclose(every[half], own, rtol=NEAR, atol=reach, equal_nan=True):
                raise OrthocalError(
                    f"On Dask the {what} of some rows must not depend on the others; that of {type(effect).__name__} does, as "
                    "a mean over all rows would. Say in its `sums` what it must know of all rows, or calibrate in memory."
                )


def _halves(rows: Observations) -> list[Integers]:
    """Every second row of each level of treatment and instrument, and the others."""
    if len(rows) < FEWEST:
        return []
    labels = [rows.treatment] if rows.instrument is None else [rows.treatment, rows.instrument]
    order = np.lexsort([np.unique(one, return_inverse=True)[1] for one in labels])
    return [np.sort(order[start::2]) for start in (0, 1)]


def _of_rows(fitted: Fitted, rows: Integers) -> Fitted:
    return replace(fitted, values={name: value[rows] for name, value in fitted.values.items()})


def stand_ins(nuisances: Sequence[Nuisance], given: dict[str, Any], rows: int) -> dict[str, Any] | None:
    """Return nuisances as they might be, where those to be learnt are plain columns; None where they are not."""
    wanted = [n for n in nuisances if not set(n.names) <= set(given)]
    if any(n.wrap is not None for n in wanted):
        return None
    rng, values = np.random.default_rng(0), dict(given)
    for nuisance in wanted:
        target = nuisance.target
        guess = (
            rng.uniform(0.2, 0.8, rows) if nuisance.is_probability else rng.normal(target.mean(), target.std(), rows)
        )
        values.update(nuisance.named(guess))
    return values
