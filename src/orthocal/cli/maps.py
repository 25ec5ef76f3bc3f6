"""Commands that use a map: apply it to a table, export it to another language."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from orthocal.cli.columns import only
from orthocal.cli.options import Prediction
from orthocal.cli.screen import counting_rows, say
from orthocal.errors import OrthocalError, require_one_of
from orthocal.maps import Map

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")]
MapFile = Annotated[Path, typer.Argument(metavar="MAP", help="Map file written by calibrate.", show_default=False)]


def apply(
    map_file: MapFile,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table: .csv, .csv.gz or .parquet; - reads CSV from standard input.")
    ],
    prediction: Prediction,
    out: Annotated[
        Path, typer.Option("--out", help="Table to write: .csv, .csv.gz or .parquet; - writes CSV to standard output.")
    ],
    overwrite: Overwrite = False,
) -> None:
    """Add a column of calibrated predictions to a table; everything else in it stays as it is."""
    from orthocal.files.streams import STANDARD, add_calibrated

    fitted, name = _loaded(map_file), only(prediction)
    if out != STANDARD:
        _require_new(out, {"data": data, "map": map_file}, overwrite)
    with counting_rows(None) as tell:
        rows = add_calibrated(fitted, data, out, name, tell, overwrite=overwrite)
    say(f"Wrote {out}: {rows:,} rows, column {name}_calibrated.")


def export(
    map_file: MapFile,
    form: Annotated[str, typer.Option("--format", help="sql, json or python.")],
    prediction: Annotated[
        str | None, typer.Option("--prediction", help="Column of predictions (format sql); prediction if left out.")
    ] = None,
    quote: Annotated[
        str | None,
        typer.Option(
            "--quote", help='Mark around the column in your SQL, " or `; none around a plain name if left out.'
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; standard output if left out.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Print a map as one SQL expression, as JSON, or as a Python function that needs no package."""
    from orthocal.export import EXPORTS
    from orthocal.files.atomic import new_file

    fitted = _loaded(map_file)
    require_one_of(form, EXPORTS, "format")
    given = {name: value for name, value in {"column": prediction, "quote": quote}.items() if value is not None}
    if not given.keys() <= inspect.signature(EXPORTS[form]).parameters.keys():
        raise OrthocalError(
            f"`--prediction` and `--quote` must belong to the format; {form!r} names no column. Leave them out."
        )
    if out is not None:
        _require_new(out, {"map": map_file}, overwrite)
        if not out.parent.is_dir():
            raise OrthocalError(f"The folder {out.parent} must exist; it does not. Create it first.")
    text = EXPORTS[form](fitted, **given).rstrip("\n")
    if out is None:
        typer.echo(text)
        return
    with new_file(out, overwrite=overwrite) as file:
        file.write_text(text + "\n", encoding="utf-8")
    say(f"Wrote {out}.")


def _loaded(map_file: Path) -> "Map":
    """Return the map of a file, which a run that was killed may have left to be put in its place."""
    from orthocal.files.atomic import settle
    from orthocal.mapfile import load

    settle(map_file.parent)
    return load(map_file)


def _require_new(out: Path, read: Mapping[str, Path], overwrite: bool) -> None:
    """Nothing that is read is replaced, nor is a folder, nor, unless that was asked for, any other file."""
    from orthocal.files.atomic import require_new

    if out.is_dir():
        raise OrthocalError(f"`--out` must name a new file; {out} is a folder. Choose another name.")
    for what, path in read.items():
        if out.resolve() == path.resolve():
            raise OrthocalError(f"`--out` must name a new file; {out} is the {what} itself. Choose another name.")
    require_new(out, overwrite=overwrite)
