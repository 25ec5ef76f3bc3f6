"""CrossCalibratedModel: the slope of the true effect on what it predicts for new rows is 1."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from orthocal import CrossCalibratedModel
from orthocal.datasets import simulate_cate

ESTIMATORS = {
    "small tree": DecisionTreeRegressor(min_samples_leaf=20, random_state=0),
    "large tree": DecisionTreeRegressor(min_samples_leaf=5, random_state=0),
    "forest": RandomForestRegressor(20, min_samples_leaf=5, random_state=0),
    "boosting": HistGradientBoostingRegressor(max_iter=30, random_state=0),
}


def slopes(estimator, method, repeats, draws):
    fresh = simulate_cate(5000, random_state=10_000)
    found = []
    for seed in range(draws):
        data = simulate_cate(1500, random_state=seed)
        model = CrossCalibratedModel(estimator, method=method, repeats=repeats, random_state=seed)
        model.fit(data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
        found.append(np.polyfit(model.predict(fresh.X), fresh.effect, 1)[0])
    return float(np.mean(found)), float(np.std(found) / np.sqrt(draws))


@pytest.mark.slow
def test_the_slope_of_the_effect_on_the_calibrated_prediction_is_one():
    measured = []
    for name, estimator in ESTIMATORS.items():
        for method in ("linear", "isotonic"):
            slope, error = slopes(estimator, method, 3, 8)
            once, _ = slopes(estimator, method, 1, 4)
            print(f"{name}, {method}: slope {slope:.3f} (standard error {error:.3f}); with one partition {once:.3f}")
            measured.append(slope)
    print(f"on average {np.mean(measured):.3f}")
    assert abs(np.mean(measured) - 1) < 0.08
