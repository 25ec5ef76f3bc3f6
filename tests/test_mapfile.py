import json

import numpy as np
import pytest

import orthocal
from orthocal import OrthocalError
from orthocal.mapfile import FORMAT, from_record, to_record, write_text
from orthocal.maps import AffineMap, StepMap

STEP = {"format": FORMAT, "version": 1, "shape": "step", "edges": [0.0, 1.0], "values": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format 'orthocal-map'"),
        ({"version": 99}, "must have version 1; this one has 99"),
        ({"shape": "wave"}, "`shape` must be one of"),
        ({"shape": ["x"]}, "`shape` must be one of"),
        ({"edges": [[0.0, 1.0]]}, "one value more than edges"),
        ({"edges": [1.0, 0.0]}, "edges of a step map must increase"),
        ({"edges": [0.0, 0.0]}, "edges of a step map must increase"),
        ({"values": [1.0, 2.0]}, "one value more than edges"),
        ({"values": [1.0, None, 2.0]}, "must be finite"),
        ({"values": ["a", "b", "c"]}, "does not hold a valid map"),
        ({"values": None}, "does not hold a valid map"),
    ],
)
def test_a_bad_file_gets_one_sentence(change, message):
    with pytest.raises(OrthocalError) as caught:
        from_record({**STEP, **change})
    assert message in str(caught.value)


def test_a_missing_key_is_named():
    with pytest.raises(OrthocalError, match="must have `values`"):
        from_record({key: value for key, value in STEP.items() if key != "values"})
    with pytest.raises(OrthocalError, match="format"):
        from_record([1, 2])


@pytest.mark.parametrize("change", [{"lower": 2}, {"slope": None}, {"slope": "x"}])
def test_a_bad_sigmoid_or_line_is_refused(change):
    good = {"lower": 0, "upper": 1, "intercept": 0, "slope": 1}
    with pytest.raises(OrthocalError):
        from_record({"format": FORMAT, "version": 1, "shape": "sigmoid", **good, **change})


def test_files_that_are_no_maps(tmp_path):
    (tmp_path / "text.json").write_text("not json")
    (tmp_path / "nan.json").write_text(json.dumps({**STEP, "values": [1.0, float("nan"), 2.0]}))
    for name, message in [
        ("none.json", "must be readable"),
        (".", "must be readable"),
        ("text.json", "must hold JSON"),
        ("nan.json", "has NaN"),
    ]:
        with pytest.raises(OrthocalError, match=message):
            orthocal.load(tmp_path / name)


def test_only_maps_are_saved_and_only_into_folders(tmp_path):
    with pytest.raises(OrthocalError, match="`map` must be a fitted map; it is a list"):
        orthocal.save([1], tmp_path / "map.json")
    with pytest.raises(OrthocalError, match="folder .* must exist"):
        orthocal.save(AffineMap(0.0, 1.0), tmp_path / "no" / "map.json")
    assert list(tmp_path.iterdir()) == []


def test_a_map_can_be_read_by_others(tmp_path):
    orthocal.save(AffineMap(0.0, 1.0), tmp_path / "map.json")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert (tmp_path / "map.json").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("change", [{"knots": [0.0] * 5}, {"coefficients": [0.0, 1, 2, None]}, {"knots": [1.0] * 8}])
def test_a_bad_spline_is_refused(change):
    good = {"knots": [0.0] * 4 + [1.0] * 4, "coefficients": [0.0, 1.0, 2.0, 3.0]}
    from_record({"format": FORMAT, "version": 1, "shape": "spline", **good})
    with pytest.raises(OrthocalError):
        from_record({"format": FORMAT, "version": 1, "shape": "spline", **good, **change})


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_text(tmp_path / "map.json", "{}")
    assert list(tmp_path.iterdir()) == []


def test_numbers_survive_to_the_last_bit():
    values = np.random.default_rng(0).standard_normal(5)
    record = json.loads(json.dumps(to_record(StepMap(np.array([0.1, 0.2, 0.3, 1 / 3]), values))))
    np.testing.assert_array_equal(from_record(record).values, values)
