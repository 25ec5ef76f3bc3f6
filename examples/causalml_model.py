"""A CausalML model with several arms, one column each: the effect names the arm and the control that are meant."""

import numpy as np
from causalml.inference.meta import BaseTRegressor
from sklearn.ensemble import RandomForestRegressor

import orthocal
from orthocal.datasets import simulate_cate

train, rest, test = (simulate_cate(2000, random_state=seed) for seed in (1, 2, 3))
letter = np.random.default_rng(0).random(2000) < 0.5  # of those without a call, half get a letter, which does nothing
arms = [np.where(data.treatment == 1, "call", np.where(letter, "letter", "none")) for data in (train, rest, test)]
model = BaseTRegressor(RandomForestRegressor(random_state=0), control_name="none")
model.fit(train.X, y=train.y, treatment=arms[0])  # it will answer with two columns: call, letter

effect = orthocal.CATE(arm="call", control="none")
calibrator = orthocal.CausalCalibrator(effect, estimator=model, random_state=0)
calibrator.fit(rest.X, rest.y, treatment=arms[1])  # rows the model never saw

loss = orthocal.orthogonal_loss(effect, test.X, test.y, treatment=arms[2], random_state=0)
print(orthocal.compare(model.predict(test.X)[:, 0], calibrator.predict(test.X), loss).verdict)
