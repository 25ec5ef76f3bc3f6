"""A DoubleML best linear predictor of the effect: X is its basis, and it is asked there."""

import pandas as pd
from doubleml import DoubleMLData, DoubleMLIRM
from sklearn.linear_model import LinearRegression, LogisticRegression

import orthocal
from orthocal.datasets import simulate_cate

train, rest, test = (simulate_cate(2000, random_state=seed) for seed in (1, 2, 3))
basis = [pd.DataFrame(data.X, columns=list("abcde")) for data in (train, rest, test)]
irm = DoubleMLIRM(DoubleMLData.from_arrays(train.X, train.y, train.treatment), LinearRegression(), LogisticRegression())
model = irm.fit().cate(basis[0])

calibrator = orthocal.CausalCalibrator(estimator=model, random_state=0)
calibrator.fit(basis[1], rest.y, treatment=rest.treatment)  # rows the model never saw

loss = orthocal.orthogonal_loss("cate", basis[2], test.y, treatment=test.treatment, random_state=0)
print(orthocal.compare(model.confint(basis[2])["effect"], calibrator.predict(basis[2]), loss).verdict)
