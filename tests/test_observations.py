from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from orthocal import OrthocalError
from orthocal.observations import as_matrix, as_numbers, column_names, observe

COLUMNS = {"age": [30.0, 40.0, 50.0], "sex": ["f", "m", "f"], "ok": [True, False, True], "k": [1, 2, 3]}
WANTED = [[30, 0, 1, 1], [40, 1, 0, 2], [50, 0, 1, 3]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_all_kinds_become_the_same_matrix(frame):
    X = frame(COLUMNS)
    np.testing.assert_array_equal(as_matrix(X), WANTED)
    assert column_names(X) == ("age", "sex", "ok", "k")
    assert column_names(np.ones((2, 2))) is None


@pytest.mark.parametrize("column", [pd.Series, pl.Series, pa.array, list, np.array])
def test_columns_of_all_kinds_become_the_same_array(column):
    np.testing.assert_array_equal(as_numbers(column([1, 2, 3]), "y"), [1.0, 2.0, 3.0])


def test_missing_covariates_stay_missing_and_categories_are_encoded():
    X = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], dtype="Int64"),
            "c": pd.Categorical(["u", "v", "w"]),
            "s": ["x", None, "y"],
            "o": pd.Series([1, None, 2.5], dtype=object),
        }
    )
    matrix = as_matrix(X)
    np.testing.assert_array_equal(matrix[:, 0], [1, np.nan, 3])
    np.testing.assert_array_equal(matrix[:, 1:3], [[0, 0], [1, 0], [0, 1]])
    assert matrix.shape == (3, 6)
    np.testing.assert_array_equal(matrix[:, 5], [1, np.nan, 2.5])


def test_an_object_array_with_text_is_encoded():
    np.testing.assert_array_equal(as_matrix(np.array([[1, "b"], [2, "a"]], dtype=object)), [[1, 1], [2, 0]])


def test_numbers_stay_numbers_and_labels_labels():
    decimals = pa.table({"d": pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("10.5")])})
    np.testing.assert_array_equal(as_matrix(decimals), [[1.5], [2.5], [10.5]])
    np.testing.assert_array_equal(as_matrix([[1.5, "a"], [2.5, "b"], [10.0, "a"]]), [[1.5, 0], [2.5, 1], [10, 0]])
    missing = pd.DataFrame({"o": pd.Series([1, pd.NA, 3], dtype=object)})
    np.testing.assert_array_equal(as_matrix(missing), [[1], [np.nan], [3]])
    category = pd.DataFrame({"c": pd.Categorical([1, 2, 3])})
    np.testing.assert_array_equal(as_matrix(category), [[0, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"t": pd.to_datetime(["2020-01-01"] * 4)}),
        pa.table({"l": [[1], [2], [3], [4]]}),
        np.ones((4, 1), dtype=complex),
        np.full((4, 1), np.datetime64("2020-01-01")),
    ],
)
def test_covariates_that_are_neither_numbers_nor_text_are_refused(X):
    with pytest.raises(OrthocalError, match="must hold numbers or text"):
        as_matrix(X)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(OrthocalError, match="must have different names"):
        as_matrix(pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]))


def test_too_many_levels_are_refused():
    with pytest.raises(OrthocalError, match="`zip` has 60 categories; at most 50"):
        as_matrix(pd.DataFrame({"zip": [f"z{i}" for i in range(60)]}))


