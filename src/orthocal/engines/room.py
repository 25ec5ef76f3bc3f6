"""Memory: how much there is, what of it is taken, and that arrays which are freed serve again."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from threading import Lock

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""What glibc calls these in mallopt(3)."""


def memory() -> int:
    """Return the bytes of memory that this process may use: of the machine, or of the container it runs in."""
    known = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})  # not on Windows
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else 2**33
    limit = Path("/sys/fs/cgroup/memory.max")
    try:
        return min(whole, int(limit.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # no container, or no limit
        return whole


class Room:
    """Bytes that threads may take, while there are any."""

    def __init__(self, size: float) -> None:
        self.left, self.lock = size, Lock()

    def take(self, size: int) -> bool:
        """Return whether there was room for so many, which then is taken."""
        with self.lock:
            if size > self.left:
                return False
            self.left -= size
            return True


@cache
def reuse_freed_arrays(largest: int, most: int) -> None:
    """Have the C library keep freed arrays of so many bytes for the next ones, and so many bytes in all; once in a process.

    Else it may give each of them back at once, and the system has to provide and clear every page of every new array: up to half
    of the time of a pass. Other C libraries than glibc are left alone.
    """
    _call("mallopt", MMAP_THRESHOLD, largest)
    _call("mallopt", TRIM_THRESHOLD, most)


def give_back_freed_arrays() -> None:
    """Have the C library give freed memory back to the system, wherever it lies: many small arrays leave it in pieces."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Call a function of glibc, where that is the C library."""
    function = getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None
    if function is not None:
        function(*arguments)
