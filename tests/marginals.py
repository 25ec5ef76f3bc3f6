"""A population whose marginal quantiles and expectiles are known, and nuisances of it that are right or wrong."""

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin

from orthocal import ExpectileUnderTreatment, QuantileUnderTreatment, orthogonal_loss

QUANTILE, EXPECTILE = QuantileUnderTreatment(0.8), ExpectileUnderTreatment(0.8)
EXAGGERATION = 3.0


def _balance(v, level=0.8):
    """Mean score at v of a standard normal outcome."""
    short = v * norm.cdf(v) + norm.pdf(v)
    return (1 - level) * short - level * (short - v)


UNIT = {QUANTILE: float(ndtri(0.8)), EXPECTILE: brentq(_balance, -3, 3)}
"""Of a standard normal outcome."""
TRUTH = {effect: np.sqrt(2) * value for effect, value in UNIT.items()}
"""Of all rows together: outcomes in the arm are normal with variance 2."""


def draw(n, rng):
    """Return a table: x standard normal, treated with chance expit(x), Y = x + noise, and predictions three times too large.

    The quantile (expectile) of Y given x is x + that of the noise, so the prediction 3 (x + ...) has slope 1/3.
    """
    x = rng.standard_normal(n)
    propensity = expit(x)
    a = (rng.random(n) < propensity).astype(np.int64)
    return pd.DataFrame({"x": x, "y": x + rng.standard_normal(n), "a": a, "propensity": propensity})


def predicted(frame, effect):
    return EXAGGERATION * (frame.x.to_numpy() + UNIT[effect])


def right(X, v):
    """The true distribution of the outcome given x."""
    return ndtr(v - np.asarray(X)[:, 0])


def wrong(X, v):
    """Another distribution, the same for all."""
    return ndtr((v - 0.3 + 0 * np.asarray(X)[:, 0]) / 1.3)


NUISANCES = {"wrong propensity": (0.5, right), "wrong distribution": (None, wrong), "both right": (None, right)}


def loss_of(frame, effect, which, **more):
    """Return (prediction, loss); nuisances are right or wrong as named."""
    propensity, below = NUISANCES[which]
    given = {"propensity": frame.propensity if propensity is None else propensity, "below": below}
    prediction = predicted(frame, effect)
    loss = orthogonal_loss(
        effect, frame[["x"]], frame.y, treatment=frame.a, prediction=prediction, nuisances=given, **more
    )
    return prediction, loss


class Known(ClassifierMixin, BaseEstimator):
    """A classifier of {outcome <= level} on (x, level) that knows the truth."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        chance = right(X, X[:, -1])
        return np.column_stack([1 - chance, chance])
