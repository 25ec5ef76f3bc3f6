import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from orthocal import OrthocalError
from orthocal.distributions import FunctionDistribution, TableDistribution
from orthocal.effects.quantile import quantile_levels, widened
from orthocal.nuisances.conditional_distribution import ConditionalDistribution


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
