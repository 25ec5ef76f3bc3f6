"""The record of what a command wrote into a folder, by which a later run knows what it may replace.

A file is ours if the record has its name and its hash is still the recorded one: edited, it is the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from orthocal.errors import OrthocalError

NAME = ".orthocal.json"
"""Where the record is, in the folder that it is of."""
FORMAT, VERSION = "orthocal-results", 1


@dataclass(frozen=True)
class Manifest:
    """Names of files, each with its hash, and the command that wrote them.

    Parameters
    ----------
    command : str
        Empty where nothing was written yet.
    files : mapping of str to str
        SHA-256 by name, relative to the folder, with ``/`` between parts.
    """

    command: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def manifest_of(folder: Path) -> Manifest:
    """Return the record of a folder, which is empty where there is none."""
    path = folder / NAME
    if not os.path.lexists(path):
        return Manifest()
    try:
        return _from_record(json.loads(path.read_text(encoding="utf-8")))
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        raise OrthocalError(
            f"{path} must be the record of results that orthocal wrote; it is not. Choose another --out, or move it away "
            "together with the results."
        ) from None


def _from_record(record: Any) -> Manifest:
    if (record["format"], record["version"]) != (FORMAT, VERSION):
        raise ValueError(record["format"])
    files = {str(name): str(value) for name, value in record["files"].items()}
    for path in map(PurePosixPath, files):
        if path.is_absolute() or ".." in path.parts or not path.parts:  # a record says nothing of what lies outside
            raise ValueError(str(path))
    return Manifest(str(record["command"]), files)


def write_manifest(found: Manifest, folder: Path) -> None:
    """Write a record into a folder."""
    record = {"format": FORMAT, "version": VERSION, **asdict(found)}
    (folder / NAME).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def files_in(folder: Path) -> list[str]:
    """Return the names of all files below a folder, its record apart."""
    names = (
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()
    )
    return sorted(name for name in names if name != NAME)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_free(folder: Path, command: str, names: Sequence[str], inputs: Sequence[Path] = ()) -> None:
    """Nothing but the command's own earlier results lies where its results go.

    Parameters
    ----------
    folder : Path
        Where results go.
    command : str
        Who writes them.
    names : sequence of str
        What is written, relative to the folder; a name that ends in ``/`` is a folder of files.
    inputs : sequence of Path
        Files that are read, which are not replaced even if they are ours.
    """
    old = manifest_of(folder)
    if old.command not in {"", command}:
        raise OrthocalError(
            f"`--out` must be a folder for the results of one command; {folder} holds the results of `{old.command}`. "
            "Choose another --out."
        )
    read = {path.resolve() for path in inputs}
    for name in sorted({*_expanded(folder, names), *old.files}):
        if (folder / name).resolve() in read:
            raise OrthocalError(
                f"The results must not replace the data; {folder / name} is the data file itself. Choose another --out."
            )
        require_ours(folder, name, old.files.get(name))


def _expanded(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield names of files; of a folder, those that lie in it and that readers of tables do not skip."""
    for name in names:
        if not name.endswith("/"):
            yield name
            continue
        _require_real_folder(folder / name.rstrip("/"))
        inside = (PurePosixPath(found) for found in files_in(folder / name))
        yield from (f"{name}{found}" for found in inside if not found.name.startswith((".", "_")))


def require_ours(folder: Path, name: str, recorded: str | None) -> None:
    """Nothing is in a place, or the file that was recorded with this hash."""
    path = folder / name
    for parent in list(path.relative_to(folder).parents)[:-1]:
        _require_real_folder(folder / parent)
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        _refuse(
            path,
            "is a symbolic link" if path.is_symlink() else "is a folder" if path.is_dir() else "is not a regular file",
        )
    if recorded is None:
        _refuse(path, "was not written by this command")
    if digest(path) != recorded:
        _refuse(path, "was changed after it was written")


def _require_real_folder(path: Path) -> None:
    if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
        _refuse(path, "is not a folder, which it must be")


def _refuse(path: Path, what: str) -> None:
    raise OrthocalError(
        f"Results replace only what the same command wrote; {path} {what}. Move it away, or choose another --out."
    )
