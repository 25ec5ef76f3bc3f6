"""Objects made of arrays, kept on disk: their arrays are read where they are used, and never copied."""

from __future__ import annotations

import mmap
import pickle
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Stored(NamedTuple):
    """An object whose arrays lie in a file, one after the other; what is left of it is small, and stays in memory."""

    path: Path
    rest: bytes
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, value: Any, path: Path) -> Stored:
        """Write an object."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        sizes = []
        with path.open("wb") as file:
            for array in arrays:
                with array.raw() as raw:
                    sizes.append(raw.nbytes)
                    file.write(raw)
        return cls(path, rest, tuple(sizes))

    def read(self) -> Any:
        """Return the object; its arrays are pages of the file, of which a change makes a copy."""
        if not sum(self.sizes):
            return pickle.loads(self.rest, buffers=[bytearray() for _ in self.sizes])  # noqa: S301  # written by this process
        with self.path.open("rb") as file:
            pages = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        ends = list(accumulate(self.sizes))
        buffers = [pages[end - size : end] for end, size in zip(ends, self.sizes, strict=True)]
        return pickle.loads(self.rest, buffers=buffers)  # noqa: S301  # written by this process
