import matplotlib as mpl
import numpy as np
import pytest

from orthocal import QuadraticLoss
from orthocal.datasets import simulate_cate

mpl.use("Agg")


@pytest.fixture(scope="session")
def simulated():
    return simulate_cate(1200, random_state=7)


@pytest.fixture
def scored():
    """Predictions with ties and a weighted quadratic loss."""
    rng = np.random.default_rng(3)
    prediction = np.round(rng.standard_normal(300), 1)
    weight = rng.integers(1, 4, 300).astype(float)
    return prediction, QuadraticLoss(weight * (prediction + rng.standard_normal(300)), weight)
