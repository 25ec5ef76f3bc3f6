"""Results that appear all together or not at all, whenever the process is killed.

Files are written to a scratch folder inside the folder of results, with a record of what they are (the journal: names and
hashes). When all is on the disk the folder is renamed, and from then on the results are those of the new run: its files are moved
to their places one by one, the record last. A process that is killed before the renaming has changed nothing; one that is killed
after it has its moves ended by the next command on the folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from orthocal.errors import OrthocalError
from orthocal.files.manifest import (
    NAME,
    Manifest,
    digest,
    files_in,
    manifest_of,
    require_free,
    require_ours,
    write_manifest,
)
from orthocal.files.scratch import PREFIX, held, sweep, uninterrupted
from orthocal.formats import shown

COMMITTED = "committed"
"""What the folder of new files is called once they are to be moved."""


@dataclass(frozen=True)
class Results:
    """Results of one command in a folder.

    Parameters
    ----------
    folder : Path
        Need not exist yet.
    command : str
        Results of another command are not replaced.
    names : tuple of str
        What will be written; a name that ends in ``/`` is a folder of files.
    inputs : tuple of Path
        Files that the command reads, which it must not replace.
    """

    folder: Path
    command: str
    names: tuple[str, ...]
    inputs: tuple[Path, ...] = ()

    def require_free(self) -> None:
        """Nothing is in the way: to be called before work begins; an earlier run that was killed is ended first."""
        with self._alone():
            pass

    @contextmanager
    def written(self) -> Iterator[Path]:
        """Give a folder to write to; its files replace those of the earlier run, if nothing fails."""
        with self._alone() as place:
            # A name of its own: workers of a run that was killed may still write to theirs.
            new = Path(tempfile.mkdtemp(dir=place))
            yield new
            found = Manifest(self.command, {name: digest(new / name) for name in files_in(new)})
            require_free(self.folder, self.command, (*self.names, *found.files), self.inputs)
            write_manifest(found, new)
            _sync_all(new)
            new.rename(place / COMMITTED)
            _sync(place)

    @contextmanager
    def _alone(self) -> Iterator[Path]:
        """Have the folder for this process, with nothing in the way, and give the scratch folder in it."""
        require_folder(self.folder)
        settle(self.folder)
        place = self.folder.resolve() / f"{PREFIX}results"
        with held(place, self.folder, _finish):
            require_free(self.folder, self.command, self.names, self.inputs)
            yield place


LONGEST_NAME, LONGEST_PATH = 200, 3000
"""Bytes of a name and of a path; systems take a little more, and files beside it have longer names."""


def require_short(path: Path) -> None:
    """The name of a place is not longer than systems take, which is said before any work."""
    if len(os.fsencode(path)) > LONGEST_PATH or any(len(os.fsencode(part)) > LONGEST_NAME for part in path.parts):
        raise OrthocalError(f"`--out` must be a shorter name; {shown(str(path))} is too long. Choose another one.")


def require_folder(folder: Path) -> None:
    """Results go into a folder, which need not exist yet."""
    require_short(folder)
    if folder.exists() and not folder.is_dir():
        raise OrthocalError(f"`--out` must name a folder; {folder} is a file.")


def settle(folder: Path) -> None:
    """End what commands that were killed began in a folder: put all of their results in place, or none."""
    sweep(folder.resolve(), _finish)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One run at a time in a folder whose results grow as they come."""
    with held(folder.resolve() / f"{PREFIX}rows", folder, _finish):
        yield


@contextmanager
def new_file(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a path to write to; the file appears under its own name if nothing fails."""
    require_new(target, overwrite=overwrite)
    path = target.resolve()  # of a link, what it points to
    key = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]
    place = path.parent / f"{PREFIX}{key}"
    with held(place, target, _finish):
        new = Path(tempfile.mkdtemp(dir=place)) / path.name
        yield new
        require_new(target, overwrite=overwrite)
        with suppress(FileNotFoundError):
            shutil.copymode(path, new)  # what was private stays so
        _sync(new)
        with uninterrupted():
            new.replace(path)
            _sync(path.parent)


def require_new(target: Path, *, overwrite: bool) -> None:
    """A file is not there yet, or may be replaced; commands that were killed in its folder are ended first."""
    require_short(target)
    settle(target.resolve().parent)
    if os.path.lexists(target) and not overwrite:
        raise OrthocalError(
            f"`--out` must name a new file; {target} exists. Choose another name, or add --overwrite to replace it."
        )
    if target.exists() and not target.is_file():
        raise OrthocalError(f"`--out` must name a file; {target} is not one. Choose another name.")


def _finish(place: Path) -> None:
    """Move files to their places, if they are to be moved; ends what was begun before, however far it came."""
    new, folder = place / COMMITTED, place.parent
    if not (new / NAME).exists():  # nothing was to be moved, or all is
        return
    pending, old = manifest_of(new), manifest_of(folder)
    moved = [name for name in pending.files if (new / name).exists()]
    stale = [name for name in old.files if name not in pending.files]
    for name in (*moved, *stale):  # whoever edited one since then keeps it
        require_ours(folder, name, old.files.get(name))
    for name in stale:
        _remove(folder / name, folder)
    for name in moved:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).replace(folder / name)
    for parent in {(folder / name).parent for name in pending.files}:
        _sync(parent)
    (new / NAME).replace(folder / NAME)
    _sync(folder)


def _remove(stale: Path, folder: Path) -> None:
    """Remove a file, and the folder inside `folder` that it leaves empty."""
    stale.unlink(missing_ok=True)
    if stale.parent != folder:
        with suppress(OSError):
            stale.parent.rmdir()


def _sync_all(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        _sync(path)


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    windows = os.name == "nt"
    if windows and path.is_dir():  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDWR if windows else os.O_RDONLY)  # Windows flushes only what may be written
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
