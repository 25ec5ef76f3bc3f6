import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from orthocal import OrthocalError
from orthocal.distributions import FunctionDistribution, TableDistribution
from orthocal.effects.quantile import quantile_levels, widened
from orthocal.nuisances import conditional_distribution
from orthocal.nuisances.conditional_distribution import ConditionalDistribution, rows_to_stop_by
from orthocal.nuisances.learners import DISTRIBUTION_SETTINGS, SETTINGS


@pytest.fixture
def law():
    return TableDistribution(np.array([0.0, 1.0, 3.0]), np.array([[0.2, 0.5, 1.0], [0.0, 0.9, 1.0]]))


def test_a_table_is_integrated_exactly(law):
    def at(method, row, v):
        return float(getattr(law, method)(np.full(2, v))[row])

    for row in (0, 1):
        for v in (-1.0, 0.5, 1.0, 2.0, 4.0):
            once = quad(lambda u, row=row: at("below", row, u), -2, v, points=[0, 1, 3], limit=200)[0]
            twice = quad(lambda u, row=row: at("shortfall", row, u), -2, v, points=[0, 1, 3], limit=200)[0]
            assert at("shortfall", row, v) == pytest.approx(once, abs=1e-7)
            assert at("squared_shortfall", row, v) == pytest.approx(twice, abs=1e-7)


def test_mean_and_quantiles_by_hand(law):
    # Row 0: atom 0.2 at 0, 0.3 spread over (0, 1), 0.5 over (1, 3): mean 0.3 * 0.5 + 0.5 * 2 = 1.15
    np.testing.assert_allclose(law.mean(), [1.15, 0.9 * 0.5 + 0.1 * 2])
    np.testing.assert_allclose(law.quantile(0.35), [0.5, 0.35 / 0.9])
    np.testing.assert_allclose(law.quantile(0.1), [0.0, 1 / 9])
    np.testing.assert_allclose(law.quantile(0.95), [2.8, 2.0])
    np.testing.assert_allclose(law[np.array([1])].below(np.array([0.5])), [0.45])


def test_a_function_is_asked_at_its_own_rows():
    X = np.arange(6.0)[:, None]
    law = FunctionDistribution(lambda X, v: norm.cdf(v - X[:, 0]), X, np.linspace(-6, 12, 400))
    np.testing.assert_allclose(law.below(X[:, 0]), 0.5)
    part = law[np.array([1, 4])][np.array([1])]
    assert len(part) == 1
    np.testing.assert_allclose(part.below(np.array([4.0])), 0.5)
    np.testing.assert_allclose(law.mean(), X[:, 0], atol=0.01)
    np.testing.assert_allclose(law.quantile(0.5), X[:, 0], atol=0.01)
    np.testing.assert_allclose(law.shortfall(X[:, 0]), norm.pdf(0), atol=0.01)
    np.testing.assert_allclose(law.squared_shortfall(X[:, 0]), 0.25, atol=0.01)
    with pytest.raises(OrthocalError, match="`below` as given must be a probability"):
        FunctionDistribution(lambda X, v: v, X, np.arange(3.0)).below(np.full(6, 2.0))


@pytest.mark.parametrize("weight", [None, np.ones(3000)])
def test_a_learnt_law_rises_and_is_close(weight):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2))
    y = X[:, 0] + rng.logistic(size=3000)
    levels = np.quantile(y, np.linspace(0, 1, 21))
    model = ConditionalDistribution(LogisticRegression(), levels, random_state=0).fit(X, y, weight)
    table = model.predict(X[:200])
    assert (np.diff(table, axis=1) >= 0).all()
    truth = 1 / (1 + np.exp(-(levels - X[:200, :1])))
    assert np.abs(table - truth)[:, 1:-1].mean() < 0.03


def test_a_law_of_one_outcome_is_a_step():
    model = ConditionalDistribution(LogisticRegression(), np.array([0.5, 1.0]), random_state=0).fit(
        np.ones((5, 1)), np.ones(5) * 0.2
    )
    np.testing.assert_array_equal(model.predict(np.ones((2, 1))), 1.0)


def test_a_law_at_quantiles_keeps_what_lies_in_the_tails():
    """With evenly spaced probabilities the excess is .010 too large, and an expectile .02 too small."""
    outcome = np.random.default_rng(0).standard_normal(10_000)
    levels = widened(quantile_levels(outcome))
    law = TableDistribution(levels, ndtr(levels)[None, :])
    for v in np.array([[-1.0], [0.0], [1.0]]):
        assert law.shortfall(v) + law.mean() - v == pytest.approx(norm.pdf(v) - v * ndtr(-v), abs=0.002)


