"""How far the learning, or a pass over partitions, has come, for whoever wants to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")


def _nobody(done: int, total: int) -> None:
    """Receive nothing."""


_listener: ContextVar[Callable[[int, int], None]] = ContextVar("listener", default=_nobody)


@contextmanager
def listening(listener: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``listener(done, total)`` before the first learner fit of each cross-fit inside this context and after every one."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def followed(items: Iterable[Item], total: int) -> Iterator[Item]:
    """Pass items on, telling the listener how many have passed."""
    _listener.get()(0, total)
    for done, item in enumerate(items, 1):
        _listener.get()(done, total)
        yield item


Passing = Callable[[int, int, int], None]


def _unseen(done: int, partitions: int, rows: int) -> None:
    """Receive nothing."""


_passing: ContextVar[Passing] = ContextVar("passing", default=_unseen)


@contextmanager
def watching(listener: Passing) -> Iterator[None]:
    """Call ``listener(partitions done, partitions in all, rows done)`` as passes over partitions go on inside this context."""
    token = _passing.set(listener)
    try:
        yield
    finally:
        _passing.reset(token)


def nobody_watches() -> bool:
    """Return whether there is no need to look how far a pass has come."""
    return _passing.get() is _unseen


def passing() -> Passing:
    """Return whoever watches passes over partitions."""
    return _passing.get()
