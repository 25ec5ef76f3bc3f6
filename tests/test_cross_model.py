import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.tree import DecisionTreeRegressor

from orthocal import CrossCalibratedModel, OrthocalError, QuantileUnderTreatment
from orthocal.datasets import simulate_cate, simulate_quantile

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}


@pytest.fixture(scope="module")
def data():
    return simulate_cate(3000, random_state=0)


def fitted(data, estimator, **settings):
    model = CrossCalibratedModel(estimator, **{"learners": FAST, "random_state": 0, "method": "isotonic", **settings})
    return model.fit(data.X, data.y, treatment=data.treatment)


@pytest.mark.parametrize("combine", ["median", "mean"])
def test_an_overfitted_model_is_mended_without_a_hold_out_set(data, combine):
    fresh = simulate_cate(3000, random_state=1)
    model = fitted(data, DecisionTreeRegressor(min_samples_leaf=5, random_state=0), combine=combine)
    raw = np.median([one.predict(fresh.X) for one in model.models_], axis=0)
    before, after = (np.mean((guess - fresh.effect) ** 2) for guess in (raw, model.predict(fresh.X)))
    assert after < 0.7 * before


def test_predictions_are_out_of_fold(data):
    model = fitted(data, DecisionTreeRegressor(min_samples_leaf=1, random_state=0))
    # A tree with one row a leaf repeats its training targets; out of fold it cannot.
    assert (model.prediction_ != model.loss_.target).mean() > 0.99
    assert len(model.models_) == 5


class TwoRegressions:
    """An own effect model: one regression per arm."""

    def __init__(self, X, y, treatment):
        arms = [LinearRegression().fit(X[treatment == a], y[treatment == a]) for a in (0, 1)]
        self.effect = lambda rows: arms[1].predict(rows) - arms[0].predict(rows)


def test_a_function_trains_the_users_own_model(data):
    model = fitted(data, TwoRegressions, method="linear")
    assert np.corrcoef(model.predict(data.X), data.effect)[0, 1] > 0.5


def test_a_function_serves_effects_without_a_quadratic_loss():
    data = simulate_quantile(1500, quantile=0.75, random_state=0)

    def train(X, y, treatment):
        own = treatment == 1
        return LinearRegression().fit(X[own], y[own])

    learners = {"propensity": LogisticRegression(), "below": LogisticRegression()}
    model = CrossCalibratedModel(train, QuantileUnderTreatment(0.75), "linear", learners=learners, random_state=0)
    model.fit(data.X, data.y, treatment=data.treatment)
    assert abs(np.mean(model.predict(data.X) - data.effect)) < 0.2
    with pytest.raises(OrthocalError, match="A regressor must have a quadratic loss"):
        clone(model).set_params(estimator=LinearRegression(), effect="catt", learners=None).fit(
            data.X, data.y, treatment=data.treatment
        )


def test_text_covariates_keep_their_meaning_at_predict():
    data = simulate_cate(600, random_state=0)
    X = pd.DataFrame(data.X, columns=list("abcde")).assign(site=np.array(["u", "v", "w"])[np.arange(600) % 3])
    model = CrossCalibratedModel(RidgeCV(), method="identity", learners=FAST, random_state=0)
    model.fit(X, data.y, treatment=data.treatment)
    every, few = model.predict(X), model.predict(X[X["site"] == "v"])
    np.testing.assert_allclose(every[X["site"] == "v"], few)
    with pytest.raises(OrthocalError, match="level 'z' of covariate `site` must have been seen"):
        model.predict(X.assign(site="z"))
    with pytest.raises(OrthocalError, match="must have the columns it had in fit"):
        model.predict(X.drop(columns="site"))


def test_what_is_missing_is_said(data):
    with pytest.raises(OrthocalError, match="must be fitted first"):
        CrossCalibratedModel(LinearRegression()).predict(data.X)
    with pytest.raises(OrthocalError, match="`combine` must be one of 'median', 'mean'"):
        fitted(data, LinearRegression(), combine="vote")
    with pytest.raises(OrthocalError, match="must return the fitted model"):
        fitted(data, lambda X, y, treatment: None)
