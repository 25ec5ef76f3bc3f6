"""A model of the package metalearners, which is asked for predictions out of sample."""

import pandas as pd
from metalearners import TLearner
from sklearn.ensemble import RandomForestRegressor

import orthocal
from orthocal.datasets import simulate_cate

train, rest, test = (simulate_cate(2000, random_state=seed) for seed in (1, 2, 3))
X_train, X_rest, X_test = (pd.DataFrame(data.X, columns=list("abcde")) for data in (train, rest, test))
settings = {"is_classification": False, "n_variants": 2, "n_folds": 2, "random_state": 0}
model = TLearner(nuisance_model_factory=RandomForestRegressor, **settings)
model.fit(X_train, pd.Series(train.y), pd.Series(train.treatment))

calibrator = orthocal.CausalCalibrator(estimator=model, random_state=0)
calibrator.fit(X_rest, rest.y, treatment=rest.treatment)  # rows the model never saw

loss = orthocal.orthogonal_loss("cate", X_test, test.y, treatment=test.treatment, random_state=0)
print(orthocal.compare(model.predict(X_test, is_oos=True)[:, 0, 0], calibrator.predict(X_test), loss).verdict)
