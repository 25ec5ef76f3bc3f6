"""Tables that were tampered with: read and copied, or refused in a sentence; never half-written, never changed."""

import io
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from orthocal.files.streams import add_calibrated
from orthocal.files.tables import read_table
from orthocal.maps import AffineMap
from tests.fuzz.hostile import NAMES
from tests.fuzz.judgement import judged

NAME = "tables"
RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "tau": np.round(RNG.standard_normal(12), 3),
        "code": ["007", "012", "é", ""] * 3,
        "n": list(range(12)),
        "text": ['a "b"', "c,d", "e\nf"] * 4,
    }
)
PIECES = [
    b"\xff",
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b'""',
    b",",
    b",,",
    b"nan",
    b"inf",
    b"1e400",
    b"1e60",
    b"abc",
    b"\xe9",
    b" ",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"x" * 140_000,
    b"007",
    b"1_000",
    b"None",
    b"0x10",
    b"tau",
    b"\x1a",
    b"\xed\xa0\x80",
    b"PAR1",
]
ENDINGS = (".csv", ".csv.gz", ".parquet")
ENCODINGS = ("utf-8", "utf-16", "latin-1", "utf-8-sig", "utf-7", "cp037")


def mutations(rng):
    """Return endings of source and target, an encoding, and changes of bytes, names and types."""
    found = [
        ("from", str(rng.choice(ENDINGS, p=[0.6, 0.1, 0.3]))),
        ("to", str(rng.choice(ENDINGS, p=[0.5, 0.1, 0.4]))),
    ]
    if rng.random() < 0.2:
        found.append(("written as", str(rng.choice(ENCODINGS))))
    if rng.random() < 0.2:
        found.append(("read as", str(rng.choice([*ENCODINGS, "klingon", "", "rot13", "base64"]))))
    for _ in range(rng.integers(1, 4)):
        what = str(rng.choice(["insert", "cut", "overwrite", "name", "type"], p=[0.4, 0.1, 0.2, 0.15, 0.15]))
        found.append((what, int(rng.integers(100_000)), int(rng.integers(len(PIECES)))))
    return found


def content_of(mutations, words):
    """Return the bytes of the tampered table."""
    table = TABLE
    for what, place, value in (one for one in mutations if one[0] in ("name", "type")):
        at = place % len(table.columns)
        if what == "name":
            names = [*table.column_names]
            names[at] = NAMES[value % len(NAMES)]
            table = table.rename_columns(names)
        else:
            kinds = [
                pa.string(),
                pa.float32(),
                pa.null(),
                pa.binary(),
                pa.list_(pa.float64()),
                pa.decimal128(10, 3),
                pa.bool_(),
            ]
            kind = kinds[value % len(kinds)]
            table = table.set_column(at, table.column_names[at], pa.nulls(12, kind))
    stream = io.BytesIO()
    try:
        if words["from"] == ".parquet":
            parquet.write_table(table, stream)
        else:
            csv.write_csv(table, stream)
    except pa.ArrowException:
        csv.write_csv(TABLE, stream)
    content = stream.getvalue()
    if "written as" in words and words["from"] != ".parquet":
        content = content.decode("utf-8").encode(words["written as"], "replace")
    for what, place, value in (one for one in mutations if one[0] in ("insert", "cut", "overwrite")):
        at, piece = place % (len(content) + 1), PIECES[value]
        tail = {"insert": content[at:], "cut": b"", "overwrite": content[at + len(piece) :]}[what]
        content = content[:at] + (b"" if what == "cut" else piece) + tail
    return content


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    import gzip

    words = {"from": ".csv", "to": ".csv", **dict(one for one in mutations if len(one) == 2)}
    content = content_of([one for one in mutations if len(one) == 3], words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, target = folder / f"source{words['from']}", folder / f"target{words['to']}"
        packed = gzip.compress(content) if words["from"] == ".csv.gz" else content
        if words["from"] == ".csv.gz" and mutations and mutations[-1][-1] == 0:
            packed = packed[: len(packed) // 2]
        source.write_bytes(packed)
        encoding = words.get("read as")
        read = judged(lambda: read_table(source, encoding) and None)
        copied = judged(lambda: add_calibrated(AffineMap(1.0, 2.0), source, target, "tau", encoding=encoding) and None)
        if source.read_bytes() != packed:
            return "the data were changed"
        left = sorted(one.name for one in folder.iterdir() if one != source)
        if left not in ([], [target.name]):
            return f"something was left: {left}"
        if left:
            again = judged(lambda: read_table(target) and None)
            if again is not None:
                return f"the copy: {again}"
        return read or copied
