"""At home in scikit-learn: parameters, clones, pickles, routing, pipelines, searches and its own checks."""

import pickle
import pydoc

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthocal import CATE, CausalCalibrator, CrossCalibratedModel, Histogram, OrthocalError
from orthocal.datasets import simulate_cate
from orthocal.observations import as_matrix

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}
KNOWN = {"propensity": 0.5}


@pytest.fixture(scope="module")
def data():
    return simulate_cate(600, confounding=0, random_state=1)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class Sum:
    """An effect model that any table can be given to; its name is the same in every process, as names of tests must be."""

    def __repr__(self):
        return "add_up"

    def __call__(self, X):
        return np.nan_to_num(as_matrix(X)).sum(axis=1)


add_up = Sum()


def train(X, y, treatment):
    """Return a model as a user's own function would."""
    return add_up


ESTIMATORS = {
    "calibrator": lambda **settings: CausalCalibrator(estimator=add_up, random_state=0, folds=2, **settings),
    "regressor by folds": lambda **settings: CrossCalibratedModel(Ridge(), random_state=0, folds=2, **settings),
    "own model by folds": lambda **settings: CrossCalibratedModel(train, random_state=0, folds=2, **settings),
}
every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)


@every_estimator
def test_parameters_go_in_and_come_out(make):
    estimator = make(effect=CATE(arm="b", control="a"), method=Histogram(bins=5))
    twin = clone(estimator)
    assert twin.get_params()["effect"] == CATE(arm="b", control="a")
    assert twin.get_params()["method__bins"] == 5
    twin.set_params(effect="overlap", method__bins=7)
    assert (twin.get_params()["effect"], twin.get_params()["method"].bins) == ("overlap", 7)
    assert estimator.get_params()["method"].bins == 5
    assert "CATE(arm='b', control='a')" in repr(estimator)
    assert set(vars(estimator)) == set(estimator.get_params(deep=False))


@every_estimator
def test_a_pickle_answers_as_the_original(make, data):
    estimator = make(method="linear", learners=FAST).fit(data.X, data.y, treatment=data.treatment)
    twin = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(twin.effect(data.X), estimator.predict(data.X))
    assert twin.get_params()["effect"] == "cate"


@every_estimator
def test_effect_is_asked_as_of_an_econml_model(make, data):
    arms = np.array(["a", "b"])[data.treatment]
    estimator = make(effect=CATE(arm="b", control="a"), method="linear", learners=FAST)
    estimator.fit(data.X, data.y, treatment=arms)
    plain = estimator.predict(data.X)
    np.testing.assert_array_equal(estimator.effect(data.X, T0="a", T1="b"), plain)
    np.testing.assert_array_equal(estimator.effect(data.X, T0=np.full(600, "a"), T1=["b"] * 600), plain)
    with pytest.raises(OrthocalError, match="`T0` must be 'a', the value that was calibrated for; it is 'b'"):
        estimator.effect(data.X, T0="b", T1="a")
    with pytest.raises(OrthocalError, match="`T1` must be 'b', the value that was calibrated for; it is 1"):
        estimator.effect(data.X, T1=1)
    np.testing.assert_array_equal(estimator.set_params(effect="late").effect(data.X, T0=0, T1=1), plain)


@pytest.mark.parametrize("kind", [CausalCalibrator, CrossCalibratedModel])
def test_help_tells_of_effect(kind):
    assert "asked for as EconML's models are" in pydoc.render_doc(kind.effect)
    assert "effect" in pydoc.render_doc(kind)


@every_estimator
def test_unfitted_is_what_scikit_learn_calls_it(make):
    with pytest.raises(NotFittedError, match="must be fitted first"):
        make().predict(np.ones((2, 2)))


@every_estimator
def test_the_names_of_covariates_are_remembered(make, data):
    X = pd.DataFrame(data.X, columns=list("abcde"))
    estimator = make(method="linear", learners=FAST).fit(X, data.y, treatment=data.treatment)
    assert estimator.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(OrthocalError, match="`X` must have the columns it had in fit"):
        estimator.predict(X[list("edcba")])
    estimator.fit(data.X, data.y, treatment=data.treatment)
    assert (hasattr(estimator, "feature_names_in_"), estimator.n_features_in_) == (False, 5)


def test_a_pipeline_learns_nuisances(data):
    X = pd.DataFrame(data.X, columns=list("abcde"))
    scaler = make_column_transformer((StandardScaler(), [0, 1]), remainder="passthrough").set_output(transform="pandas")
    learners = {"propensity": make_pipeline(scaler, LogisticRegression()), "outcome": make_pipeline(scaler, Ridge())}
    weight = np.linspace(1, 2, 600)
    calibrator = CausalCalibrator(method="linear", learners=learners, random_state=0)
    calibrator.fit(X, data.y, treatment=data.treatment, prediction=1 + 2 * data.effect, sample_weight=weight)
    assert calibrator.map_.slope == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("routed", [False, True])
def test_a_pipeline_is_weighted_as_its_last_step_would_be(data, routed):
    def predicted(learner, weight):
        model = CrossCalibratedModel(learner, method="linear", learners={"outcome": learner}, random_state=0)
        model.fit(data.X, data.y, treatment=data.treatment, nuisances=KNOWN, sample_weight=weight)
        return model.predict(data.X)

    weight = np.linspace(1, 9, 600)
    with sklearn.config_context(enable_metadata_routing=routed):
        piped = predicted(make_pipeline("passthrough", Ridge()), weight)
    np.testing.assert_array_equal(piped, predicted(Ridge(), weight))
    assert np.abs(piped - predicted(Ridge(), None)).max() > 1e-3


