"""A hidden folder that one process works in; one that a killed process left is known by its lock, which is free.

A lock goes with the process that holds it, however it ends. The file that is locked lies in the hidden folder and goes with
it, so whoever has taken a lock looks whether that file is still the one in its place.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from pathlib import Path


def _module(name: str) -> Any:
    """Return a module that only some systems have; None on the others."""
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, msvcrt = _module("fcntl"), _module("msvcrt")
"""What locks files: the one on POSIX, the other on Windows."""

PREFIX, LOCK = ".unfinished-orthocal-", "lock"
ATTEMPTS, PAUSE = 50, 0.01
"""How often a folder is tried, seconds apart: others may sweep it while it is being taken, which they do in no time."""
REFUSED = {errno.EACCES, errno.ENOTDIR, errno.EPERM, errno.EROFS}
"""What the system says where nothing can be written."""
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def held(place: Path, what: Path, finish: Callable[[Path], None]) -> Iterator[None]:
    """Have a scratch folder for this process alone; it goes afterwards, with folders made for it that stayed empty.

    Parameters
    ----------
    place : Path
        The scratch folder.
    what : Path
        What is written, for the sentence that refuses.
    finish : callable
        Brings what was begun in a scratch folder to its end, first of all what a killed process began.
    """
    made = [path for path in place.parents if not path.exists()]
    handle = None
    try:
        with uninterrupted():
            handle = _taken(place, what)
            _cleared(place, finish)
        yield
    finally:
        with uninterrupted():
            try:
                if handle is not None:
                    _left(place, handle, finish)
            finally:
                for path in made:
                    with suppress(OSError):  # it holds something now, or was never made
                        path.rmdir()


def sweep(folder: Path, finish: Callable[[Path], None]) -> None:
    """Bring to its end what killed processes began in a folder; what a living process works in is left alone."""
    for place in sorted(folder.glob(f"{PREFIX}*")):
        handle = _abandoned(place)
        if handle is not None:
            with uninterrupted():
                _left(place, handle, finish)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back signals that would stop the process, until a step that must not stop in its middle is done."""
    if threading.current_thread() is not threading.main_thread():  # signals stop the main thread only
        yield
        return
    came: list[int] = []
    before: dict[int, Any] = {number: signal.signal(number, lambda n, _: came.append(n)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


def _taken(place: Path, what: Path) -> int:
    """Take a scratch folder, made if need be, and return the handle of its lock."""
    mine: bool | None = True
    for _ in range(ATTEMPTS):
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            new = _make(place)
            handle = os.open(place / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except (FileExistsError, FileNotFoundError):  # most likely swept by another process in between
            continue
        except OSError as error:
            if error.errno not in REFUSED:
                raise
            raise OrthocalError(
                f"`--out` must lie where files can be written; {what}: {error.strerror}. Choose another --out."
            ) from None
        mine = _lock(handle)
        if (mine is None and new) or (mine and _is_at(place / LOCK, handle)):
            return handle
        os.close(handle)
        time.sleep(PAUSE)
    raise OrthocalError(_why_not(mine, place, what))


def _why_not(mine: bool | None, place: Path, what: Path) -> str:
    """Say why a scratch folder could not be taken."""
    if mine:
        return f"`--out` must lie where files can be written; {what} cannot be made. Choose another --out."
    if mine is None:
        return f"Another run is writing {what}, or was killed, which this file system cannot tell. If none is, delete {place}."
    return f"Another run is writing {what}. Wait for it, or choose another --out."


def _make(place: Path) -> bool:
    """Make a folder; False if it was there."""
    try:
        place.mkdir()
    except FileExistsError:
        if place.is_symlink() or not place.is_dir():
            raise
        return False
    return True


def _abandoned(place: Path) -> int | None:
    """Return the handle of the lock of a folder that a killed process left; None if it is not such a folder."""
    if place.is_symlink():
        return None
    try:
        handle = os.open(place / LOCK, os.O_RDWR)
    except OSError:
        with suppress(OSError):  # killed before it had a lock, when the folder was empty; anything else stays
            place.rmdir()
        return None
    if _lock(handle) and _is_at(place / LOCK, handle):
        return handle
    os.close(handle)
    return None


def _lock(handle: int) -> bool | None:
    """Lock a file; False if another process has it, None if there are no locks here."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            return None
    except (BlockingIOError, PermissionError):  # the second on Windows
        return False
    except OSError:
        return None
    return True


def _is_at(path: Path, handle: int) -> bool:
    """Whether the open file is the one of that name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _cleared(place: Path, finish: Callable[[Path], None]) -> None:
    """End what was begun and remove all but the lock."""
    finish(place)
    for child in place.iterdir():
        if child.name != LOCK:
            shutil.rmtree(child, ignore_errors=True)


def _left(place: Path, handle: int, finish: Callable[[Path], None]) -> None:
    """End what was begun, remove the folder and let it go; what cannot be ended or removed is left to the next run."""
    try:
        _cleared(place, finish)
        last = [child.name for child in place.iterdir()] == [LOCK]
        if last and fcntl is not None:  # before it is let go: afterwards it may be another process's
            (place / LOCK).unlink()
    finally:
        os.close(handle)
    with suppress(OSError):  # another process has just taken it
        if last and fcntl is None:  # such systems remove no file that is open
            (place / LOCK).unlink()
        place.rmdir()
