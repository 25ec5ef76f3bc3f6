"""A table passes through unchanged but for one column."""

import csv
import gzip
import io

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from orthocal import OrthocalError
from orthocal.files import streams
from orthocal.files.streams import STANDARD, add_calibrated
from orthocal.maps import AffineMap

MAP = AffineMap(1.0, 2.0)
TEXT = (
    'id,day,tau,note,"a,b"\n007,2024-01-01,0.5,,x\n1e3,01/02/2024,-1,"say ""hi""\nthere",NA\n0010,, 1e-3 ,null,true\n'
)


@pytest.fixture
def wide():
    n = 10
    nested = pa.array([[j, None] if j % 3 else None for j in range(n)], pa.list_(pa.int16()))
    return pa.table(
        {
            "id": pa.array(range(n), pa.uint8()),
            "tau": pa.array(np.linspace(-1, 1, n), pa.float32()),
            "group": pa.array(["a", None, "b", "", "a"] * 2).dictionary_encode(),
            "when": pa.array([10**18 + j for j in range(n)], pa.timestamp("ns", "UTC")),
            "price": pa.array(range(n)).cast(pa.decimal128(30, 3)),
            "x": pa.array([float("nan"), None, -0.0, 1e-320, float("inf")] * 2),
            "nested": nested,
        },
        metadata={"made by": "a test"},
    )


def test_text_of_other_fields_is_kept(tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(TEXT)
    assert add_calibrated(MAP, source, target, "tau").rows == 3
    rows = list(csv.reader(io.StringIO(TEXT)))
    got = list(csv.reader(io.StringIO(target.read_text())))
    assert [row[:-1] for row in got] == rows
    assert [row[-1] for row in got] == ["tau_calibrated", "2.0", "-1.0", "1.002"]
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_empty_lines_are_no_rows_and_a_byte_order_mark_no_name(tmp_path):
    (tmp_path / "in.csv").write_text("\ufefftau,x\n\n1,2\n\n3,4\n\n", encoding="utf-8")
    assert add_calibrated(MAP, tmp_path / "in.csv", tmp_path / "out.csv", "tau").rows == 2
    assert (tmp_path / "out.csv").read_text() == "tau,x,tau_calibrated\n1,2,3.0\n3,4,7.0\n"


def test_text_in_another_encoding_passes_through(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"tau,name\n1,Z\xfcrich\n")
    add_calibrated(MAP, tmp_path / "in.csv", tmp_path / "out.csv", "tau")
    assert (tmp_path / "out.csv").read_bytes() == b"tau,name,tau_calibrated\n1,Z\xfcrich,3.0\n"


def test_columns_of_parquet_keep_their_bits(wide, tmp_path):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    parquet.write_table(wide, source, row_group_size=4)
    told = []
    assert add_calibrated(MAP, source, target, "tau", told.append).rows == 10
    assert told == [4, 8, 10]
    before, after = parquet.read_table(source), parquet.read_table(target)
    assert after.schema.remove(len(before.schema)).equals(before.schema, check_metadata=True)
    assert after.schema.metadata == before.schema.metadata
    for name in before.column_names:
        assert repr(after[name].to_pylist()) == repr(before[name].to_pylist())
    expected = MAP.predict(wide["tau"].to_numpy().astype(float))
    np.testing.assert_array_equal(after["tau_calibrated"].to_numpy(), expected)
    file = parquet.ParquetFile(target)
    assert [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)] == [4, 4, 2]


def test_a_large_row_group_is_taken_in_parts(wide, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BATCH", 3)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    parquet.write_table(wide, source)
    told = []
    add_calibrated(MAP, source, target, "tau", told.append)
    assert told == [3, 6, 9, 10]
    assert parquet.read_table(target)["id"].to_pylist() == list(range(10))


def test_long_csv_is_taken_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "TEXT_BATCH", 2)
    (tmp_path / "in.csv").write_text(TEXT)
    told = []
    add_calibrated(MAP, tmp_path / "in.csv", tmp_path / "out.csv", "tau", told.append)
    assert told == [2, 3]
    assert (tmp_path / "out.csv").read_text().count("\n") == 5


