import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.tree import DecisionTreeRegressor

from orthocal import CrossCalibratedModel, OrthocalError, QuantileUnderTreatment
from orthocal.calibration.cross_calibrated_model import _shrinkage
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
    raw = np.mean([one.predict(fresh.X) for one in model.models_], axis=0)
    before, after = (np.mean((guess - fresh.effect) ** 2) for guess in (raw, model.predict(fresh.X)))
    assert after < 0.7 * before


def test_predictions_are_out_of_fold(data):
    model = fitted(data, DecisionTreeRegressor(min_samples_leaf=1, random_state=0))
    # A tree with one row a leaf repeats its training targets; out of fold it cannot.
    assert (model.prediction_ != model.loss_.target).mean() > 0.99
    assert len(model.models_) == 15  # five folds of three partitions


def test_the_map_is_learnt_at_what_the_mean_of_all_models_would_say():
    # Three partitions of five folds: rows spread with variance 1, models err with variance 2 about them.
    rng = np.random.default_rng(0)
    signal = rng.standard_normal(200_000)
    models = signal + np.sqrt(2) * rng.standard_normal((15, 200_000))
    each = models[:3]
    slope = np.polyfit(each.mean(axis=0), models.mean(axis=0), 1)[0]
    # (1 + 2/15) / (1 + 2/3) = 0.68
    assert _shrinkage(each, 15, np.ones(200_000)) == pytest.approx(0.68, abs=0.01)
    assert slope == pytest.approx(0.68, abs=0.01)
    assert _shrinkage(each[:1], 5, np.ones(200_000)) == 1
    assert _shrinkage(np.ones((3, 10)), 15, np.ones(10)) == 1
    assert _shrinkage(models[:3] - signal, 15, np.ones(200_000)) == pytest.approx(1 / 5, abs=0.01)


def test_calibrated_effects_are_not_shrunk_too_much(data):
    fresh = simulate_cate(4000, random_state=1)
    slopes = {}
    for repeats in (1, 3):
        tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
        model = CrossCalibratedModel(tree, method="linear", repeats=repeats, random_state=0)
        model.fit(data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
        slopes[repeats] = np.polyfit(model.predict(fresh.X), fresh.effect, 1)[0]
    assert slopes[1] > 1.5
    assert abs(slopes[3] - 1) < 0.25


def test_folds_as_given_decide_how_many_partitions_there_are(data):
    folds = np.arange(3000) % 3
    assert len(fitted(data, LinearRegression(), folds=folds).models_) == 3
    both = np.column_stack([folds, np.arange(3000) // 1000])
    model = fitted(data, LinearRegression(), folds=both)
    assert len(model.models_) == 6
    target = model.loss_.target
    alone = LinearRegression().fit(data.X[both[:, 1] != 0], target[both[:, 1] != 0])
    np.testing.assert_allclose(model.models_[3].predict(data.X), alone.predict(data.X))


class LikeEconML:
    """A model that takes outcome and treatment first and is asked for effects."""

    def fit(self, Y, T, *, X=None, Z=None, sample_weight=None):
        self.rows, self.weighted, self.instrument = len(Y), sample_weight is not None, Z
        self.one = TwoRegressions(X, Y, T)

    def effect(self, X=None, *, T0=0, T1=1):
        return self.one.effect(X)


class LikeCausalML:
    def fit(self, X, treatment, y, p=None):
        self.one = TwoRegressions(X, y, treatment)

    def predict(self, X, treatment=None, y=None):
        return self.one.effect(X)[:, None]


class LikeMetalearners:
    def fit(self, X, y, w, n_jobs_cross_fitting=None):
        self.one = TwoRegressions(X, y, w)

    def predict(self, X, is_oos):
        assert is_oos
        return self.one.effect(X)[:, None, None]


@pytest.mark.parametrize("kind", [LikeEconML, LikeCausalML, LikeMetalearners])
def test_models_of_other_libraries_are_trained_by_folds(data, kind):
    estimator = kind()
    model = fitted(data, estimator, method="linear")
    by_hand = fitted(data, TwoRegressions, method="linear")
    np.testing.assert_allclose(model.predict(data.X), by_hand.predict(data.X))
    assert not vars(estimator)  # copies were trained


def test_weights_reach_a_model_that_takes_them(data):
    weight = np.random.default_rng(0).uniform(1, 2, 3000)
    model = CrossCalibratedModel(LikeEconML(), method="linear", learners=FAST, folds=2, repeats=1, random_state=0)
    model.fit(data.X, data.y, treatment=data.treatment, sample_weight=weight)
    assert all(one.weighted and one.instrument is None for one in model.models_)
    assert not any(one.weighted for one in fitted(data, LikeEconML(), folds=2, repeats=1).models_)


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


def test_rows_of_weight_zero_teach_nothing(data):
    weight = (np.arange(3000) % 2).astype(float)
    settings = {"method": "linear", "learners": FAST, "folds": 2, "repeats": 1, "random_state": 0}
    model = CrossCalibratedModel(LinearRegression(), **settings)
    model.fit(data.X, data.y, treatment=data.treatment, sample_weight=weight)
    assert np.corrcoef(model.predict(data.X), data.effect)[0, 1] > 0.5


def test_text_covariates_keep_their_meaning_at_predict():
    data = simulate_cate(600, random_state=0)
    X = pd.DataFrame(data.X, columns=list("abcde")).assign(site=np.array(["u", "v", "w"])[np.arange(600) % 3])
    model = CrossCalibratedModel(RidgeCV(), method="identity", learners=FAST, random_state=0)
    model.fit(X, data.y, treatment=data.treatment)
    every, few = model.predict(X), model.predict(X[X["site"] == "v"])
    np.testing.assert_allclose(every[X["site"] == "v"], few)
    with pytest.raises(OrthocalError, match="category 'z' of covariate `site` must have been seen"):
        model.predict(X.assign(site="z"))
    with pytest.raises(OrthocalError, match="must have the columns it had in fit"):
        model.predict(X.drop(columns="site"))


def test_what_is_missing_is_said(data):
    with pytest.raises(OrthocalError, match="must be fitted first"):
        CrossCalibratedModel(LinearRegression()).predict(data.X)
    with pytest.raises(OrthocalError, match="`combine` must be one of 'mean', 'median'"):
        fitted(data, LinearRegression(), combine="vote")
    with pytest.raises(OrthocalError, match="`repeats` must be a whole number of at least 1; it is 0"):
        fitted(data, LinearRegression(), repeats=0)
    with pytest.raises(OrthocalError, match="must return the fitted model"):
        fitted(data, lambda X, y, treatment: None)
