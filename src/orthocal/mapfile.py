"""Keep a map as JSON: readable by people and by other programs, never executed."""

from __future__ import annotations

import json
import os
import reprlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import numpy as np

from orthocal.errors import OrthocalError, require_mapping, require_one_of, require_path
from orthocal.formats import first_words, listed, shown
from orthocal.group_columns import DERIVED_GROUPS, GROUP_PARTS
from orthocal.group_maps import GROUP_MAPS, GROUP_SHIFTS, GroupMap
from orthocal.joint_maps import JOINT_MAPS, SHIFTS, JointMap
from orthocal.maps import MAPS, Map

SHAPES: dict[str, type[Any]] = {**MAPS, **JOINT_MAPS, **GROUP_MAPS}
HELD: dict[str, dict[str, type[Any]]] = {
    "maps": MAPS,
    "shifts": SHIFTS,
    "group shifts": GROUP_SHIFTS,
    "derived groups": DERIVED_GROUPS,
    "group parts": GROUP_PARTS,
}
"""Shapes that a file can have, and that a field can hold, by what it is marked with."""

FORMAT, VERSION = "orthocal-map", 1
ABOUT = "about"
HEADER = ("format", "version", ABOUT, "shape")


def save(map: Any, path: str | os.PathLike[str], *, about: Mapping[str, Any] | None = None) -> None:  # noqa: A002
    """Write a map to a JSON file.

    Parameters
    ----------
    map : Map, or a fitted calibrator or CausalCalibrator
        What to keep; of a calibrator, its ``map_``.
    path : path of the file
        Written under a temporary name and renamed, so that no half-written file is left behind.
    about : mapping, optional
        What it is a map of, kept in the file beside it and read by `about`: plain values by name.

    Examples
    --------
    >>> import orthocal, tempfile, pathlib
    >>> from orthocal.maps import AffineMap
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "map.json"
    >>> orthocal.save(AffineMap(1.0, 2.0), path)
    >>> orthocal.load(path).predict([0.0, 1.0])
    array([1., 3.])
    """
    require_path(path, "path")
    write_text(Path(path), to_json(map, about))


def load(path: str | os.PathLike[str]) -> Map | JointMap | GroupMap:
    """Read a map back from a JSON file, checking every field.

    Examples
    --------
    >>> import orthocal, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "map.json"
    >>> orthocal.save(orthocal.maps.IdentityMap(), path)
    >>> orthocal.load(path)
    IdentityMap()
    """
    return from_record(_record(path))


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a map file says of its map: nothing, where it was saved without."""
    record = _record(path)
    from_record(record)
    return dict(record.get(ABOUT, {}))


def _record(path: str | os.PathLike[str]) -> Any:
    require_path(path, "path")
    file = Path(path)
    try:
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise OrthocalError(f"The map file {file} must be readable; {error.strerror}. Check the path.") from None
    except RecursionError:
        raise OrthocalError(f"The map file {file} must hold a map; it nests too deeply. Save the map again.") from None
    except ValueError as error:  # not JSON, not text, not finite, or thousands of digits long
        raise OrthocalError(f"The map file {file} must hold JSON; {first_words(error)} Save the map again.") from None


def to_json(map: Any, about: Mapping[str, Any] | None = None) -> str:  # noqa: A002
    """Return the text of a map file."""
    require_mapping(about, "about", "plain values")
    record = to_record(getattr(map, "map_", map), about)
    try:
        return json.dumps(record, indent=1, allow_nan=False) + "\n"
    except (RecursionError, TypeError, ValueError) as error:
        raise OrthocalError(f"`{ABOUT}` must hold plain values that JSON has; {first_words(error)}") from None


def to_record(map: Map | JointMap | GroupMap, about: Mapping[str, Any] | None = None) -> dict[str, Any]:  # noqa: A002
    """Return a map as a plain dict."""
    return {"format": FORMAT, "version": VERSION, **({ABOUT: dict(about)} if about else {}), **_shaped(map)}


def from_record(record: Any) -> Map | JointMap | GroupMap:
    """Return the map a plain dict describes."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise OrthocalError(f"A map file must say format '{FORMAT}'; this one does not. Is it the right file?")
    version = record.get("version")
    if type(version) is not int or version != VERSION:  # True == 1
        raise OrthocalError(
            f"A map file must have version {VERSION}; this one has {shown(version)}. Use the orthocal that saved it."
        )
    if not isinstance(record.get(ABOUT, {}), dict):
        raise OrthocalError(f"`{ABOUT}` of a map file must be a mapping; it is {reprlib.repr(record[ABOUT])}.")
    return cast("Map | JointMap | GroupMap", _of_shape(record, HEADER, SHAPES))


