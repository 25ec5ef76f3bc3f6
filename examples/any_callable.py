"""Any function of X is a model: here two forests, one per arm, subtracted; the tables are polars, and so is the answer."""

import polars as pl
from sklearn.ensemble import RandomForestRegressor

import orthocal
from orthocal.datasets import simulate_cate

train, rest, test = (simulate_cate(2000, random_state=seed) for seed in (1, 2, 3))
rows = [train.treatment == arm for arm in (0, 1)]
arms = [RandomForestRegressor(random_state=0).fit(train.X[own], train.y[own]) for own in rows]
model = lambda X: arms[1].predict(X.to_numpy()) - arms[0].predict(X.to_numpy())

calibrator = orthocal.CausalCalibrator(estimator=model, random_state=0)
calibrator.fit(pl.DataFrame(rest.X), pl.Series(rest.y), treatment=pl.Series(rest.treatment))  # rows the model never saw

X = pl.DataFrame(test.X)
loss = orthocal.orthogonal_loss("cate", X, test.y, treatment=test.treatment, random_state=0)
print(orthocal.compare(model(X), calibrator.predict(X), loss).verdict)
