"""Models of the real libraries are asked rightly: each answer is compared with what the library itself says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CATE, CausalCalibrator, CrossCalibratedModel, OrthocalError
from orthocal.calibration.effect_models import prediction_of
from orthocal.datasets import simulate_cate, simulate_late

# What libraries call among each other may be on its way out in one of them; that is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}
ARMS = np.array(["none", "a", "b"])


@pytest.fixture(scope="module")
def trained():
    """Rows with three arms: "b" has the effect, "a" and "none" do nothing."""
    data = simulate_cate(900, random_state=0)
    coin = np.random.default_rng(0).integers(0, 2, 900)
    return data, np.where(data.treatment == 1, 2, coin)


@pytest.fixture(scope="module")
def fresh():
    return simulate_cate(400, random_state=1)


def package(name):
    return pytest.importorskip(name, reason=f"{name} is not installed; `make test-tools` installs it")


def calibrated(model, fresh, effect="cate"):
    calibrator = CausalCalibrator(effect, "linear", estimator=model, learners=FAST, random_state=0)
    levels = np.array([getattr(effect, "control", 0), getattr(effect, "arm", 1)])
    return calibrator.fit(fresh.X, fresh.y, treatment=levels[fresh.treatment])


@pytest.mark.parametrize("name", ["LinearDML", "CausalForestDML"])
def test_econml_dml(name, trained, fresh):
    data, _ = trained
    settings = {"model_y": LinearRegression(), "model_t": LogisticRegression(), "discrete_treatment": True}
    model = getattr(package("econml.dml"), name)(**settings, random_state=0)
    model.fit(data.y, data.treatment, X=data.X)
    np.testing.assert_allclose(prediction_of(model, fresh.X, CATE()), model.effect(fresh.X))
    calibrator = calibrated(model, fresh)
    wanted = calibrator.map_.predict(model.effect(fresh.X))
    np.testing.assert_allclose(calibrator.effect(fresh.X, T0=0, T1=1), wanted)
    np.testing.assert_allclose(clone(calibrator).get_params()["estimator"].effect(fresh.X), model.effect(fresh.X))


def test_econml_between_named_arms(trained, fresh):
    data, arm = trained
    learners = {"model_propensity": LogisticRegression(), "model_regression": LinearRegression()}
    model = package("econml.dr").LinearDRLearner(**learners, categories=list(ARMS), random_state=0)
    model.fit(data.y, ARMS[arm], X=data.X)
    for effect in (CATE(arm="b", control="none"), CATE(arm="b", control="a")):
        asked = model.effect(fresh.X, T0=effect.control, T1=effect.arm)
        np.testing.assert_array_equal(prediction_of(model, fresh.X, effect), asked)
    calibrated(model, fresh, CATE(arm="b", control="a"))


def econml_learner():
    return package("econml.metalearners").TLearner(models=LinearRegression())


def econml_dml():
    settings = {"model_y": LinearRegression(), "model_t": LogisticRegression(), "discrete_treatment": True}
    return package("econml.dml").LinearDML(**settings, random_state=0)


def causalml_learner():
    return package("causalml.inference.meta").BaseTRegressor(LinearRegression())


def metalearners_learner():
    settings = {"n_variants": 2, "is_classification": False, "n_folds": 2, "random_state": 0}
    return package("metalearners").TLearner(nuisance_model_factory=LinearRegression, **settings)


@pytest.mark.parametrize("estimator", [econml_learner, econml_dml, causalml_learner, metalearners_learner])
def test_models_trained_by_folds(estimator, trained, fresh):
    data, _ = trained
    model = CrossCalibratedModel(estimator(), method="linear", learners=FAST, random_state=0)
    model.fit(data.X, data.y, treatment=data.treatment)
    assert np.corrcoef(model.effect(fresh.X), fresh.effect)[0, 1] > 0.5
    assert len({id(one) for one in model.models_}) == 15


def test_econml_with_an_instrument_trained_by_folds():
    data = simulate_late(2000, random_state=0)
    estimator = package("econml.iv.dml").OrthoIV(
        model_y_xw=LinearRegression(),
        model_t_xw=LinearRegression(),
        model_z_xw=LinearRegression(),
        random_state=0,
    )
    model = CrossCalibratedModel(estimator, "late", "linear", repeats=2, random_state=0)
    model.fit(data.X, data.y, treatment=data.treatment, instrument=data.instrument, nuisances=data.nuisances)
    assert abs(np.mean(model.predict(data.X) - data.effect)) < 0.5


@pytest.mark.parametrize("name", ["BaseSRegressor", "BaseTRegressor", "BaseXRegressor"])
def test_causalml_learners(name, trained, fresh):
    data, arm = trained
    model = getattr(package("causalml.inference.meta"), name)(LinearRegression(), control_name="none")
    model.fit(data.X, y=data.y, treatment=ARMS[arm])
    columns = model.predict(fresh.X)
    assert columns.shape == (400, 2)
    for column, level in enumerate(("a", "b")):
        answer = prediction_of(model, fresh.X, CATE(arm=level, control="none"))
        np.testing.assert_allclose(answer, columns[:, column])
    with pytest.raises(OrthocalError, match="effects are against 'none'"):
        calibrated(model, fresh, CATE(arm="b", control="a"))


def test_causalml_forest(trained, fresh):
    data, arm = trained
    forest = package("causalml.inference.tree").UpliftRandomForestClassifier
    model = forest(control_name="none", n_estimators=3, min_samples_leaf=50, random_state=0, n_jobs=1)
    model.fit(data.X, treatment=ARMS[arm], y=(data.y > 0).astype(int))
    answer = prediction_of(model, fresh.X, CATE(arm="b", control="none"))
    np.testing.assert_array_equal(answer, model.predict(fresh.X)[:, 1])


def test_causalml_with_one_arm(trained, fresh):
    data, _ = trained
    model = package("causalml.inference.meta").BaseTRegressor(LinearRegression())
    model.fit(data.X, y=data.y, treatment=data.treatment)
    calibrator = calibrated(model, fresh)
    wanted = calibrator.map_.predict(model.predict(fresh.X)[:, 0])
    np.testing.assert_array_equal(calibrator.predict(fresh.X), wanted)


def test_doubleml_best_linear_predictor(trained, fresh):
    data, _ = trained
    doubleml = package("doubleml")
    rows = doubleml.DoubleMLData.from_arrays(data.X, data.y, data.treatment)
    irm = doubleml.DoubleMLIRM(rows, LinearRegression(), LogisticRegression()).fit()
    model = irm.cate(pd.DataFrame(data.X, columns=list("abcde")))
    X = pd.DataFrame(fresh.X, columns=list("abcde"))
    np.testing.assert_allclose(prediction_of(model, X), fresh.X @ model.coef)
    calibrator = CausalCalibrator(method="linear", estimator=model, learners=FAST, random_state=0)
    answer = calibrator.fit(X, fresh.y, treatment=fresh.treatment).predict(X)
    np.testing.assert_array_equal(answer, calibrator.map_.predict(model.confint(X)["effect"]))
    with pytest.raises(OrthocalError, match="it is a DoubleMLIRM. Pass the predictions themselves"):
        prediction_of(irm, X)


@pytest.mark.parametrize("outcome", ["number", "class"])
def test_metalearners(outcome, trained, fresh):
    data, arm = trained
    learner = package("metalearners").TLearner
    is_class = outcome == "class"
    factory = LogisticRegression if is_class else LinearRegression
    model = learner(nuisance_model_factory=factory, is_classification=is_class, n_variants=3, n_folds=2, random_state=0)
    y = pd.Series((data.y > 0).astype(int) if is_class else data.y)
    model.fit(pd.DataFrame(data.X), y, pd.Series(arm))
    X = pd.DataFrame(fresh.X)
    for level in (1, 2):
        answer = prediction_of(model, X, CATE(arm=level))
        np.testing.assert_array_equal(answer, model.predict(X, is_oos=True)[:, level - 1, -1])
    assert np.corrcoef(answer, fresh.effect)[0, 1] > 0.5


def test_scikit_learn_regressor(trained, fresh):
    data, _ = trained
    model = RandomForestRegressor(n_estimators=10, random_state=0).fit(data.X, data.effect)
    calibrator = calibrated(model, fresh)
    np.testing.assert_array_equal(calibrator.predict(fresh.X), calibrator.map_.predict(model.predict(fresh.X)))
