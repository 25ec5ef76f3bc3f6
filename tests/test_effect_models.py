"""How models are asked, by stand-ins that ask back as the real packages do; the packages themselves are in tests/tools."""

import inspect
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from orthocal import CATE, LATE, OrthocalError, QuantileUnderTreatment
from orthocal.calibration.effect_models import prediction_of

X = np.arange(12.0).reshape(4, 3)
ARMS = CATE(arm="b", control="none")


class LikeEconML:
    def effect(self, X=None, *, T0=0, T1=1):
        return np.array([f"{T0} to {T1}" == "none to b"] * len(X)) + X[:, 0]


class LikeCausalML:
    """One column per arm: 10 for "a", 20 for "b"."""

    control_name, t_groups = "none", np.array(["a", "b"])

    def predict(self, X, treatment=None, y=None):
        return np.column_stack([np.full(len(X), 10.0), np.full(len(X), 20.0)])


class LikeUpliftForest:
    classes_ = ("none", "a", "b")
    predict = LikeCausalML.predict


class LikeUpliftTree:
    """Outcomes, not effects: one column for each arm and the control."""

    classes_ = ("none", "a", "b")

    def predict(self, X):
        return X


class LikeMetalearners:
    """Arms 0, 1, 2 and the two classes of a binary outcome: the change of the second class is the effect."""

    n_variants = 3

    def predict(self, X, is_oos):
        assert is_oos
        change = np.array([[-0.1, 0.1], [-0.2, 0.2]])
        return np.broadcast_to(change, (len(X), 2, 2))


class LikeDoubleML:
    def confint(self, basis=None, joint=False, level=0.95):
        return pd.DataFrame({"2.5 %": -1.0, "effect": basis[:, 0], "97.5 %": 1.0})


def test_a_model_that_asks_between_which_treatments_is_told():
    np.testing.assert_array_equal(prediction_of(LikeEconML(), X, ARMS), 1 + X[:, 0])
    np.testing.assert_array_equal(prediction_of(LikeEconML(), X, LATE()), X[:, 0])


@pytest.mark.parametrize("model", [LikeCausalML(), LikeUpliftForest()])
def test_of_several_columns_the_arm_of_the_effect_is_meant(model):
    np.testing.assert_array_equal(prediction_of(model, X, ARMS), 20)
    np.testing.assert_array_equal(prediction_of(model, X, CATE(arm="a", control="none")), 10)


def test_metalearners_are_asked_out_of_sample():
    np.testing.assert_array_equal(prediction_of(LikeMetalearners(), X, CATE(arm=1)), 0.1)
    np.testing.assert_array_equal(prediction_of(LikeMetalearners(), X, CATE(arm=2)), 0.2)


def test_a_best_linear_predictor_is_asked_at_its_basis():
    np.testing.assert_array_equal(prediction_of(LikeDoubleML(), X), X[:, 0])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_that_have_names_are_told_apart_by_them(frame):
    def model(X):
        return frame({"a": np.full(len(X), 10.0), "b": np.full(len(X), 20.0)})

    np.testing.assert_array_equal(prediction_of(model, X, ARMS), 20)
    np.testing.assert_array_equal(prediction_of(model, X, QuantileUnderTreatment(arm="a")), 10)


@pytest.mark.parametrize("kind", [list, np.asarray, lambda v: v[:, None], pd.Series, pl.Series, pa.array])
def test_one_effect_per_row_comes_in_any_kind(kind):
    np.testing.assert_array_equal(prediction_of(lambda X: kind(X[:, 1]), X), X[:, 1])


def test_a_frozen_model_is_asked_for_what_it_holds():
    model = LinearRegression().fit(X, X[:, 0])
    np.testing.assert_allclose(prediction_of(FrozenEstimator(model), X), X[:, 0], atol=1e-12)
    np.testing.assert_array_equal(prediction_of(FrozenEstimator(LikeEconML()), X, ARMS), 1 + X[:, 0])


def test_a_function_that_does_not_tell_its_parameters_is_asked_all_the_same():
    with pytest.raises(ValueError, match="no signature"):
        inspect.signature(max)
    np.testing.assert_array_equal(prediction_of(SimpleNamespace(predict=max), [[2.0]]), [2.0])


@pytest.mark.parametrize(
    ("model", "effect", "message"),
    [
        (lambda X: X[:, :2], ARMS, "this function gives 2 columns and nothing says which is meant"),
        (LikeCausalML(), LATE(), "this LikeCausalML gives 2 columns and nothing says which is meant"),
        (LikeUpliftTree(), ARMS, "this LikeUpliftTree gives 3 columns and nothing says which is meant"),
        (LikeCausalML(), CATE(arm="c", control="none"), "one the estimator knows, 'a', 'b'; it is 'c'"),
        (LikeCausalML(), CATE(arm="b", control="a"), "effects are against 'none', so the control of `effect` must be"),
        (lambda X: np.ones((len(X), 1, 3)), ARMS, "`prediction` must be one column; its shape is (4, 1, 3)"),
        (lambda X: X[:2, 0], ARMS, "`prediction` must have one value per row; it has 2 for 4 rows"),
        (LinearRegression(), ARMS, "wrap it in sklearn.frozen.FrozenEstimator where it would be cloned"),
        (LinearRegression, ARMS, "it is the class LinearRegression. Pass"),
        (3, ARMS, "must have .effect(X) or .predict(X), or be callable; it is a int"),
    ],
)
def test_what_cannot_be_asked_is_said(model, effect, message):
    with pytest.raises(OrthocalError) as caught:
        prediction_of(model, X, effect)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
