"""The causal derivative: coverage of the average's interval, from weak to strong confounding, and the balance behind it."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from orthocal import assess, orthogonal_loss
from tests.derivative_designs import AVERAGES

FIRST = 30_000
"""Seeds that were not looked at when choices were made."""
FAST = {"outcome": LinearRegression(), "treatment": LinearRegression()}
"""Lines learn what the start leaves: faster than trees, so that more draws are judged, in two folds of 500 rows, which are
harder than the default five."""


def judged(design, draws, n, learners=None, folds=5):
    """Error of the average, its standard error, whether the interval covers, and the balance of the treatment, per draw."""
    found = []
    for seed in range(FIRST, FIRST + draws):
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


def said(design, found, n):
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
@pytest.mark.parametrize(("n", "draws"), [(500, 40), (1000, 25), (2000, 20), (5000, 20)])
@pytest.mark.parametrize("design", AVERAGES, ids=lambda design: design.__name__)
def test_default_learners_cover_the_average(design, n, draws):
    found = judged(design, draws, n)
    print(said(design, found, n))
    assert reaches(found[:, 2], 0.9)
    assert abs(found[:, 3].mean() - 1) < 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
@pytest.mark.parametrize("design", AVERAGES, ids=lambda design: design.__name__)
def test_fast_learners_cover_the_average(design):
    found = judged(design, 50, 1000, learners=FAST, folds=2)
    print(said(design, found, 1000))
    assert reaches(found[:, 2], 0.9)
