"""A scikit-learn model of the effect, frozen, and a search for the method of calibration with metadata routing."""

import sklearn
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV

import orthocal
from orthocal.datasets import simulate_cate

sklearn.set_config(enable_metadata_routing=True)
train, rest, test = (simulate_cate(2000, confounding=0, random_state=seed) for seed in (1, 2, 3))
doubled = 2 * (2 * train.treatment - 1) * train.y  # in an experiment with propensity 1/2 its mean is the effect
model = RandomForestRegressor(random_state=0).fit(train.X, doubled)

frozen = FrozenEstimator(model)  # its clones stay fitted
learners = {"propensity": LogisticRegression(), "outcome": RidgeCV()}
calibrator = orthocal.CausalCalibrator(estimator=frozen, learners=learners, random_state=0)
calibrator = calibrator.set_fit_request(treatment=True).set_score_request(treatment=True)
search = GridSearchCV(calibrator, {"method": ["identity", "linear", "isotonic"]}, cv=3)
search.fit(rest.X, rest.y, treatment=rest.treatment)  # rows the model never saw

loss = orthocal.orthogonal_loss("cate", test.X, test.y, treatment=test.treatment, random_state=0)
print(orthocal.compare(model.predict(test.X), search.predict(test.X), loss).verdict)
