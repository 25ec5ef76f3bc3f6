"""What can be asked of the commands that use a map."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orthocal.cli.options import Prediction, TextEncoding, option

Overwrite = Annotated[bool, option("--overwrite", "Replace the file if it exists.")]
MapFile = Annotated[Path, typer.Argument(metavar="MAP", help="Map file written by calibrate.", show_default=False)]


@dataclass(frozen=True, kw_only=True)
class ApplyOptions:
    """Add a column of calibrated predictions to a table; everything else in it stays as it is."""

    map_file: MapFile
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table: .csv, .csv.gz or .parquet; - reads CSV from standard input.")
    ]
    prediction: Prediction = None
    out: Annotated[Path, option("--out", "Table to write: .csv, .csv.gz or .parquet; - writes CSV to standard output.")]
    encoding: TextEncoding = None
    interval: Annotated[
        bool,
        option(
            "--interval",
            "Add columns _lower and _upper: for the average effect of people with that prediction, never a person's own.",
        ),
    ] = False
    overwrite: Overwrite = False


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Print a map as one SQL expression, as JSON, or as a Python function that needs no package."""

    map_file: MapFile
    form: Annotated[str, option("--format", "sql, json or python.")]
    prediction: Annotated[
        list[str] | None,
        option("--prediction", "Column of predictions (format sql), one for each arm; prediction if left out."),
    ] = None
    dialect: Annotated[
        str | None,
        option("--dialect", "SQL dialect: duckdb, postgres, bigquery, snowflake, spark, mysql or sqlite."),
    ] = None
    quote: Annotated[
        str | None,
        option("--quote", 'Mark around the column in your SQL, " or `; none around a plain name if left out.'),
    ] = None
    out: Annotated[Path | None, option("--out", "File to write; standard output if left out.")] = None
    overwrite: Overwrite = False
