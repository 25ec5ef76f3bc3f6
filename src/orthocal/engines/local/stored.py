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


def stored(value: Any, path: Path, room: Room) -> Stored | Kept:
    """Keep an object in memory while there is room for its arrays; else write it."""
    rest, arrays = _taken_apart(value)
    return Kept(value) if room.take(sum(one.nbytes for one in arrays)) else _written(rest, arrays, path)


def written(value: Any, path: Path) -> Stored:
    """Write an object."""
    return _written(*_taken_apart(value), path)


def _taken_apart(value: Any) -> tuple[bytes, list[memoryview]]:
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return rest, [array.raw() for array in arrays]


def _written(rest: bytes, arrays: list[memoryview], path: Path) -> Stored:
    with path.open("wb") as file:
        for one in arrays:
            file.write(one)
    return Stored(path, rest, tuple(one.nbytes for one in arrays))
