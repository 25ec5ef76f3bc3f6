"""Tables of all kinds go in, and columns of the same kind come out."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CausalCalibrator, CrossCalibratedModel, OrthocalError, assess, compare, orthogonal_loss
from orthocal.datasets import simulate_cate
from orthocal.observations import as_labels, as_matrix, as_numbers

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}
N = 300


@pytest.fixture(scope="module")
def data():
    return simulate_cate(N, random_state=1)


def in_pandas(columns):
    return pd.DataFrame(columns, index=[f"row {i}" for i in range(len(columns["x0"]))])


TABLES = {
    "numpy": lambda c: np.column_stack(list(c.values())),
    "pandas": in_pandas,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
COLUMNS = {
    "numpy": np.asarray,
    "pandas": lambda v: pd.Series(v, index=[f"row {i}" for i in range(len(v))], name="tau"),
    "polars": lambda v: pl.Series("tau", v),
    "pyarrow": pa.array,
}
KINDS = {"numpy": np.ndarray, "pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.ChunkedArray}
every_kind = pytest.mark.parametrize("kind", TABLES)


def first_column(X):
    return 1 + 2 * as_matrix(X)[:, 0]


def table(kind, data, rows=slice(None)):
    return TABLES[kind]({f"x{j}": column for j, column in enumerate(data.X[rows].T)})


def fitted(kind, data):
    calibrator = CausalCalibrator(method="linear", estimator=first_column, learners=FAST, random_state=0)
    y, treatment = COLUMNS[kind](data.y), COLUMNS[kind](data.treatment)
    return calibrator.fit(table(kind, data), y, treatment=treatment)


@every_kind
def test_the_answer_is_of_the_kind_of_the_question(kind, data):
    calibrator, wanted = fitted(kind, data), fitted("numpy", data).predict(data.X[5:9])
    for ask in (calibrator.predict, calibrator.effect):
        answer = ask(table(kind, data, slice(5, 9)))
        assert type(answer) is KINDS[kind]
        np.testing.assert_array_equal(np.asarray(answer), wanted)


@every_kind
def test_a_calibrated_column_is_of_its_kind(kind, data):
    prediction = COLUMNS[kind](np.array([0.0, 1.0]))
    answer = fitted("numpy", data).calibrate(prediction)
    assert type(answer) is type(COLUMNS[kind](np.array([0.5])))
    np.testing.assert_array_equal(np.asarray(answer), fitted("numpy", data).map_.predict([0.0, 1.0]))


def test_index_and_names_are_kept(data):
    calibrator = fitted("pandas", data)
    answer = calibrator.predict(table("pandas", data, slice(3)))
    assert (list(answer.index), answer.name) == (["row 0", "row 1", "row 2"], "effect")
    column = pd.Series([1.0, 2.0], index=[7, 3], name="tau")
    assert (list(calibrator.calibrate(column).index), calibrator.calibrate(column).name) == ([7, 3], "tau")
    assert calibrator.calibrate(pl.Series("tau", [1.0])).name == "tau"
    assert len(calibrator.predict(table("pandas", data, slice(0)))) == 0


def test_chunks_and_lists_come_back_as_they_can(data):
    calibrator = fitted("numpy", data)
    assert type(calibrator.calibrate(pa.chunked_array([[1.0], [2.0]]))) is pa.ChunkedArray
    assert type(calibrator.calibrate([1, 2])) is np.ndarray
    assert type(calibrator.map_.predict(pd.Series([1.0]))) is np.ndarray


@every_kind
@pytest.mark.parametrize("estimator", [LinearRegression(), lambda X, y, treatment: first_column])
def test_a_cross_calibrated_model_answers_in_kind(kind, data, estimator):
    model = CrossCalibratedModel(estimator, method="linear", learners=FAST, random_state=0)
    X = table(kind, data)
    model.fit(X, COLUMNS[kind](data.y), treatment=COLUMNS[kind](data.treatment))
    twin = CrossCalibratedModel(estimator, method="linear", learners=FAST, random_state=0)
    wanted = twin.fit(data.X, data.y, treatment=data.treatment).predict(data.X)
    for ask in (model.predict, model.effect):
        assert type(ask(X)) is KINDS[kind]
        np.testing.assert_allclose(np.asarray(ask(X)), wanted)


@every_kind
def test_every_argument_takes_every_kind(kind, data):
    make, rest = COLUMNS[kind], {}
    groups = np.arange(N) % 50
    for name, column in {"treatment": data.treatment, "sample_weight": np.ones(N), "groups": groups}.items():
        rest[name] = make(column)
    loss = orthogonal_loss("cate", table(kind, data), make(data.y), learners=FAST, random_state=0, **rest)
    plain = orthogonal_loss(
        "cate", data.X, data.y, treatment=data.treatment, groups=groups, learners=FAST, random_state=0
    )
    np.testing.assert_allclose(loss.target, plain.target)
    verdict = assess(make(data.effect), loss, by={"group": make(groups % 2)}, draws=10, random_state=0)
    assert verdict.error == assess(data.effect, plain, draws=10, random_state=0).error
    assert compare(make(data.effect), make(data.effect + 1), loss).verdict == "harmed"


NULLABLE = {
    "Int64": pd.array([1, None, 3], dtype="Int64"),
    "Float64": pd.array([1.0, None, 3.0], dtype="Float64"),
    "boolean": pd.array([True, None, False], dtype="boolean"),
    "int64[pyarrow]": pd.array([1, None, 3], dtype="int64[pyarrow]"),
}


@pytest.mark.parametrize("dtype", NULLABLE)
def test_nullable_numbers_are_numbers_and_their_gaps_nan(dtype):
    column = NULLABLE[dtype]
    wanted = np.array([1.0, np.nan, float(column[2])])
    np.testing.assert_array_equal(as_matrix(pd.DataFrame({"x": column}))[:, 0], wanted)
    np.testing.assert_array_equal(as_numbers(pd.Series(column)[[0, 2]], "y"), wanted[[0, 2]])


@pytest.mark.parametrize("dtype", ["string", "string[pyarrow]", "str", "object", "category"])
def test_text_is_encoded_and_labels_stay_labels(dtype):
    column = pd.Series(["u", "v", "u"], dtype=dtype)
    np.testing.assert_array_equal(as_matrix(pd.DataFrame({"x": column}))[:, 0], [0, 1, 0])
    np.testing.assert_array_equal(as_labels(column, "treatment"), ["u", "v", "u"])


@pytest.mark.parametrize("column", [pl.Series(["u", "v", "u"], dtype=pl.Categorical), pl.Series(["u", "v", "u"])])
def test_text_of_polars_is_encoded_and_labels_stay_labels(column):
    np.testing.assert_array_equal(as_matrix(pl.DataFrame({"x": column}))[:, 0], [0, 1, 0])
    np.testing.assert_array_equal(as_labels(column, "treatment"), ["u", "v", "u"])


def test_text_of_pyarrow_is_encoded_and_labels_stay_labels():
    for column in (pa.array(["u", "v", "u"]), pa.array(["u", "v", "u"]).dictionary_encode()):
        np.testing.assert_array_equal(as_matrix(pa.table({"x": column}))[:, 0], [0, 1, 0])
        np.testing.assert_array_equal(as_labels(column, "treatment"), ["u", "v", "u"])


def test_columns_named_by_numbers_serve_as_they_are(data):
    """`pd.DataFrame(array)` is what many pass; scikit-learn too keeps names only where all are text."""
    frame = pd.DataFrame(data.X)
    model = CausalCalibrator(estimator=lambda X: np.asarray(X)[:, 0], method="linear", random_state=0)
    model.fit(frame, data.y, treatment=data.treatment, nuisances=data.nuisances)
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_allclose(model.predict(frame), model.predict(data.X))


def test_a_lazy_frame_is_refused_in_one_sentence(data):
    with pytest.raises(OrthocalError, match="must be in memory; it is a LazyFrame"):
        orthogonal_loss("cate", pl.LazyFrame(data.X), data.y, treatment=data.treatment)
