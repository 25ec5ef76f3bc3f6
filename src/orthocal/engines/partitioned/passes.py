"""Passes over partitions: a function of each, and a merge of what they return, a few at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

from orthocal.engines.partitioned.keys import kind_of
from orthocal.engines.protocol import PartitionedTable
from orthocal.errors import OrthocalError

T = TypeVar("T")
FIRST = 100
"""Rows that are looked at first: mostly they say it already."""


class PartitionWarning(UserWarning):
    """A partition looks odd, though it does no harm."""


def each(
    table: PartitionedTable, function: Callable[..., T], *shared: Any, parts: Sequence[int] | None = None
) -> list[T | None]:
    """Return ``function(partition, *shared)`` of every partition, or of some, in order; None of an empty one."""
    return [reply.answer for reply in _checked(table.answers(named, function, *shared, parts=parts))]


def reduced(table: PartitionedTable, function: Callable[..., T | None], merge: Callable[[T, T], T], *shared: Any) -> T:
    """Return the answers of all partitions merged, in order, in steps of a few."""
    return _the_answer(table.merged(named, partial(_merged, merge), function, *shared))  # type: ignore[no-any-return]


def reduced_notes(notes: Sequence[Reply], merge: Callable[[T, T], T]) -> T:
    """Return the notes that partitions made when their rows were moved, merged as answers are."""
    return _the_answer(_merged(merge, notes))  # type: ignore[no-any-return]


def _the_answer(reply: Reply) -> Any:
    _checked([reply])
    if reply.answer is None:
        raise OrthocalError("The data must have rows of positive weight; every partition is empty, or of weight 0.")
    return reply.answer


class Reply(NamedTuple):
    """What partitions answer: an answer, oddities in words, or what is wrong.

    A failure is an answer like any other, so that no task is tried again in vain. `kinds` has, for each column of labels and
    each kind of value in it, a partition that has it.
    """

    answer: Any = None
    odd: tuple[str, ...] = ()
    failed: str | None = None
    kinds: tuple[tuple[str, str, str], ...] = ()


def named(part: Any, name: str, function: Callable[..., Any], *shared: Any) -> Reply:
    """Ask a partition. What is wrong with it, or odd, is said with its name."""
    part = _that_count(part, shared)
    if len(part) == 0:
        return Reply(odd=(f"{name} is empty; it adds nothing.",))
    kinds = _kinds(part, name, shared)
    try:
        return Reply(function(part, *shared), _oddities(part, name, shared), None, kinds)
    except OrthocalError as error:
        return Reply(failed=f"{name}: {error}", kinds=kinds)


def _that_count(part: Any, shared: Sequence[Any]) -> Any:
    """Return nothing of a partition whose weights are all 0; what is no number is refused later."""
    roles = getattr(shared[0], "roles", shared[0]) if shared else None
    name = getattr(roles, "sample_weight", None)
    if name is None or name not in part or part[name].dtype == object or (part[name] != 0).any():
        return part
    return part.iloc[:0]


def _oddities(part: Any, name: str, shared: Sequence[Any]) -> tuple[str, ...]:
    """Say where all rows of a partition have one treatment value: rows are sorted by it, or some are missing."""
    roles = getattr(shared[0], "roles", None) if shared else None
    treatment = getattr(roles, "treatment", None)
    if treatment not in part or len(part) < 2:
        return ()
    (first,) = part[treatment].iloc[:1].tolist()
    if any(not (some == first).all() for some in (part[treatment].iloc[:FIRST], part[treatment])):
        return ()
    return (f"{name} has one treatment value only, {first!r}. Check that none of its rows are missing.",)


def _kinds(part: Any, name: str, shared: Sequence[Any]) -> tuple[tuple[str, str, str], ...]:
    """What kind of value each column holds whose values are compared with those of other partitions."""
    roles = getattr(shared[0], "roles", shared[0]) if shared else None
    if isinstance(roles, tuple):  # names alone
        names = roles
    else:
        names = tuple(getattr(roles, role, None) for role in ("treatment", "instrument", "groups", "key"))
    found = {column: kind_of(part[column]) for column in names if column is not None and column in part}
    return tuple((column, kind, name) for column, kind in found.items() if kind is not None)


def _first_kinds(replies: Sequence[Reply]) -> tuple[tuple[str, str, str], ...]:
    first: dict[tuple[str, str], str] = {}
    for column, kind, name in (one for answer in replies for one in answer.kinds):
        first.setdefault((column, kind), name)
    return tuple((column, kind, name) for (column, kind), name in first.items())


def _require_one_kind(replies: Sequence[Reply]) -> None:
    """A column holds the same kind of value in every partition: numbers and text with the same digits are not the same."""
    first: dict[str, tuple[str, str]] = {}
    for column, kind, name in _first_kinds(replies):
        other, where = first.setdefault(column, (kind, name))
        if kind != other:
            raise OrthocalError(
                f"Column {column!r} must hold the same kind of value in every partition; {_lower(where)} has {other}, "
                f"{_lower(name)} {kind}. Convert it to one of them first."
            )


def _lower(name: str) -> str:
    """Return the name of a partition as it stands inside a sentence."""
    return name[:1].lower() + name[1:]


def _merged(merge: Callable[[Any, Any], Any], replies: Sequence[Reply]) -> Reply:
    failed = [one.failed for one in replies if one.failed is not None]
    some = [one.answer for one in replies if one.answer is not None]
    return Reply(
        reduce(merge, some) if some and not failed else None,
        tuple(words for one in replies for words in one.odd),
        failed[0] if failed else None,
        _first_kinds(replies),
    )


def _checked(replies: Sequence[Reply]) -> Sequence[Reply]:
    _require_one_kind(replies)
    for one in replies:
        if one.failed is not None:
            raise OrthocalError(one.failed)
    for words in dict.fromkeys(words for one in replies for words in one.odd):
        warnings.warn(words, PartitionWarning, stacklevel=6)
    return replies
