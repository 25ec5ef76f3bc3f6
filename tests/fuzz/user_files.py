"""The files that a user of the command line has: tables of every kind, maps, and some that are broken."""

import gzip
import io
import json

import pyarrow as pa
from pyarrow import csv, parquet

from orthocal.assessment.effect_band import EffectBand
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.joint_maps import JointMap
from orthocal.mapfile import to_json
from orthocal.maps import AffineMap, OpenStepMap, StepMap
from tests.fuzz.hostile import N
from tests.fuzz.studies import BASE

TABLE = pa.table({**BASE, "held": BASE["held"].astype(int), "town": ["Zürich", "Bern"] * (N // 2)})
BAND = EffectBand(OpenStepMap([0.0], [float("nan"), 1.0]), OpenStepMap([0.5], [3.0, 4.0]), 0.95, True, N)
ABOUT = {"columns": ["tau"], "fitted_range": [-1.0, 1.0], "band": BAND.to_dict()}
SHIFTS = GroupShifts("town", ("Bern", "Zürich"), [0.0], [[0.5, 1.0], [-1.0, -1.0], [0.0, 0.0]])
MAPS = {
    "map.json": to_json(AffineMap(1.0, 2.0)),
    "banded.json": to_json(StepMap([0.0], [1.0, 2.0]), ABOUT),
    "within.json": to_json(GroupMap((SHIFTS,), (AffineMap(0.0, 1.0),)), {"columns": ["tau"]}),
    "joint.json": to_json(
        JointMap([0.0, 1.0], [[1.0, 0.0], [0.5, 0.5]]), {"columns": ["tau", "other"], "arms": ["call", "mail"]}
    ),
    "broken.json": '{"format": "orthocal-map"',
}


def csv_of(table):
    """Return a table as the bytes of a CSV file."""
    stream = io.BytesIO()
    csv.write_csv(table, stream)
    return stream.getvalue()


def parquet_of(table):
    """Return a table as the bytes of a Parquet file."""
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def tables_of(table):
    """Return the files of a table, whole and broken."""
    text, columns = csv_of(table), parquet_of(table)
    half = N // 2
    return {
        "data.csv": text,
        "data.csv.gz": gzip.compress(text, 1),
        "data.parquet": columns,
        "parts/0.csv": csv_of(table.slice(0, half)),
        "parts/1.csv": csv_of(table.slice(half)),
        "broken.parquet": columns[:500],
        "wide.csv": text.decode("utf-8").encode("utf-16"),
        "narrow.csv": text.decode("utf-8").encode("latin-1", "replace"),
        "gaps.csv": text.replace(b",0.5,", b",,", 3),
    }


OTHERS = {
    "empty.csv": b"",
    "header.csv": b"x,y,a,tau\n",
    "data.txt": b"hello",
    "folder/mine.txt": b"mine",
    "earlier.json": json.dumps({"status": "calibrated", "error": 0.1}).encode(),
    **{name: text.encode() for name, text in MAPS.items()},
}
USUAL = {**tables_of(TABLE), **OTHERS}
"""What each file holds, by its name."""


def files_of(renamed):
    """Return all files, of a table in which columns have other names."""
    if not renamed:
        return USUAL
    return {**tables_of(TABLE.rename_columns([renamed.get(name, name) for name in TABLE.column_names])), **OTHERS}


def write(folder, files):
    """Write files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
