"""How far the learning has come, for whoever wants to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")


def _nobody(done: int, total: int) -> None:
    """Hear nothing."""


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
