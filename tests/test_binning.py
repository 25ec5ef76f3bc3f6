import time

import numpy as np

from orthocal import orthogonal_loss
from orthocal.nuisances.wrapped import Coarse


def test_few_values_in_the_same_order_and_missing_ones_missing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    X[::7, 1], X[:, 2] = np.nan, np.nan
    coarse = Coarse(bins=16).fit(X)
    own = coarse.transform(X)
    assert len(np.unique(own[:, 0])) == 16
    assert (np.diff(own[np.argsort(X[:, 0]), 0]) >= 0).all()
    np.testing.assert_array_equal(np.isnan(own), np.isnan(X))
    assert (coarse.transform(np.full((2, 3), 99.0))[:, 0] == 15).all()


def test_weights_cost_little(simulated):
    """Without the bins a weighted fit takes scikit-learn 1.9 many times as long as one without weights."""
    arguments = {"treatment": simulated.treatment, "random_state": 0, "n_jobs": 1}
    weight = np.random.default_rng(0).uniform(0.5, 2, len(simulated.y))
    times = []
    for weights in (None, weight):
        start = time.process_time()
        orthogonal_loss("cate", simulated.X, simulated.y, sample_weight=weights, **arguments)
        times.append(time.process_time() - start)
    assert times[1] < 3 * times[0]
