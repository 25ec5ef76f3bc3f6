"""A range of rows that a worker keeps in a file: its memory is for work, and what it keeps there it would write to disk."""

from __future__ import annotations

import os
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from orthocal.engines.local.stored import written


class KeptRange:
    """A range in a file of the worker that made it; sent to another worker, it is written there."""

    def __init__(self, piece: Any) -> None:
        handle, path = tempfile.mkstemp(prefix="orthocal-range-", dir=_folder())
        os.close(handle)
        weakref.finalize(self, _remove, path)
        self._stored = written(piece, Path(path))

    def read(self) -> Any:
        """Return the range; its arrays are pages of the file."""
        return self._stored.read()

    def __sizeof__(self) -> int:
        """The bytes that would have to be sent, by which Dask decides where it is asked."""
        return sum(self._stored.sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptRange, (self.read(),)


def _folder() -> str | None:
    """Return the folder of the worker, which is removed with it; None, for the usual one, where no worker is at work.

    A range that arrives is written outside of any task, where the worker is not known: then that of the last task counts.
    """
    from distributed import get_worker

    with suppress(ValueError):
        _last[:] = [str(get_worker().local_directory)]
    return _last[0] if _last and Path(_last[0]).is_dir() else None


_last: list[str] = []
"""The folder of the worker that this process was seen to be."""


def _remove(path: str) -> None:
    with suppress(OSError):  # already gone with the worker's folder, or still in use where files in use stay
        Path(path).unlink()
