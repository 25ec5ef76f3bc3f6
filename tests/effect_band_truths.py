"""Curves with a known truth that a band must hold, and rows drawn from them."""

from dataclasses import dataclass

import numpy as np

from orthocal.losses import QuadraticLoss

SHAPES = {
    "flat": np.zeros_like,
    "linear": lambda v: 1.5 * v,
    "curved": lambda v: 2 * v**2 * np.sign(v),
    "step": lambda v: np.where(v > 0.2, 1.0, -0.5),
    "steep end": lambda v: np.exp(3 * (v - 1)),
    "plateau": lambda v: np.clip(4 * v, -0.5, 0.5),
}
"""Nondecreasing curves on (-1, 1)."""


def rows_alone(rng, n):
    """Independent rows with noise that grows with the prediction."""
    prediction = rng.uniform(-1, 1, n)
    return prediction, (1 + 0.5 * prediction) * rng.standard_normal(n), np.ones(n), None


def rows_weighted(rng, n):
    """Rows with sampling weights between 0.25 and 4, and noise that is the larger the larger the weight."""
    prediction, noise, _, _ = rows_alone(rng, n)
    weight = 4 ** rng.uniform(-1, 1, len(noise))
    return prediction, noise * weight**0.25, weight, None


def rows_clustered(rng, n):
    """Clusters of five rows with the same shock, whose predictions lie anywhere."""
    prediction, noise, weight, _ = rows_alone(rng, n)
    groups = np.arange(len(noise)) // 5
    return prediction, noise + rng.standard_normal(groups.max() + 1)[groups], weight, groups


def rows_in_villages(rng, n):
    """Clusters of five rows with the same shock and the same prediction."""
    _, noise, weight, _ = rows_alone(rng, n)
    groups = np.arange(len(noise)) // 5
    shock, prediction = rng.standard_normal(groups.max() + 1), rng.uniform(-1, 1, groups.max() + 1)
    return prediction[groups], noise + shock[groups], weight, groups


ROWS = {"alone": rows_alone, "weighted": rows_weighted, "clustered": rows_clustered, "villages": rows_in_villages}


def drawn(rows, shape, n, rng):
    """Return predictions, their loss, and the true average effect at each of them."""
    prediction, noise, weight, groups = ROWS[rows](rng, n)
    truth = SHAPES[shape](prediction)
    return prediction, QuadraticLoss(weight * (truth + noise), weight, groups=groups), truth


def holds(band, prediction, truth):
    """Return whether a band holds the truth at every prediction at which it has an end."""
    low, high = band.interval(prediction)
    return not ((low > truth) | (high < truth)).any()


BINDING = {"affine": "linear", **{name: name for name in ("flat", "step", "steep end", "plateau")}}
"""The five shapes of the confounded study, and the curves they are."""


@dataclass(frozen=True)
class Confounded:
    """A study whose treatment depends on what outcomes depend on, curved in both; E[effect | prediction] is known.

    With the prediction v = tanh(x0 + x3 / 2), effects are shape(v) + x2 / 2, with x2 independent of v and of mean 0: the average
    effect of people with prediction v is shape(v). Propensities are between 0.18 and 0.82, and follow x1, x2 and v. Rows are
    independent, or weighted (the weights follow the noise, not the effect), or come in clusters of five that share x1, treatment
    and a shock.
    """

    covariates: np.ndarray
    treatment: np.ndarray
    control_outcome: np.ndarray
    prediction: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None

    @classmethod
    def drawn(cls, rows, n, rng):
        """Draw it; `rows` is "alone", "weighted" or "clustered"."""
        clustered = rows == "clustered"
        groups = np.arange(n) // 5 if clustered else np.arange(n)
        x = rng.standard_normal((n, 5))
        x[:, 1] = rng.standard_normal(n)[groups]
        prediction = np.tanh(x[:, 0] + x[:, 3] / 2)
        pull = x[:, 1] + (0 if clustered else np.sin(2 * x[:, 2]) + prediction)
        treatment = (rng.random(n)[groups] < 0.5 + 0.32 * np.tanh(pull)).astype(int)
        noise = (1 + 0.4 * np.abs(x[:, 1])) * rng.standard_normal(n)
        noise = noise + 0.7 * rng.standard_normal(n)[groups] if clustered else noise
        weight = np.exp(0.6 * x[:, 4]) * (1 + 0.5 * (np.abs(noise) > 1)) if rows == "weighted" else None
        baseline = np.maximum(x[:, 1], 0) + 0.5 * x[:, 2] ** 2 + x[:, 0]
        return cls(x, treatment, baseline + noise, prediction, weight, groups if clustered else None)

    def truth(self, shape):
        """Return the average effect of people with each prediction."""
        return SHAPES[BINDING[shape]](self.prediction)

    def outcome(self, shape):
        """Return the outcomes that are seen."""
        return self.control_outcome + self.treatment * (self.truth(shape) + self.covariates[:, 2] / 2)
