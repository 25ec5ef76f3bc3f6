"""Curves with a known truth that a band must hold, and rows drawn from them."""

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
