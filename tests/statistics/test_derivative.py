"""The causal derivative: coverage of the average's interval, from weak to strong confounding, and the balance behind it."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from orthocal import assess, orthogonal_loss
from tests.derivative_designs import AVERAGES, strong

DRAWS, N = 200, 1000
FAST = {"outcome": LinearRegression(), "treatment": LinearRegression()}
"""What the start leaves is learnt by lines here, which are faster than trees. Two folds, of 500 rows each, are harder
than the default five; default learners are judged on fewer draws."""


def judged(design, draws, n=N, learners=None, folds=5):
    """Error of the average, its standard error, whether the interval covers, and the balance of the treatment, per draw."""
    found = []
    for seed in draws:
        data = design(n, seed)
        told = {"learners": learners, "folds": folds, "random_state": seed}
        loss = orthogonal_loss("derivative", data.X, data.y, treatment=data.treatment, **told)
        low, high = assess(data.effect, loss, draws=1, random_state=0).average.interval
        found.append(
            [
                (low + high) / 2 - AVERAGES[design],
                (high - low) / 3.92,
                low <= AVERAGES[design] <= high,
                loss.overlap.balance.treatment,
            ]
        )
    return np.array(found)


def said(design, found, n=N):
    error, deviation, covers, balance = found.T
    return (
        f"{design.__name__}, {n} rows, {len(found)} draws: bias {error.mean():+.4f}, sd {error.std():.4f}, "
        f"se {deviation.mean():.4f}, covers {covers.mean():.3f}, balance {balance.mean():.3f} +- {balance.std():.3f}"
    )


def reaches(covers, lowest):
    """Whether the 99% binomial interval of a coverage reaches the lowest that is allowed."""
    from scipy.stats import binomtest

    return binomtest(int(covers.sum()), len(covers)).proportion_ci(0.99).high >= lowest


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
@pytest.mark.parametrize("design", AVERAGES, ids=lambda design: design.__name__)
def test_the_interval_of_the_average_covers(design):
    found = judged(design, range(DRAWS), learners=FAST, folds=2)
    print(said(design, found))
    assert reaches(found[:, 2], 0.9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
def test_default_learners_cover_and_balance_under_strong_confounding():
    found = judged(strong, range(30))
    print(said(strong, found))
    assert reaches(found[:, 2], 0.9)
    assert (np.abs(found[:, 3] - 1) < 0.1).mean() > 0.9
