"""Passes over partitions: a function of each, and a merge of what they return, a few at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from orthocal.engines.dask.keys import kind_of
from orthocal.errors import OrthocalError

T = TypeVar("T")
AT_ONCE = 8
"""Summaries that are merged in one step: no worker holds more of them."""


class PartitionWarning(UserWarning):
    """A partition looks odd, though it does no harm."""


def partitions(frame: Any) -> list[Any]:
    """Return the partitions of a frame as the user counts them: Dask would read small files together."""
    import dask

    with dask.config.set({"dataframe.parquet.minimum-partition-size": 1}):
        return list(frame.to_delayed())


def each(parts: Sequence[Any], function: Callable[..., T], *shared: Any, first: int = 0) -> list[T | None]:
    """Return ``function(partition, *shared)`` of every partition, in order; None of an empty one."""
    import dask

    return [heard.answer for heard in _checked(dask.compute(*_tasks(parts, function, shared, first)))]


def reduced(parts: Sequence[Any], function: Callable[..., T | None], merge: Callable[[T, T], T], *shared: Any) -> T:
    """Return the answers of all partitions merged, in order, in steps of a few."""
    import dask

    tasks = _tasks(parts, function, shared, 0)
    while len(tasks) > 1:
        tasks = [dask.delayed(_merged)(merge, tasks[k : k + AT_ONCE]) for k in range(0, len(tasks), AT_ONCE)]
    (heard,) = _checked(dask.compute(*tasks))
    if heard.answer is None:
        raise OrthocalError("The data must have rows that count; every partition is empty, or of weight 0.")
    return heard.answer  # type: ignore[no-any-return]


def _tasks(parts: Sequence[Any], function: Callable[..., Any], shared: Sequence[Any], first: int) -> list[Any]:
    import dask

    told = [dask.delayed(one, pure=False, traverse=False) for one in shared]
    return [dask.delayed(_named)(function, part, number, *told) for number, part in enumerate(parts, first)]


class Heard(NamedTuple):
    """What partitions answer: an answer, oddities in words, or what is wrong.

    A failure is an answer like any other, so that no task is tried again in vain. `kinds` has, for each column of labels and
    each kind of value in it, a partition that has it.
    """

    answer: Any = None
    odd: tuple[str, ...] = ()
    failed: str | None = None
    kinds: tuple[tuple[str, str, int], ...] = ()


def _named(function: Callable[..., Any], part: Any, number: int, *shared: Any) -> Heard:
    """Ask a partition. What is wrong with it, or odd, is said with its number."""
    part = _that_count(part, shared)
    if len(part) == 0:
        return Heard(odd=(f"Partition {number} is empty; it adds nothing.",))
    kinds = _kinds(part, number, shared)
    try:
        return Heard(function(part, *shared), _oddities(part, number, shared), None, kinds)
    except OrthocalError as error:
        return Heard(failed=f"Partition {number}: {error}", kinds=kinds)


def _that_count(part: Any, shared: Sequence[Any]) -> Any:
    """Return nothing of a partition whose weights are all 0."""
    roles = getattr(shared[0], "roles", shared[0]) if shared else None
    name = getattr(roles, "sample_weight", None)
    return part if name is None or name not in part or (part[name] != 0).any() else part.iloc[:0]


def _oddities(part: Any, number: int, shared: Sequence[Any]) -> tuple[str, ...]:
    """Say where all rows of a partition have one treatment level: rows are sorted by it, or some are missing."""
    roles = getattr(shared[0], "roles", None) if shared else None
    name = getattr(roles, "treatment", None)
    if name not in part or len(part) < 2:
        return ()
    (first,) = part[name].iloc[:1].tolist()
    if not (part[name] == first).all():
        return ()
    return (f"Partition {number} has one treatment level only, {first!r}. Check that none of its rows are missing.",)


def _kinds(part: Any, number: int, shared: Sequence[Any]) -> tuple[tuple[str, str, int], ...]:
    """What kind of value each column holds whose values are compared with those of other partitions."""
    roles = getattr(shared[0], "roles", shared[0]) if shared else None
    if isinstance(roles, tuple):  # names alone
        names = roles
    else:
        names = tuple(getattr(roles, role, None) for role in ("treatment", "instrument", "groups", "key"))
    found = {name: kind_of(part[name]) for name in names if name is not None and name in part}
    return tuple((name, kind, number) for name, kind in found.items() if kind is not None)


def _first_kinds(heard: Sequence[Heard]) -> tuple[tuple[str, str, int], ...]:
    first: dict[tuple[str, str], int] = {}
    for name, kind, number in (one for answer in heard for one in answer.kinds):
        first.setdefault((name, kind), number)
    return tuple((name, kind, number) for (name, kind), number in first.items())


def _require_one_kind(heard: Sequence[Heard]) -> None:
    """A column holds the same kind of value in every partition: numbers and text with the same digits are not the same."""
    first: dict[str, tuple[str, int]] = {}
    for name, kind, number in _first_kinds(heard):
        other, where = first.setdefault(name, (kind, number))
        if kind != other:
            raise OrthocalError(
                f"Column {name!r} must hold the same kind of value in every partition; partition {where} has {other}, "
                f"partition {number} {kind}. Convert it to one of them first."
            )


def _merged(merge: Callable[[Any, Any], Any], heard: Sequence[Heard]) -> Heard:
    failed = [one.failed for one in heard if one.failed is not None]
    some = [one.answer for one in heard if one.answer is not None]
    return Heard(
        reduce(merge, some) if some and not failed else None,
        tuple(words for one in heard for words in one.odd),
        failed[0] if failed else None,
        _first_kinds(heard),
    )


def _checked(heard: Sequence[Heard]) -> Sequence[Heard]:
    _require_one_kind(heard)
    for one in heard:
        if one.failed is not None:
            raise OrthocalError(one.failed)
    for words in dict.fromkeys(words for one in heard for words in one.odd):
        warnings.warn(words, PartitionWarning, stacklevel=6)
    return heard