def rows(**changes):
    columns = {"X": np.ones((4, 2)), "y": [0.0, 1, 2, 3], "treatment": [0, 1, 0, 1], **changes}
    return observe(columns.pop("X"), columns.pop("y"), **columns)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [0, 1, np.nan, 3]}, "`y` must be finite in every row; row 2 is nan"),
        ({"y": [0, 1, np.inf, 3]}, "`y` must be finite in every row; row 2 is inf"),
        ({"y": pd.array([0, 1, None, 3], dtype="Int64")}, "`y` must be finite in every row; row 2 is nan"),
        ({"y": ["a", "b", "c", "d"]}, "`y` must hold numbers; row 0 is 'a'"),
        ({"y": [0, 1, 2]}, "`y` must have one value per row; it has 3 for 4 rows"),
        ({"y": np.ones((4, 2))}, "`y` must be one column"),
        ({"y": None}, "`y` must be given; it is None"),
        ({"treatment": None}, "`treatment` must be given; it is None"),
        ({"X": csr_matrix(np.ones((4, 2)))}, "`X` must be dense; it is a sparse matrix"),
        ({"treatment": [0, 1, np.nan, 1]}, "`treatment` must be finite in every row; row 2"),
        ({"treatment": ["a", None, "b", "a"]}, "`treatment` must not be missing; row 1 is"),
        ({"treatment": [0, 1]}, "`treatment` must have one value per row"),
        ({"prediction": [0, np.nan, 1, 1]}, "`prediction` must be finite in every row; row 1"),
        ({"instrument": [0, 1, np.inf, 1]}, "`instrument` must be finite"),
        ({"sample_weight": [1, -1, 1, 1]}, "`sample_weight` must not be negative; row 1 is -1.0"),
        ({"sample_weight": [0, 0, 0, 0]}, "`sample_weight` must be positive somewhere"),
        ({"sample_weight": [0, np.nan, 0, 0]}, "`sample_weight` must be finite"),
        ({"treatment": pd.array(["a", None, "b", "a"], dtype="string")}, "`treatment` must not be missing; row 1 is"),
        ({"y": np.full(4, np.timedelta64(1))}, "`y` must hold numbers; it holds timedelta64"),
        ({"groups": ["a", "b"]}, "`groups` must have one value per row"),
        ({"y": np.ma.masked_equal([0.0, 1, -999, 3], -999)}, "`y` must be finite in every row; row 2 is nan"),
        ({"y": np.ma.masked_equal([0, 1, -999, 3], -999)}, "`y` must be finite in every row; row 2 is nan"),
        ({"treatment": np.ma.masked_equal([0, 1, 0, -9], -9)}, "`treatment` must be finite in every row; row 3 is nan"),
        ({"treatment": np.ma.masked_equal(["a", "b", "?", "a"], "?")}, "`treatment` must not be missing; row 2 is"),
        ({"prediction": np.ma.array(np.ones(4), mask=[0, 1, 0, 0])}, "`prediction` must be finite in every row; row 1"),
        ({"sample_weight": np.ma.array(np.ones(4), mask=[0, 1, 0, 0])}, "`sample_weight` must be finite in every row"),
        ({"groups": np.ma.array([1, 2, 3, 4], mask=[1, 0, 0, 0])}, "`groups` must be finite in every row; row 0"),
        ({"key": np.ma.array([1, 2, 3, 4], mask=[1, 0, 0, 0])}, "`key` must be finite in every row; row 0"),
        ({"key": [1, 2]}, "`key` must have one value per row"),
        ({"key": ["a", None, "b", "c"]}, "`key` must not be missing; row 1 is"),
        ({"X": np.ones(4)}, "`X` must have rows and columns"),
        ({"X": np.array([[1.0], [np.inf], [0], [0]])}, "`X` must not be infinite; row 1, column 0"),
        ({"X": np.empty((0, 2)), "y": [], "treatment": []}, "at least one row"),
    ],
)
def test_bad_input_gets_one_sentence(changes, message):
    with pytest.raises(OrthocalError) as caught:
        rows(**changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_can_be_selected():
    part = rows(prediction=[1, 2, 3, 4], groups=["u", "u", "v", "v"])[np.array([0, 3])]
    assert len(part) == 2
    np.testing.assert_array_equal(part.prediction, [1, 4])
    np.testing.assert_array_equal(part.groups, [0, 1])
    assert part.instrument is None


def test_a_column_of_shape_n_by_1_is_a_column():
    np.testing.assert_array_equal(as_numbers(np.ones((3, 1)), "y"), [1, 1, 1])


def test_a_frame_without_columns_has_no_covariates():
    assert as_matrix(pd.DataFrame(index=range(3))).shape[1] == 0


def test_what_is_masked_in_covariates_is_missing():
    X = np.ma.masked_equal([[1.0, 2.0], [-999.0, 3.0]], -999.0)
    np.testing.assert_array_equal(as_matrix(X), [[1, 2], [np.nan, 3]])
    np.testing.assert_array_equal(as_matrix(X.astype(int)), [[1, 2], [np.nan, 3]])
    text = np.ma.array(np.array([["u", 1], ["v", 2], ["v", 3]], dtype=object), mask=[[0, 0], [0, 0], [1, 0]])
    assert as_matrix(text).shape == (3, 3)
    assert not isinstance(as_matrix(np.ma.array(np.ones((2, 2)))), np.ma.MaskedArray)


def test_a_mask_that_covers_nothing_changes_nothing():
    treatment = np.ma.array([0, 1, 0, 1], mask=False)
    assert rows(treatment=treatment).treatment.dtype.kind == "i"
