import numpy as np
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from orthocal.nuisances import Nuisance, cross_fit
from orthocal.nuisances.learners import polynomial_learner, stagewise_learner
from orthocal.nuisances.wrapped import Stagewise


def test_the_second_stage_learns_what_the_first_leaves():
    """A line and a jump: least squares of 0, 1, 2, 7 is -0.8 + 2.2 x, which leaves 0.8, -0.4, -1.6, 1.2; a stump finds 7."""
    X, y = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 7.0])
    model = Stagewise(LinearRegression(), DecisionTreeRegressor(max_depth=1)).fit(X, y)
    left = -1.2 / 3
    np.testing.assert_allclose(model.predict(X), [max(-0.8 + left, 0), 1.4 + left, 3.6 + left, 7.0])
    np.testing.assert_allclose(model.predict([[-9.0], [99.0]]), [0.0, 7.0])  # within the range of what was learnt from


def test_both_stages_receive_the_weights():
    X, y = np.array([[0.0], [0.0], [1.0]]), np.array([0.0, 4.0, 1.0])
    model = Stagewise(LinearRegression(), DecisionTreeRegressor()).fit(X, y, sample_weight=np.array([3.0, 1.0, 1.0]))
    np.testing.assert_allclose(model.predict(X), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(model.first_.predict(X), [1.0, 1.0, 1.0])
    assert model.second_.tree_.weighted_n_node_samples[0] == 5


def test_stagewise_learners_follow_a_line_that_trees_follow_in_steps():
    """200 rows to learn from, and a covariate of which half is missing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    mean = X[:, 0] + 2 * X[:, 1]
    y = mean + 0.5 * rng.standard_normal(400)
    X[rng.random(400) < 0.5, 2] = np.nan
    nuisance, fold = Nuisance("outcome", "outcome", y), np.arange(400) % 2
    found = {
        kind: np.mean((cross_fit([nuisance], X, fold, learners=kind, random_state=0)["outcome"] - mean) ** 2)
        for kind in ("boosting", "stagewise")
    }
    assert found["stagewise"] < 0.3 * found["boosting"]
    assert is_classifier(
        stagewise_learner(Nuisance("propensity", "propensity", fold.astype(float), is_probability=True))
    )


def test_polynomial_learners_follow_products_that_a_lasso_of_columns_does_not():
    """400 rows to learn from, 12 columns of which three matter and one is half missing; fewer columns than may be chosen, too."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 12))
    mean = X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1] + X[:, 1] ** 3 / 2
    y = mean + 0.5 * rng.standard_normal(800)
    X[rng.random(800) < 0.5, 2] = np.nan
    nuisance, fold = Nuisance("outcome", "outcome", y), np.arange(800) % 2
    for columns in (12, 2):
        found = {
            kind: np.mean(
                (cross_fit([nuisance], X[:, :columns], fold, learners=kind, random_state=0)["outcome"] - mean) ** 2
            )
            for kind in ("stagewise", "polynomial")
        }
        assert found["polynomial"] < 0.5 * found["stagewise"]
    assert is_classifier(
        polynomial_learner(Nuisance("propensity", "propensity", fold.astype(float), is_probability=True))
    )
