import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CausalCalibrator, Histogram, HonestyWarning, OrthocalError, compare
from orthocal.datasets import simulate_cate

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}


@pytest.fixture(scope="module")
def data():
    return simulate_cate(1500, random_state=1)


def fitted(data, prediction=None, **settings):
    calibrator = CausalCalibrator(**{"learners": FAST, "random_state": 0, **settings})
    prediction = 1 + 2 * data.effect if prediction is None else prediction
    return calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=prediction)


@pytest.mark.parametrize("scheme", ["cross", "split"])
def test_a_distorted_prediction_is_mended(data, scheme):
    gaps = [
        fitted(data, method="linear", scheme=scheme, random_state=seed).calibrate(1 + 2 * data.effect) - data.effect
        for seed in range(5)
    ]
    assert np.median(np.sqrt(np.mean(np.square(gaps), axis=1))) < 0.25


def test_split_fits_the_map_on_the_rows_it_names(data):
    calibrator = fitted(data, scheme="split", split=0.4)
    assert len(calibrator.rows_) == len(calibrator.loss_) == pytest.approx(900, abs=2)
    assert set(calibrator.nuisances_) == {"propensity", "outcome_control", "outcome_treated"}
    assert np.isfinite(calibrator.nuisances_["propensity"]).all()
    with pytest.raises(OrthocalError, match="scheme='cross'"):
        _ = calibrator.honest_prediction_


def test_cross_uses_all_rows_and_nuisances_can_be_passed_back(data):
    calibrator = fitted(data)
    np.testing.assert_array_equal(calibrator.rows_, np.arange(1500))
    again = CausalCalibrator(random_state=0).fit(
        data.X, data.y, treatment=data.treatment, prediction=1 + 2 * data.effect, nuisances=calibrator.nuisances_
    )
    np.testing.assert_array_equal(again.calibrate(data.effect), calibrator.calibrate(data.effect))
    assert calibrator.overlap_.clipped["propensity"] == 0


def test_honest_predictions_come_from_maps_without_the_rows_fold(data):
    calibrator = fitted(data, method="linear")
    fold = calibrator.learnt_.fold
    others = fold != 0
    by_hand = np.polyfit(1 + 2 * data.effect[others], calibrator.loss_.target[others], 1)
    wanted = np.polyval(by_hand, 1 + 2 * data.effect[fold == 0])
    np.testing.assert_allclose(calibrator.honest_prediction_[fold == 0], wanted)
    assert compare(1 + 2 * data.effect, calibrator.honest_prediction_, calibrator.loss_).verdict == "improved"


def test_a_second_fit_forgets_the_first(data):
    calibrator = fitted(data, method="linear")
    first = calibrator.honest_prediction_
    calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=-(data.effect**2))
    assert np.abs(calibrator.honest_prediction_ - first).max() > 1e-6


def test_a_failed_fit_leaves_the_one_before(data):
    calibrator = fitted(data, method="linear")
    before = calibrator.map_, calibrator.loss_
    with pytest.raises(OrthocalError):
        calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=np.full(1500, np.nan))
    assert (calibrator.map_, calibrator.loss_) == before
    calibrator.set_params(method="isotonic")
    assert len(np.unique(calibrator.honest_prediction_)) > 1000  # still the linear maps it was fitted with


def test_before_fit_attributes_are_missing_not_broken():
    assert not hasattr(CausalCalibrator(), "loss_")
    assert not hasattr(CausalCalibrator(), "map_")


def test_an_unfitted_model_is_named(data):
    with pytest.raises(OrthocalError, match="`estimator` must be fitted, on other rows than these"):
        CausalCalibrator(estimator=LinearRegression()).fit(data.X, data.y, treatment=data.treatment)


def test_given_folds_are_used(data):
    fold = np.arange(1500) % 3
    np.testing.assert_array_equal(fitted(data, folds=fold).learnt_.fold, fold)


class Model:
    def predict(self, X):
        return 1 + 2 * np.asarray(X)[:, 0]


@pytest.mark.parametrize("model", [Model(), Model().predict], ids=["predict", "callable"])
def test_an_estimator_is_asked_for_its_predictions(data, model):
    calibrator = CausalCalibrator(method="linear", estimator=model, learners=FAST, random_state=0)
    calibrator.fit(data.X, data.y, treatment=data.treatment)
    by_hand = calibrator.calibrate(1 + 2 * data.X[:5, 0])
    np.testing.assert_array_equal(calibrator.predict(data.X[:5]), by_hand)
    np.testing.assert_array_equal(calibrator.effect(data.X[:5]), by_hand)


def test_columns_must_be_those_of_fit(data):
    X = pd.DataFrame(data.X, columns=list("abcde"))
    calibrator = CausalCalibrator(method="linear", estimator=Model(), learners=FAST, random_state=0)
    calibrator.fit(X, data.y, treatment=data.treatment)
    calibrator.predict(X)
    with pytest.raises(OrthocalError, match="`X` must have the columns it had in fit"):
        calibrator.predict(X.rename(columns={"a": "z"}))
    with pytest.raises(OrthocalError, match="`X` must have the columns it had in fit"):
        calibrator.predict(data.X)


def test_a_model_trained_on_these_rows_is_recognised(data):
    X, y = data.X[:200], data.y[:200]
    model = GaussianProcessRegressor().fit(X, y)
    calibrator = CausalCalibrator(method="linear", estimator=model, learners=FAST, random_state=0)
    with pytest.warns(HonestyWarning, match="trained on exactly these rows"):
        calibrator.fit(X, y, treatment=data.treatment[:200])


def test_score_prefers_the_calibrated_prediction(data):
    fresh = simulate_cate(1500, random_state=2)
    arguments = {"treatment": fresh.treatment, "prediction": 1 + 2 * fresh.effect}
    linear = fitted(data, method="linear").score(fresh.X, fresh.y, **arguments)
    identity = fitted(data, method="identity").score(fresh.X, fresh.y, **arguments)
    assert linear > identity + 0.5


def test_it_is_a_scikit_learn_estimator(data):
    calibrator = CausalCalibrator(method=Histogram(bins=5), folds=3)
    assert calibrator.get_params()["effect"] == "cate"
    assert clone(calibrator).get_params()["method"].bins == 5
    calibrator.set_params(method="linear")
    assert calibrator.method == "linear"
    calibrator.set_params(effect="other")
    assert calibrator.get_params()["effect"] == "other"
    assert "method='linear'" in repr(calibrator)


def test_it_pickles(data):
    calibrator = fitted(data)
    copy = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(copy.calibrate([0.0, 1.0]), calibrator.calibrate([0.0, 1.0]))


def test_what_is_missing_is_said(data):
    with pytest.raises(OrthocalError, match="`prediction` must be given, or an `estimator`"):
        CausalCalibrator().fit(data.X, data.y, treatment=data.treatment)
    with pytest.raises(OrthocalError, match="must be fitted first"):
        CausalCalibrator().calibrate([1.0])
    with pytest.raises(OrthocalError, match="must have an effect model"):
        fitted(data).predict(data.X)
    with pytest.raises(OrthocalError, match="must have .effect"):
        CausalCalibrator(estimator=3).fit(data.X, data.y, treatment=data.treatment)
    with pytest.raises(OrthocalError, match="`scheme` must be one of 'cross', 'split'"):
        fitted(data, scheme="both")
    with pytest.raises(OrthocalError, match="`split` must lie strictly between 0 and 1"):
        fitted(data, scheme="split", split=1)
    with pytest.raises(OrthocalError, match="`prediction` must have one value per row"):
        fitted(data, prediction=[1.0])