@pytest.mark.parametrize("source", ["in.csv", "in.csv.gz", "in.parquet", "IN.CSV"])
@pytest.mark.parametrize("target", ["out.csv", "out.csv.gz", "out.parquet"])
def test_every_kind_to_every_other(source, target, tmp_path):
    table = pa.table({"tau": [0.5, -1.0], "name": ["a", "b"]})
    text = b"tau,name\n0.5,a\n-1.0,b\n"
    if source.endswith("parquet"):
        parquet.write_table(table, tmp_path / source)
    else:
        (tmp_path / source).write_bytes(gzip.compress(text) if source.endswith("gz") else text)
    add_calibrated(MAP, tmp_path / source, tmp_path / target, "tau")
    if target.endswith("parquet"):
        assert parquet.read_table(tmp_path / target).to_pydict() == {**table.to_pydict(), "tau_calibrated": [2.0, -1.0]}
    else:
        raw = (tmp_path / target).read_bytes()
        got = (gzip.decompress(raw) if target.endswith("gz") else raw).decode()
        rows = [row[1:] for row in csv.reader(io.StringIO(got))]
        assert rows[0] == ["name", "tau_calibrated"]
        assert [(name, float(value)) for name, value in rows[1:]] == [("a", 2.0), ("b", -1.0)]


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_where_there_is_no_prediction_there_is_no_calibrated_one(kind, tmp_path):
    """As in SQL; predictions beyond the fitted range are counted."""
    source, target = tmp_path / f"in{kind}", tmp_path / f"out{kind}"
    (tmp_path / "in.csv").write_text("tau,x\n1,1\n,2\nNA,3\n7,4\n")
    parquet.write_table(pa.table({"tau": [1.0, None, float("nan"), 7.0], "x": [1, 2, 3, 4]}), tmp_path / "in.parquet")
    assert add_calibrated(MAP, source, target, "tau", ends=(0.0, 5.0)) == (4, 2, 1)
    if kind == ".csv":
        assert target.read_text() == "tau,x,tau_calibrated\n1,1,3.0\n,2,\nNA,3,\n7,4,15.0\n"
    else:
        assert parquet.read_table(target)["tau_calibrated"].to_pylist() == [3.0, None, None, 15.0]


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_a_column_of_that_name_is_replaced_where_it_is(kind, tmp_path):
    source, target = tmp_path / f"in{kind}", tmp_path / f"out{kind}"
    (tmp_path / "in.csv").write_text("tau_calibrated,tau,x\nold,1,2\n")
    parquet.write_table(pa.table({"tau_calibrated": ["old"], "tau": [1.0], "x": [2]}), tmp_path / "in.parquet")
    add_calibrated(MAP, source, target, "tau")
    if kind == ".csv":
        assert target.read_text() == "tau_calibrated,tau,x\n3.0,1,2\n"
    else:
        assert parquet.read_table(target).to_pydict() == {"tau_calibrated": [3.0], "tau": [1.0], "x": [2]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tau\n1\n2\ninf\n", "`tau` must be finite in every row; row 2 is inf"),
        ("tau\n1\n2\nabc\n", "`tau` must hold numbers; row 2 is 'abc'"),
        ("tau,x\n1,1\n2,1\n3\n", "must have 2 fields, as its header has; row 2 has 1"),
        ("tao,x\n1,1\n", "The prediction column must be in the data; 'tau' is not. Did you mean 'tao'?"),
        ("tau,tau\n1,1\n", "must have different names; 'tau' occurs twice"),
        ("tau\n", "must have rows; it has none"),
        ("", "The prediction column must be in the data"),
        ('tau,x\n1,"a"b\n', "cannot be copied"),
    ],
)
def test_bad_csv_gets_one_sentence_and_leaves_nothing(text, message, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "TEXT_BATCH", 2)  # rows are counted over all parts
    source = tmp_path / "in.csv"
    source.write_text(text)
    with pytest.raises(OrthocalError) as caught:
        add_calibrated(MAP, source, tmp_path / "out.csv", "tau")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, 2.0, 3.0, float("inf")], "`tau` must be finite in every row; row 3 is inf"),
        (["1", "2", "3", "x"], "`tau` must hold numbers; row 0 is '1'"),
    ],
)
def test_bad_parquet_gets_one_sentence_and_leaves_nothing(column, message, tmp_path):
    source = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"tau": column}), source, row_group_size=2)
    with pytest.raises(OrthocalError) as caught:
        add_calibrated(MAP, source, tmp_path / "out.parquet", "tau")
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == [source]


def test_files_that_are_not_what_their_name_says(tmp_path):
    for name, content, message in [
        ("no.csv", None, "must exist"),
        ("a.parquet", b"text", "cannot be copied"),
        ("a.csv.gz", b"text", "cannot be copied"),
        ("b.csv.gz", gzip.compress(TEXT.encode())[:-12], "cannot be copied"),
        ("c.csv.gz", gzip.compress(TEXT.encode())[:20] + b"xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "cannot be copied"),
        ("a.xlsx", b"", "A table's name must end in .csv or .csv.gz or .parquet; it is 'a.xlsx'"),
        ("a-", b"", "A table's name must end in"),
    ]:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(OrthocalError, match=message):
            add_calibrated(MAP, tmp_path / name, tmp_path / "out.csv", "tau")
    parquet.write_table(pa.table([[1.0], [2.0]], names=["tau", "tau"]), tmp_path / "twice.parquet")
    with pytest.raises(OrthocalError, match="'tau' occurs twice"):
        add_calibrated(MAP, tmp_path / "twice.parquet", tmp_path / "out.csv", "tau")
    (tmp_path / "in.csv").write_text(TEXT)
    with pytest.raises(OrthocalError, match="A table's name must end in"):
        add_calibrated(MAP, tmp_path / "in.csv", tmp_path / "out.txt", "tau")
    assert not (tmp_path / "out.csv").exists()


class Standard:
    """Standard input or output that keeps its bytes."""

    def __init__(self, content=b""):
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("target", [STANDARD, None])
def test_standard_input_and_output(target, tmp_path, monkeypatch):
    read, written = Standard(TEXT.encode()), Standard()
    monkeypatch.setattr("sys.stdin", read)
    monkeypatch.setattr("sys.stdout", written)
    add_calibrated(MAP, STANDARD, target or tmp_path / "out.csv", "tau")
    got = written.buffer.getvalue() if target else (tmp_path / "out.csv").read_bytes()
    assert got.decode().splitlines()[1] == "007,2024-01-01,0.5,,x,2.0"
    assert not read.buffer.closed


def test_an_earlier_result_stays_when_a_run_fails(tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("tau\nx\n")
    target.write_text("earlier")
    with pytest.raises(OrthocalError):
        add_calibrated(MAP, source, target, "tau")
    assert target.read_text() == "earlier"
