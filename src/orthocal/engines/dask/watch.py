"""How far Dask has come with a pass, on threads of this process or on a cluster: partitions and rows done."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Self

from orthocal.progress import nobody_watches, passing

PERIOD = 0.5
"""Seconds between looks."""
MOST_PASSES = 64
"""Passes that a process remembers."""
_done: dict[str, tuple[int, int]] = {}
_lock = threading.Lock()


class PassWatch:
    """Tells whoever watches how many partitions and rows of a pass are done; each process counts its own, and is asked."""

    def __init__(self, partitions: int) -> None:
        self.partitions, self.name = partitions, uuid.uuid4().hex
        self._ended, self._most = threading.Event(), (0, 0)
        self._thread: threading.Thread | None = None

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of a partition, which counts if somebody watches."""
        return function if nobody_watches() else partial(counted, self.name, function)

    def __enter__(self) -> Self:
        if not nobody_watches():
            self._thread = threading.Thread(target=self._look, args=(_client(), passing()), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            passing()(self.partitions, self.partitions, self._most[1])

    def _look(self, client: Any, tell: Any) -> None:
        """Ask for the counts until the pass has ended, and once more then; what a lost worker had counted stays counted."""
        has_ended = False
        while not has_ended:
            has_ended = self._ended.wait(PERIOD)
            with suppress(OSError, RuntimeError, TimeoutError):
                answers = [done_here(self.name)] if client is None else client.run(done_here, self.name).values()
                parts, rows = (sum(one) for one in zip(*answers, strict=True))
                self._most = (max(self._most[0], parts), max(self._most[1], rows))
            if not has_ended:
                tell(min(self._most[0], self.partitions), self.partitions, self._most[1])


def counted(pass_name: str, function: Callable[..., Any], part: Any, *more: Any) -> Any:
    """Return what a function finds in a partition, and count it with its rows where that was done."""
    found = function(part, *more)
    with _lock:
        parts, rows = _done.get(pass_name, (0, 0))
        _done[pass_name] = (parts + 1, rows + len(part))
        while len(_done) > MOST_PASSES:
            del _done[next(iter(_done))]
    return found


def done_here(pass_name: str) -> tuple[int, int]:
    """Return how many partitions and rows of a pass were done in this process."""
    return _done.get(pass_name, (0, 0))


def _client() -> Any:
    """The client that Dask would use, if there is one."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
