import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import orthocal
from orthocal import OrthocalError
from orthocal.mapfile import FORMAT, from_record, to_record, write_text
from orthocal.maps import MAPS, AffineMap, StepMap

FIXTURES = Path(__file__).parent / "fixtures" / "maps" / "v1"

STEP = {"format": FORMAT, "version": 1, "shape": "step", "edges": [0.0, 1.0], "values": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format 'orthocal-map'"),
        ({"version": 99}, "must have version 1; this one has 99"),
        ({"shape": "wave"}, "`shape` must be one of"),
        ({"shape": ["x"]}, "`shape` must be one of"),
        ({"version": None}, "must have version 1; this one has None"),
        ({"version": True}, "must have version 1; this one has True"),
        ({"version": 1.0}, "must have version 1; this one has 1.0"),
        ({"edges": [[0.0, 1.0]]}, "`edges` of a map file must hold numbers; it holds [0.0, 1.0]"),
        ({"edges": 1.0}, "one value more than edges"),
        ({"edges": {"0": 1.0}}, "`edges` of a map file must hold numbers"),
        ({"edges": [1.0, 0.0]}, "edges of a step map must increase"),
        ({"edges": [0.0, 0.0]}, "edges of a step map must increase"),
        ({"values": [1.0, 2.0]}, "one value more than edges"),
        ({"values": [1.0, None, 2.0]}, "`values` of a map file must hold numbers; it holds None"),
        ({"values": [1.0, float("inf"), 2.0]}, "must be finite"),
        ({"values": [1.0, 10**400, 2.0]}, "does not hold a valid map"),
        ({"values": ["1", "2", "3"]}, "`values` of a map file must hold numbers; it holds '1'"),
        ({"values": [1.0, True, 2.0]}, "`values` of a map file must hold numbers; it holds True"),
        ({"values": None}, "`values` of a map file must hold numbers; it holds None"),
        ({"note": 1}, "must have format, version, about, shape, edges, values only; this one has 'note' too"),
    ],
)
def test_a_bad_file_gets_one_sentence(change, message):
    with pytest.raises(OrthocalError) as caught:
        from_record({**STEP, **change})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


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
    (tmp_path / "infinity.json").write_text(json.dumps({**STEP, "values": [1.0, float("-inf"), 2.0]}))
    (tmp_path / "huge.json").write_text(json.dumps(STEP).replace("3.0", "3e999"))
    (tmp_path / "digits.json").write_text(json.dumps(STEP).replace("3.0", "3" * 5000))
    (tmp_path / "truncated.json").write_text(json.dumps(STEP)[:-9])
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "binary.json").write_bytes(b"\x80\x04\x95 a pickle")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "deep-map.json").write_text('{"format":' * 100_000)
    for name, message in [
        ("infinity.json", "has -Infinity"),
        ("huge.json", "must be finite"),
        ("digits.json", "must hold JSON"),
        ("truncated.json", "must hold JSON"),
        ("empty.json", "must hold JSON"),
        ("binary.json", "must hold JSON"),
        ("deep.json", "nests too deeply"),
        ("deep-map.json", "nests too deeply"),
        ("none.json", "must be readable"),
        (".", "must be readable"),
        ("text.json", "must hold JSON"),
        ("nan.json", "has NaN"),
    ]:
        with pytest.raises(OrthocalError, match=message) as caught:
            orthocal.load(tmp_path / name)
        assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"knots": [0.0] * 5}, "four knots more than coefficients"),
        ({"knots": [0.0] * 3 + [1.0] * 4, "coefficients": [0.0] * 3}, "four knots more than coefficients"),
        ({"knots": 0.0}, "four knots more than coefficients"),
        ({"coefficients": 0.0}, "four knots more than coefficients"),
        ({"coefficients": [0.0, 1, 2, None]}, "`coefficients` of a map file must hold numbers"),
        ({"coefficients": [0.0, 1, 2, float("nan")]}, "must be finite"),
        ({"knots": [1.0] * 8}, "two different end knots, each four times"),
        ({"knots": [-1.0] + [0.0] * 3 + [1.0] * 4}, "two different end knots, each four times"),
        ({"knots": [0.0] * 4 + [1.0] * 3 + [2.0]}, "two different end knots, each four times"),
        ({"knots": [1.0] * 4 + [0.0] * 4}, "must not decrease"),
    ],
)
def test_a_bad_spline_is_refused(change, message):
    good = {"knots": [0.0] * 4 + [1.0] * 4, "coefficients": [0.0, 1.0, 2.0, 3.0]}
    from_record({"format": FORMAT, "version": 1, "shape": "spline", **good})
    with pytest.raises(OrthocalError, match=message):
        from_record({"format": FORMAT, "version": 1, "shape": "spline", **good, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [0.5, 0.6]}, "must be positive and add up to 1"),
        ({"weights": [1.0, 0.0]}, "must be positive and add up to 1"),
        ({"weights": [1.0]}, "one weight for each map"),
        ({"weights": [], "maps": []}, "one weight for each map"),
        ({"maps": [1.0, 2.0]}, "`maps` of a map file must hold maps"),
        ({"maps": [{"shape": "identity"}, {"shape": "wave"}]}, "`shape` must be one of"),
        ({"maps": [{"shape": "identity"}, {"shape": "affine", "slope": 1.0}]}, "must have `intercept`"),
        ({"maps": [{"shape": "identity"}, {"shape": "identity", "note": 1}]}, "has 'note' too"),
        (
            {"maps": [{"shape": "identity"}, {"shape": "mixture", "weights": [1.0], "maps": [{"shape": "identity"}]}]},
            "made of maps that are not mixtures",
        ),
    ],
)
def test_a_bad_mixture_is_refused(change, message):
    good = {"weights": [0.5, 0.5], "maps": [{"shape": "identity"}, {"shape": "affine", "intercept": 0.0, "slope": 2.0}]}
    mixture = from_record({"format": FORMAT, "version": 1, "shape": "mixture", **good})
    np.testing.assert_allclose(mixture.predict([2.0]), [3.0])
    with pytest.raises(OrthocalError, match=message):
        from_record({"format": FORMAT, "version": 1, "shape": "mixture", **good, **change})


