"""Probabilities read from boosted trees at many values at once are those that the model itself gives at each."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from orthocal.nuisances import tree_tables
from orthocal.nuisances.tree_tables import boosted_trees, probability_table

VALUES = np.linspace(-2, 2, 21)


def rows(n=1500, missing=0.0):
    """Covariates, values, and whether an outcome around the first covariate is at most the value."""
    rng = np.random.default_rng(0)
    X, value = rng.standard_normal((n, 3)), rng.choice(VALUES, n)
    answer = X[:, 0] + rng.standard_normal(n) <= value
    X[rng.random((n, 3)) < missing] = np.nan
    return X, value, answer.astype(int)


def fitted(learner, X, value, answer):
    return learner.fit(np.column_stack([X, value]), answer)


def asked(model, X):
    return np.column_stack([model.predict_proba(np.column_stack([X, np.full(len(X), v)]))[:, 1] for v in VALUES])


@pytest.fixture
def read(monkeypatch):
    """The table as it is read from trees; the model itself is asked once, to see that it agrees."""

    def table(model, X, values):
        times, own = [], tree_tables._asked
        monkeypatch.setattr(tree_tables, "_asked", lambda *rest: times.append(1) or own(*rest))
        found = probability_table(model, X, values)
        assert len(times) == 1
        return found

    return table


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("more", [{}, {"monotonic_cst": [0, 0, 0, 1]}, {"max_depth": 6}])
def test_trees_are_read_as_the_model_reads_them(missing, more, read):
    X, value, answer = rows(missing=missing)
    model = fitted(HistGradientBoostingClassifier(max_iter=40, **more), X, value, answer)
    np.testing.assert_allclose(read(model, X, VALUES), asked(model, X), atol=1e-12)


def test_values_at_a_threshold_and_rows_in_several_runs(read):
    X, value, answer = rows(5000)
    X = np.round(X, 1)
    model = fitted(HistGradientBoostingClassifier(max_iter=20), X, value, answer)
    cuts = np.concatenate([tree.threshold[tree.feature == 3] for tree in boosted_trees(model, 3, VALUES)])
    cuts = np.unique(cuts)[:5]
    table = read(model, X, cuts)
    for place, cut in enumerate(cuts):
        own = model.predict_proba(np.column_stack([X, np.full(len(X), cut)]))[:, 1]
        np.testing.assert_allclose(table[:, place], own, atol=1e-12)


@pytest.mark.parametrize(
    "learner", [LogisticRegression(), HistGradientBoostingClassifier(max_iter=10, categorical_features=[0])]
)
def test_other_models_are_asked_at_each_value(learner):
    X, value, answer = rows()
    X[:, 0] = np.clip(np.round(X[:, 0]), -1, 2) + 1
    model = fitted(learner, X, value, answer)
    assert boosted_trees(model, 3, VALUES) is None
    np.testing.assert_array_equal(probability_table(model, X, VALUES), asked(model, X))


def test_a_model_that_keeps_its_trees_in_another_way_is_asked_at_each_value():
    """Where what is read and what the model says differ, the model is right."""
    X, value, answer = rows()
    model = fitted(HistGradientBoostingClassifier(max_iter=10), X, value, answer)
    truth = asked(model, X)

    class Changed:
        _predictors, _baseline_prediction = model._predictors, model._baseline_prediction + 1.0
        predict_proba = staticmethod(model.predict_proba)

    np.testing.assert_array_equal(probability_table(Changed(), X, VALUES), truth)