class Recorded(HistGradientBoostingClassifier):
    """Trees that keep what they were given."""

    def fit(self, X, y, sample_weight=None, *, X_val=None, y_val=None, sample_weight_val=None):
        self.taught_, self.held_out_ = (X, y, sample_weight), (X_val, y_val, sample_weight_val)
        return super().fit(X, y, sample_weight, X_val=X_val, y_val=y_val, sample_weight_val=sample_weight_val)


class CopiesSetAside(HistGradientBoostingClassifier):
    """Trees that cannot be given rows to stop by, as before scikit-learn 1.7."""

    def fit(self, X, y, sample_weight=None):
        self.rows_ = len(X)
        return super().fit(X, y, sample_weight)


takes_rows = pytest.mark.skipif(
    not has_fit_parameter(HistGradientBoostingClassifier, "X_val"), reason="scikit-learn 1.7 or later"
)


def skewed(n, seed):
    """Return covariates and lognormal outcomes whose logarithm has mean x0 / 2 and deviation 0.8."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, np.exp(X[:, 0] / 2 + 0.8 * rng.standard_normal(n))


@takes_rows
def test_trees_are_stopped_by_rows_of_which_they_were_taught_nothing():
    X, y = skewed(500, 0)
    weight = 1 + np.arange(500.0)
    learner = Recorded(max_iter=5, early_stopping=True, validation_fraction=0.2)
    model = ConditionalDistribution(learner, quantile_levels(y), random_state=0).fit(X, y, weight).model_
    assert len(model.taught_[0]) == 6 * 400
    assert len(model.held_out_[0]) == 6 * 100
    assert not set(model.taught_[0][:, 0]) & set(model.held_out_[0][:, 0])
    known = dict(zip(X[:, 0], zip(y, weight, strict=True), strict=True))
    for features, answer, own_weight in (model.taught_, model.held_out_):
        outcome, expected = np.array([known[x] for x in features[:, 0]]).T
        np.testing.assert_array_equal(own_weight, expected)
        np.testing.assert_array_equal(answer, outcome <= features[:, -1])


@takes_rows
@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"early_stopping": True, "validation_fraction": 0.1}, 5),
        ({"early_stopping": "auto", "validation_fraction": 0.1}, 5),
        ({"early_stopping": True, "validation_fraction": 20}, 20),
        ({"early_stopping": True, "validation_fraction": 40}, 25),
        ({"early_stopping": True, "validation_fraction": None}, 0),
        ({"early_stopping": False}, 0),
    ],
)
def test_rows_are_set_aside_as_the_learner_asks(settings, count):
    learner = HistGradientBoostingClassifier(**settings)
    assert rows_to_stop_by(learner, 50, np.random.default_rng(0)).sum() == count
    assert not rows_to_stop_by(CopiesSetAside(**settings), 50, np.random.default_rng(0)).any()


@takes_rows
@pytest.mark.parametrize("n", [2, 3, 7])
def test_few_rows_have_a_distribution_too(n):
    X, y = skewed(n, n)
    learner = HistGradientBoostingClassifier(**{**SETTINGS, **DISTRIBUTION_SETTINGS})
    for seed in range(5):
        table = ConditionalDistribution(learner, quantile_levels(y), random_state=seed).fit(X, y).predict(X)
        assert ((table >= 0) & (table <= 1)).all()


def test_many_rows_are_shown_at_fewer_levels(monkeypatch):
    monkeypatch.setattr(conditional_distribution, "MOST_STACKED", 2000)
    for n, copies in ((200, 6), (400, 5), (1500, 3)):
        X, y = skewed(n, 0)
        model = ConditionalDistribution(CopiesSetAside(max_iter=2), quantile_levels(y), random_state=0).fit(X, y)
        assert model.model_.rows_ == copies * n


@takes_rows
def test_rows_set_aside_make_a_distribution_more_accurate():
    """Squared error of skewed outcomes, 800 rows: about a quarter less than with trees stopped by copies of taught rows."""
    learners = {
        "rows": HistGradientBoostingClassifier(**{**SETTINGS, **DISTRIBUTION_SETTINGS}, random_state=0),
        "copies": CopiesSetAside(**SETTINGS, random_state=0),
    }
    error = {name: [] for name in learners}
    for seed in range(5):
        X, y = skewed(800, seed)
        fresh, levels = skewed(1000, 100 + seed)[0], quantile_levels(y)
        truth = ndtr((np.log(levels) - fresh[:, :1] / 2) / 0.8)
        for name, learner in learners.items():
            table = ConditionalDistribution(learner, levels, random_state=seed).fit(X, y).predict(fresh)
            error[name].append(np.mean((table - truth) ** 2))
    print({name: 1e4 * np.mean(found) for name, found in error.items()})
    assert np.mean(error["rows"]) < np.mean(error["copies"])
