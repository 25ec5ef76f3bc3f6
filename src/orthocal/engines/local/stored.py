"""Objects made of arrays, kept on disk: their arrays are read where they are used, and never copied."""

from __future__ import annotations

import mmap
import pickle
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from orthocal.engines.room import Room


class Kept(NamedTuple):
    """An object that stays in memory."""

    value: Any

    def read(self) -> Any:
        """Return the object."""
        return self.value


def stored(value: Any, path: Path, room: Room) -> Stored | Kept:
    """Keep an object in memory while there is room for its arrays; else write it."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    raw = [array.raw() for array in arrays]
    if room.take(sum(one.nbytes for one in raw)):
        return Kept(value)
    with path.open("wb") as file:
        for one in raw:
            file.write(one)
    return Stored(path, rest, tuple(one.nbytes for one in raw))


class Stored(NamedTuple):
    """An object whose arrays lie in a file, one after the other; what is left of it is small, and stays in memory."""

    path: Path
    rest: bytes
    sizes: tuple[int, ...]

    def read(self) -> Any:
        """Return the object; its arrays are pages of the file, of which a change makes a copy."""
        if not sum(self.sizes):
            return pickle.loads(self.rest, buffers=[bytearray() for _ in self.sizes])  # noqa: S301  # written by this process
        with self.path.open("rb") as file:
            pages = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        ends = list(accumulate(self.sizes))
        buffers = [pages[end - size : end] for end, size in zip(ends, self.sizes, strict=True)]
        return pickle.loads(self.rest, buffers=buffers)  # noqa: S301  # written by this process
