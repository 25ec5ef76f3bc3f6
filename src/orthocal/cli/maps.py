"""Commands that use a map: apply it to a table, export it to another language."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from orthocal.assessment.effect_band import EffectBand
from orthocal.cli.map_options import ApplyOptions, ExportOptions
from orthocal.cli.screen import counting_rows, say
from orthocal.errors import OrthocalError, is_number, require_one_of
from orthocal.export import EXPORTS
from orthocal.files.applied import ANYWHERE, Applied
from orthocal.files.atomic import new_file, require_new, require_short, settle
from orthocal.files.streams import STANDARD, add_calibrated
from orthocal.formats import between, listed, shown
from orthocal.joint_maps import JointMap
from orthocal.mapfile import about, load
from orthocal.maps import Map
from orthocal.study.recommendation import USE_CALIBRATED

BAND = "band"
"""What a map file says of its map's band stands under this name."""


def apply(options: ApplyOptions) -> None:
    """Add a column of calibrated predictions to a table."""
    data, out = options.data, options.out
    fitted, known = _loaded(options.map_file), about(options.map_file)
    names = _columns(fitted, options.prediction, known)
    band = _band(known) if options.interval else None
    if out != STANDARD:
        _require_new(out, {"data": data, "map": options.map_file}, options.overwrite)
    ends = _ranges(known, len(names))
    with counting_rows(None) as tell:
        added = add_calibrated(
            fitted,
            data,
            out,
            names,
            tell,
            ends=ends,
            band=band,
            overwrite=options.overwrite,
            encoding=options.encoding,
        )
    _say_recommendation(known)
    new = Applied(fitted, ends, band).new_columns(names)
    say(f"Wrote {out}: {added.rows:,} rows, {'column' if len(new) == 1 else 'columns'} {', '.join(new)}.")
    if band is not None:
        say(f"The intervals ({100 * band.level:g}%, over all predictions at once) are {band.meaning}.")
    if added.missing:
        say(f"{added.missing:,} rows lack {' or '.join(names)}, and have no calibrated prediction.")
    if added.outside:
        say(
            f"{added.outside:,} {'predictions lie' if len(names) == 1 else 'rows have predictions'} outside the range the map "
            f"was fitted on, {' or '.join(between(one) for one in ends)}: nothing was verified there."
        )


def _say_recommendation(known: Mapping[str, Any]) -> None:
    """Say so where the study that a map comes from did not recommend it."""
    found = known.get("recommendation", USE_CALIBRATED)
    if found != USE_CALIBRATED:
        say(f"Note: what the study of this map recommended was not the calibrated prediction, but: {shown(found)}.")


def _band(known: Mapping[str, Any]) -> EffectBand:
    """Return the band that a map file holds."""
    if BAND not in known:
        raise OrthocalError(
            "`--interval` must go with a map file that holds a band; this one has none. Save the calibration of a study in "
            "memory whose effect is a mean, of one contrast."
        )
    return EffectBand.from_dict(known[BAND])


def _columns(fitted: Map | JointMap, named: Sequence[str] | None, known: Mapping[str, Any]) -> list[str]:
    """Return the columns of predictions: as named, one for each arm; those of the map file where none is named."""
    names = list(named or _texts(known, "columns"))
    arms = getattr(fitted, "arms", 1)
    if len(names) != arms:
        of = "once here" if arms == 1 else f"{arms} times, for the arms {listed(_texts(known, 'arms'))} in this order"
        raise OrthocalError(f"`--prediction` must be given {of}; it was given {len(names)} times.")
    return names


def _texts(known: Mapping[str, Any], name: str) -> list[str]:
    """Return names that a map file says of its map; none where it says nothing."""
    found = known.get(name, [])
    if not (isinstance(found, list) and all(isinstance(one, str) for one in found)):
        raise OrthocalError(
            f"`{name}` of the map file must be a list of names; it is {shown(found)}. Save the map again."
        )
    return found


def _ranges(known: Mapping[str, Any], count: int) -> list[tuple[float, float]]:
    """Return between which predictions the map was fitted, one pair for each column."""
    found = known.get("fitted_ranges", [known.get("fitted_range", ANYWHERE)] * count)
    pairs = found if isinstance(found, list) else [found]
    for one in pairs:
        if one is not ANYWHERE and not (isinstance(one, list) and len(one) == 2 and all(map(is_number, one))):
            raise OrthocalError(
                f"`fitted_range` of the map file must be two numbers; it is {shown(one)}. Save the map again."
            )
    if len(pairs) != count:
        raise OrthocalError(
            f"`fitted_ranges` of the map file must have {count}, one for each prediction; it has {len(pairs)}. Save the map "
            "again."
        )
    return [(float(low), float(high)) for low, high in pairs]


def export(options: ExportOptions) -> None:
    """Print a map as one SQL expression, as JSON, or as Python."""
    form, out = options.form, options.out
    fitted = _loaded(options.map_file)
    require_one_of(form, EXPORTS, "format")
    named = options.prediction
    if form == "sql" and not named:
        named = _texts(about(options.map_file), "columns") or None
    column = named[0] if named and getattr(fitted, "arms", 1) == len(named) == 1 else named
    given: dict[str, Any] = {
        name: value
        for name, value in {"column": column, "quote": options.quote, "dialect": options.dialect}.items()
        if value is not None
    }
    if not given.keys() <= inspect.signature(EXPORTS[form]).parameters.keys():
        raise OrthocalError(
            f"`--prediction`, `--dialect` and `--quote` must belong to the format; {shown(form)} names no column. Leave them out."
        )
    if out is not None:
        _require_new(out, {"map": options.map_file}, options.overwrite)
        if not out.parent.is_dir():
            raise OrthocalError(f"The folder {out.parent} must exist; it does not. Create it first.")
    if "about" in inspect.signature(EXPORTS[form]).parameters:
        known = about(options.map_file)
        given["about"] = {name: known[name] for name in known if name != BAND}  # it is long, and no part of the map
    text = EXPORTS[form](fitted, **given).rstrip("\n")
    _say_recommendation(about(options.map_file))
    if out is None:
        typer.echo(text)
        return
    with new_file(out, overwrite=options.overwrite) as file:
        file.write_text(text + "\n", encoding="utf-8")
    say(f"Wrote {out}.")


def _loaded(map_file: Path) -> Map | JointMap:
    """Return the map of a file, which a run that was killed may have left to be put in its place."""
    settle(map_file.parent)
    return load(map_file)


def _require_new(out: Path, read: Mapping[str, Path], overwrite: bool) -> None:
    """Nothing that is read is replaced, nor is a folder, nor, unless that was asked for, any other file."""
    require_short(out)
    if out.is_dir():
        raise OrthocalError(f"`--out` must name a new file; {out} is a folder. Choose another name.")
    for what, path in read.items():
        if out.resolve() == path.resolve():
            raise OrthocalError(f"`--out` must name a new file; {out} is the {what} itself. Choose another name.")
    require_new(out, overwrite=overwrite)