def _shaped(map: Any) -> dict[str, Any]:  # noqa: A002
    """Return shape and fields of a map, and of what it holds."""
    known = [SHAPES, *HELD.values()]
    shapes = {shape: name for shapes in known for name, shape in shapes.items()}
    if type(map) not in shapes:
        raise OrthocalError(
            f"`map` must be a fitted map; it is a {type(map).__name__}. Fit a calibrator and pass its map_."
        )
    learnt = {}
    for field in fields(cast("Any", map)):
        value = getattr(map, field.name)
        learnt[field.name] = (
            [_shaped(one) for one in value] if "holds" in field.metadata else np.asarray(value).tolist()
        )
    return {"shape": shapes[type(map)], **learnt}


def _of_shape(record: dict[str, Any], header: Sequence[str], known: Mapping[str, type[Any]]) -> Any:
    """Return the map of a record whose shape says what fields it has."""
    require_one_of(record.get("shape"), list(known), "shape")
    shape = known[record["shape"]]
    _require_keys(record, [field.name for field in fields(shape)], header)
    learnt = {}
    for field in fields(shape):
        value = record[field.name]
        if "holds" in field.metadata:
            _require_records(value, field.name)
            value = [_of_shape(one, HEADER[-1:], HELD[field.metadata["holds"]]) for one in value]
        else:
            require = _require_labels if field.metadata.get("kind") else _require_numbers
            require(value, field.name, field.metadata.get("depth", 1))
        learnt[field.name] = value
    try:
        return shape(**learnt)
    except (TypeError, ValueError, OverflowError) as error:
        raise OrthocalError(
            f"The map file does not hold a valid map: {first_words(error)} Save the map again."
        ) from None


def _require_records(value: Any, name: str) -> None:
    if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        raise OrthocalError(
            f"`{name}` of a map file must hold maps; it holds {reprlib.repr(value)}. Save the map again."
        )


def _require_keys(record: dict[str, Any], names: list[str], header: Sequence[str]) -> None:
    """A map file has what its shape needs, and nothing else: a key that is not understood may matter."""
    missing = [name for name in names if name not in record]
    if missing:
        raise OrthocalError(f"A map file must have `{missing[0]}`; it is missing. Save the map again.")
    unknown = [key for key in record if key not in {*header, *names}]
    if unknown:
        raise OrthocalError(
            f"A map file of shape {shown(record['shape'])} must have {listed((*header, *names))} only; this one has "
            f"{reprlib.repr(unknown[0])} too. Remove it, or use the orthocal that saved it."
        )


def _require_numbers(value: Any, name: str, depth: int) -> None:
    """A number or a list of them, of a matrix a list of lists: numpy would also take text and booleans for numbers."""
    for number in value if isinstance(value, list) else [value]:
        if depth > 1 and isinstance(number, list):
            _require_numbers(number, name, depth - 1)
        elif isinstance(number, bool) or not isinstance(number, int | float):
            raise OrthocalError(
                f"`{name}` of a map file must hold numbers; it holds {reprlib.repr(number)}. Save the map again."
            )


def _require_labels(value: Any, name: str, depth: int) -> None:
    """Text, booleans or finite numbers, which are only compared."""
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, str | bool):
            _require_numbers(one, name, depth)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    if not path.parent.is_dir():
        raise OrthocalError(f"The folder {path.parent} must exist; it does not. Create it first.")
    if path.is_dir():
        raise OrthocalError(f"`path` must name a file; {path} is a folder. Add the name of a file.")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        # A lone surrogate, as in a name that is no UTF-8, is written as its number.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the mask of permissions a new file gets; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it has {name}, which is not a finite number")
