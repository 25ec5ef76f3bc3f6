"""An EconML model, calibrated: the result answers ``effect(X)`` and can take the model's place."""

from econml.metalearners import TLearner
from sklearn.ensemble import RandomForestRegressor

import orthocal
from orthocal.datasets import simulate_cate

train, rest, test = (simulate_cate(2000, random_state=seed) for seed in (1, 2, 3))
model = TLearner(models=RandomForestRegressor(random_state=0)).fit(train.y, train.treatment, X=train.X)

calibrator = orthocal.CausalCalibrator(estimator=model, random_state=0)
calibrator.fit(rest.X, rest.y, treatment=rest.treatment)  # rows the model never saw

loss = orthocal.orthogonal_loss("cate", test.X, test.y, treatment=test.treatment, random_state=0)
print(orthocal.compare(model.effect(test.X), calibrator.effect(test.X, T0=0, T1=1), loss).verdict)