@pytest.mark.usefixtures("routing")
def test_a_pipeline_ends_in_a_calibrator(data):
    def model(X):
        return 3 * X[:, 0]

    last = CausalCalibrator(method="linear", estimator=model, learners=FAST, random_state=0)
    pipeline = make_pipeline(StandardScaler(), last.set_fit_request(treatment=True))
    pipeline.fit(data.X, data.y, treatment=data.treatment)
    X = StandardScaler().fit_transform(data.X)
    np.testing.assert_array_equal(pipeline.predict(data.X), pipeline[-1].calibrate(3 * X[:, 0]))


def requested(calibrator, **names):
    return calibrator.set_fit_request(**names).set_score_request(**names)


@pytest.mark.usefixtures("routing")
def test_a_search_finds_the_method(data):
    prediction = np.where(data.effect > 0, 5.0, -5.0) + data.effect  # ranks are right, and no line mends it
    calibrator = CausalCalibrator(learners=FAST, folds=2, random_state=0)
    names = {"treatment": True, "prediction": True, "sample_weight": True, "nuisances": True, "groups": True}
    search = GridSearchCV(
        requested(calibrator, **names), {"method": ["identity", "linear", "isotonic"]}, cv=GroupKFold(3)
    )
    search.fit(
        data.X,
        data.y,
        treatment=data.treatment,
        prediction=prediction,
        sample_weight=np.ones(600),
        groups=np.arange(600) // 2,
        nuisances=KNOWN,
    )
    score = dict(zip(["identity", "linear", "isotonic"], search.cv_results_["mean_test_score"], strict=True))
    assert score["identity"] < score["linear"]
    assert search.best_params_["method"] == max(score, key=score.get)
    again = search.best_estimator_.calibrate([0.0])
    np.testing.assert_array_equal(again, search.best_estimator_.map_.predict([0.0]))


@pytest.mark.usefixtures("routing")
def test_a_search_keeps_a_frozen_model_fitted(data):
    other = simulate_cate(600, confounding=0, random_state=2)
    model = LinearRegression().fit(other.X, 1 + 2 * other.effect)
    grid = {"method": ["identity", "linear"], "learners": [FAST]}
    calibrator = CausalCalibrator(estimator=FrozenEstimator(model), random_state=0)
    search = GridSearchCV(requested(calibrator, treatment=True), grid, cv=2)
    search.fit(data.X, data.y, treatment=data.treatment)
    assert search.best_params_["method"] == "linear"
    assert search.predict(data.X).shape == (600,)
    with pytest.raises(OrthocalError, match="sklearn.frozen.FrozenEstimator"):
        clone(CausalCalibrator(estimator=model)).fit(data.X, data.y, treatment=data.treatment)


@pytest.mark.usefixtures("routing")
def test_a_search_routes_an_instrument(data):
    calibrator = requested(CausalCalibrator("late", learners={**FAST, "treatment": LogisticRegression()}, folds=2))
    names = {"treatment": True, "instrument": True, "prediction": True}
    search = GridSearchCV(requested(calibrator, **names), {"method": ["identity"]}, cv=2, error_score="raise")
    taken = np.where(np.arange(600) % 7 == 0, 1 - data.treatment, data.treatment)
    search.fit(data.X, data.y, treatment=taken, instrument=data.treatment, prediction=data.effect)
    assert np.isfinite(search.best_score_)


def trial(X):
    """Return what a trial would add to covariates: every other row is treated."""
    return {"treatment": np.arange(X.shape[0]) % 2, "nuisances": KNOWN}


class Trial(CausalCalibrator):
    """The calibrator with its keyword arguments filled in, for scikit-learn's checks pass X and y only."""

    def fit(self, X, y):
        return super().fit(X, y, **trial(X))

    def score(self, X, y):
        return super().score(X, y, **trial(X))


class CrossTrial(CrossCalibratedModel):
    """The same of the other estimator."""

    def fit(self, X, y):
        return super().fit(X, y, **trial(X))


REFUSED_IN_OWN_WORDS = {
    "check_complex_data": "complex covariates are refused, in another sentence than the check looks for",
    "check_fit2d_1sample": "one row is refused for having one arm, in another sentence",
    "check_fit2d_predict1d": "one dimension is refused, in another sentence",
    "check_n_features_in_after_fitting": "other columns than in fit are refused, in another sentence",
    "check_requires_y_none": "a missing outcome is refused, in another sentence",
}
NO_COVARIATES = {"check_estimators_empty_data_messages": "no covariates at all are allowed: an experiment needs none"}


def excepted(estimator):
    """Return the checks that must fail, each with its reason; of the others, every one must pass."""
    no_covariates = NO_COVARIATES if isinstance(estimator, CausalCalibrator) else {}
    return {**REFUSED_IN_OWN_WORDS, **no_covariates}


def imputing(learner):
    return make_pipeline(SimpleImputer(), learner)


QUICK = {"learners": {"outcome": imputing(Ridge())}, "method": "linear", "folds": 2, "random_state": 0}


@parametrize_with_checks(
    [Trial(estimator=add_up, **QUICK), CrossTrial(imputing(Ridge()), **QUICK)], expected_failed_checks=excepted
)
def test_scikit_learns_own_checks_hold(estimator, check):
    check(estimator)
