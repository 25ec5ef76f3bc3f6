"""Losses as columns, so that their rows can be moved and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from orthocal.distributions import TableLaw
from orthocal.losses.protocol import Loss

L = TypeVar("L", bound="Loss")
LAW = "law "
"""How columns of a conditional distribution begin: one for each level of its table."""


def columns_of(loss: Any) -> dict[str, Any]:
    """Return the arrays of a loss that have one entry per row; weights that are the masses are not repeated."""
    found = {field.name: getattr(loss, field.name) for field in fields(loss)}
    kept = {name: value for name, value in found.items() if isinstance(value, np.ndarray) and len(value) == len(loss)}
    if "weight" in kept and kept["weight"] is kept.get("denominator"):
        del kept["weight"]
    law: Any = getattr(loss, "law", None)
    if hasattr(law, "tabulated"):
        kept |= {f"{LAW}{j}": column for j, column in enumerate(law.tabulated().table.T)}
    return kept


def of_columns(like: L, columns: Mapping[str, Any]) -> L:
    """Return a loss of the same kind with these columns; without columns of a conditional distribution it stays at its level."""
    own = {name: column for name, column in columns.items() if not name.startswith(LAW)}
    weight = own.get("weight", own.get("denominator"))
    left: dict[str, Any] = {"groups": None, "overlap": None} | (
        {"law": _law(like, columns)} if hasattr(like, "law") else {}
    )
    return replace(like, **{**left, **own, "weight": weight})  # type: ignore[type-var]


def _law(like: Any, columns: Mapping[str, Any]) -> TableLaw | None:
    table = [column for name, column in columns.items() if name.startswith(LAW)]
    return TableLaw(like.law.tabulated().levels, np.column_stack(table)) if table else None


def joined(losses: Sequence[L]) -> L:
    """Return the loss of all rows of several of one kind."""
    parts = [columns_of(loss) for loss in losses]
    return of_columns(losses[0], {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
