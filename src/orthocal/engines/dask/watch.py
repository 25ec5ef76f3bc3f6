"""How far Dask has come with a pass, on threads of this process or on a cluster."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Self

from orthocal.progress import nobody_watches, passing

PERIOD = 0.5
"""Seconds between looks at a cluster."""


class PassWatch:
    """Tells whoever watches how many tasks of a pass are done; rows are not known before they are read."""

    def __init__(self, partitions: int) -> None:
        self.partitions, self._done = partitions, threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        client = _client()
        if client is not None and not nobody_watches():
            tell = passing()
            self._thread = threading.Thread(target=self._look, args=(client, tell), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        passing()(self.partitions, self.partitions, 0)

    def _look(self, client: Any, tell: Any) -> None:
        """Count the tasks of the cluster that are still to be done; the share that is done is that of the partitions, about."""
        most = 0
        while not self._done.wait(PERIOD):
            with suppress(OSError, RuntimeError, TimeoutError):
                left = sum(len(tasks) for tasks in client.processing().values())
                most = max(most, left)
                if most:
                    tell(round(self.partitions * (1 - left / most)), self.partitions, 0)


def _client() -> Any:
    """The client that Dask would use, if there is one."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