@pytest.mark.parametrize("shape", MAPS)
def test_files_of_version_1_load_for_ever_and_predict_the_same(shape):
    map_ = orthocal.load(FIXTURES / f"{shape}.json")
    assert type(map_) is MAPS[shape]
    expected = json.loads((FIXTURES / f"{shape}.expected.json").read_text())
    assert len(expected["prediction"]) >= 10
    np.testing.assert_allclose(map_.predict(expected["prediction"]), expected["calibrated"], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("effect", "method", "known"),
    [("cate", "auto", ["propensity"]), ("cate", "platt", []), ("quantile", "isotonic", [])],
)
def test_a_calibrator_pickles(effect, method, known, simulated):
    rows = slice(300)
    given = {name: simulated.nuisances[name][rows] for name in known}
    data = {"treatment": simulated.treatment[rows], "prediction": simulated.effect[rows], "nuisances": given}
    calibrator = orthocal.CausalCalibrator(effect, method, folds=2, refinements=1, random_state=0)
    calibrator.fit(simulated.X[rows], simulated.y[rows], **data)
    again = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(again.calibrate(simulated.effect), calibrator.calibrate(simulated.effect))
    np.testing.assert_array_equal(again.honest_prediction_, calibrator.honest_prediction_)
    assert str(again.get_params()) == str(calibrator.get_params())
    assert (
        pickle.loads(pickle.dumps(orthocal.CausalCalibrator())).get_params() == orthocal.CausalCalibrator().get_params()
    )


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_text(tmp_path / "map.json", "{}")
    assert list(tmp_path.iterdir()) == []


def test_numbers_survive_to_the_last_bit():
    values = np.random.default_rng(0).standard_normal(5)
    record = json.loads(json.dumps(to_record(StepMap(np.array([0.1, 0.2, 0.3, 1 / 3]), values))))
    np.testing.assert_array_equal(from_record(record).values, values)
