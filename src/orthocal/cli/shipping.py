"""Commands that use a map: apply it to a table, export it to another language."""

import inspect
from pathlib import Path
from typing import Annotated

import typer

from orthocal.cli.options import OnePrediction
from orthocal.cli.reading import only
from orthocal.cli.screen import counting_rows, say
from orthocal.errors import OrthocalError, require_one_of

MapFile = Annotated[Path, typer.Argument(metavar="MAP", help="Map file written by calibrate.", show_default=False)]


def apply(
    map_file: MapFile,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table: .csv, .csv.gz or .parquet; - reads CSV from standard input.")
    ],
    prediction: OnePrediction,
    out: Annotated[
        Path, typer.Option("--out", help="Table to write: .csv, .csv.gz or .parquet; - writes CSV to standard output.")
    ],
) -> None:
    """Add a column of calibrated predictions to a table; everything else in it stays as it is."""
    from orthocal.mapfile import load
    from orthocal.streams import STANDARD, add_calibrated

    fitted, name = load(map_file), only(prediction)
    if out != STANDARD and (out.is_dir() or out.resolve() == data.resolve()):
        raise OrthocalError(f"`--out` must name a new file; {out} is the data itself or a folder. Choose another name.")
    with counting_rows(None) as tell:
        rows = add_calibrated(fitted, data, out, name, tell)
    say(f"Wrote {out}: {rows:,} rows, column {name}_calibrated.")


def export(
    map_file: MapFile,
    form: Annotated[str, typer.Option("--format", help="sql, json or python.")],
    prediction: Annotated[
        str | None, typer.Option("--prediction", help="Column of predictions (format sql); prediction if left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; standard output if left out.")] = None,
) -> None:
    """Print a map as one SQL expression, as JSON, or as a Python function that needs no package."""
    from orthocal.export import EXPORTS
    from orthocal.mapfile import load, write_text

    fitted = load(map_file)
    require_one_of(form, EXPORTS, "format")
    given = {} if prediction is None else {"column": prediction}
    if not given.keys() <= inspect.signature(EXPORTS[form]).parameters.keys():
        raise OrthocalError(f"`--prediction` must belong to the format; {form!r} names no column. Leave it out.")
    text = EXPORTS[form](fitted, **given).rstrip("\n")
    if out is None:
        typer.echo(text)
        return
    write_text(out, text + "\n")
    say(f"Wrote {out}.")
