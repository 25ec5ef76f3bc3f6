"""An exact population for every registered effect: cells enumerated, or a treatment integrated by quadrature."""

import itertools

import numpy as np
from scipy.optimize import brentq

from orthocal import (
    CATE,
    CATT,
    LATE,
    BoundedCATE,
    CausalDerivative,
    CVaRUnderTreatment,
    ExpectileUnderTreatment,
    OverlapCATE,
    Population,
    QuantileUnderTreatment,
    RelativeEffect,
    RestrictedMeanTime,
    SurvivalProbability,
)

X_SHARE = np.array([0.2, 0.5, 0.3])
PI = np.array([0.3, 0.5, 0.8])
MU0, MU1 = np.array([1.0, 3.0, 0.5]), np.array([2.0, 3.5, 3.0])
NOISE = ((-1.0, 2 / 3), (2.0, 1 / 3))


def arms():
    """Rows (x, a, noise): the two-arm population."""
    rows = list(itertools.product(range(3), (0, 1), NOISE))
    x = np.array([row[0] for row in rows])
    a = np.array([row[1] for row in rows])
    noise, chance = np.array([row[2] for row in rows]).T
    probability = X_SHARE[x] * np.where(a == 1, PI[x], 1 - PI[x]) * chance
    return x, a, np.where(a == 1, MU1[x], MU0[x]) + noise, probability


def cate():
    x, a, y, probability = arms()
    nuisances = {"propensity": PI[x], "outcome_control": MU0[x], "outcome_treated": MU1[x]}
    return Population(x, probability, y, a, nuisances, MU1 - MU0)


def overlap():
    x, a, y, probability = arms()
    nuisances = {"propensity": PI[x], "outcome": (PI * MU1 + (1 - PI) * MU0)[x]}
    return Population(x, probability, y, a, nuisances, MU1 - MU0)


def catt():
    x, a, y, probability = arms()
    return Population(x, probability, y, a, {"propensity": PI[x], "outcome_control": MU0[x]}, MU1 - MU0)


def relative():
    x, a, y, probability = arms()
    nuisances = {"propensity": PI[x], "outcome_control": MU0[x], "outcome_treated": MU1[x]}
    return Population(x, probability, y, a, nuisances, MU1 / MU0)


ZETA = np.array([0.4, 0.5, 0.7])  # instrument propensity
M0, M1 = np.array([0.1, 0.2, 0.0]), np.array([0.6, 0.9, 0.8])  # treatment without and with the instrument
TAU = np.array([1.0, -0.5, 2.0])


def late():
    """Rows (x, z, stratum, noise): always-takers M0, compliers M1 - M0, never-takers; strata differ in their level."""
    rows = list(itertools.product(range(3), (0, 1), ("always", "complier", "never"), NOISE))
    x = np.array([row[0] for row in rows])
    z = np.array([row[1] for row in rows])
    kind = np.array([row[2] for row in rows])
    noise, chance = np.array([row[3] for row in rows]).T
    share = np.select([kind == "always", kind == "complier"], [M0[x], (M1 - M0)[x]], (1 - M1)[x])
    a = np.where(kind == "always", 1, np.where(kind == "complier", z, 0))
    level = np.select([kind == "always", kind == "complier"], [2.0, MU0[x]], -1.0)
    gain = np.where(kind == "always", 5.0, TAU[x])
    probability = X_SHARE[x] * np.where(z == 1, ZETA[x], 1 - ZETA[x]) * share * chance
    y = level + a * gain + noise
    keep = probability > 0
    x, z, a, y, probability = x[keep], z[keep], a[keep], y[keep], probability[keep]
    mean_y, mean_a = (
        [np.array([_mean(v, probability, (x == c) & (z == w)) for c in range(3)]) for w in (0, 1)] for v in (y, a)
    )
    nuisances = {
        "instrument_propensity": ZETA[x],
        "outcome_z0": mean_y[0][x],
        "outcome_z1": mean_y[1][x],
        "treatment_z0": mean_a[0][x],
        "treatment_z1": mean_a[1][x],
    }
    return Population(x, probability, y, a, nuisances, TAU, instrument=z)


def _mean(value, probability, rows):
    return float(value[rows] @ probability[rows] / probability[rows].sum())


def derivative():
    """A | x normal, integrated by 12-point Gauss-Hermite quadrature, exact for the polynomials used here."""
    node, weight = np.polynomial.hermite_e.hermegauss(12)
    weight = weight / weight.sum()
    rows = list(itertools.product(range(3), range(12), NOISE))
    x = np.array([row[0] for row in rows])
    j = np.array([row[1] for row in rows])
    noise, chance = np.array([row[2] for row in rows]).T
    mean, scale = np.array([0.0, 1.0, -1.0])[x], np.array([1.0, 0.5, 2.0])[x]
    a = mean + scale * node[j]
    mu, slope = (1 + x) * a + 0.3 * a**2, (1 + x) + 0.6 * a
    average = (1 + np.arange(3)) + 0.6 * np.array([0.0, 1.0, -1.0])
    nuisances = {"outcome": mu, "outcome_derivative": slope, "score_correction": (a - mean) / scale**2}
    # An error in the outcome comes with its own derivative.
    directions = {
        "outcome": {"outcome": 0.5 * a**2 + x * a, "outcome_derivative": a + x},
        "score_correction": {"score_correction": 0.4 * a + 0.2 * x},
    }
    return Population(x, X_SHARE[x] * weight[j] * chance, mu + noise, a, nuisances, average, directions=directions)


VALUES = np.array([1.0, 2.0, 3.0, 4.0])
LAW = np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.4, 0.3, 0.2], [0.4, 0.1, 0.2, 0.3]])


def outcomes():
    """Rows (x, a, value): outcomes 1 to 4 in the arm, the same law shifted by 10 outside it."""
    rows = list(itertools.product(range(3), (0, 1), range(4)))
    x, a, j = (np.array(column) for column in zip(*rows, strict=True))
    probability = X_SHARE[x] * np.where(a == 1, PI[x], 1 - PI[x]) * LAW[x, j]
    return x, a, VALUES[j] + 10 * (a == 0), probability


SHIFT = np.array([0.0, 1.0, 3.0])
"""Of the outcomes of a cell, so that cells have different quantiles and expectiles."""


def quantile():
    # In every cell P(Y <= 2 + shift) = 0.5.
    x, a, y, probability = outcomes()

    def below(prediction):
        return ((VALUES + SHIFT[x][:, None] <= prediction[:, None]) * LAW[x]).sum(axis=1)

    return Population(x, probability, y + SHIFT[x], a, {"propensity": PI[x], "below": below}, 2.0 + SHIFT)


def cvar():
    # Upper half: q = 2.5 lies between outcomes, so that its error has no effect of first order.
    x, a, y, probability = outcomes()
    tail = (LAW[:, 2:] @ VALUES[2:]) / LAW[:, 2:].sum(axis=1)
    nuisances = {"propensity": PI[x], "tail_quantile": np.full(len(x), 2.5), "tail_mean": tail[x]}
    nuisances["tail_difference"] = np.zeros(len(x))
    return Population(x, probability, y, a, nuisances, tail)


def expectile():
    # The mean score is 0 at the expectile; the extra nuisance is the mean score at the prediction.
    x, a, y, probability = outcomes()
    level = 0.3

    def score(v, outcome, law):
        return (np.where(outcome <= v, 1 - level, level) * (v - outcome) * law).sum(axis=-1)

    def mean_score(prediction):
        return score(prediction[:, None], VALUES + SHIFT[x][:, None], LAW[x])

    truth = SHIFT + np.array([brentq(score, 1, 4, args=(VALUES, law), xtol=1e-14) for law in LAW])
    return Population(x, probability, y + SHIFT[x], a, {"propensity": PI[x], "below": mean_score}, truth)


HAZARD = np.array(
    [[[0.2, 0.3, 0.1], [0.4, 0.1, 0.3], [0.1, 0.5, 0.2]], [[0.1, 0.2, 0.2], [0.3, 0.3, 0.1], [0.2, 0.1, 0.4]]]
)
CENSORING = np.array(
    [[[0.1, 0.2, 0.3], [0.0, 0.3, 0.1], [0.2, 0.1, 0.2]], [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3], [0.1, 0.3, 0.2]]]
)
"""By arm, cell of covariates and period: chances of the event, and of censoring on the way into the period."""
TIMES = (1.0, 2.5, 3.0)
WIDTHS = np.diff(TIMES, prepend=0.0)
EXPECTED = WIDTHS * HAZARD / -np.log1p(-HAZARD)
"""Time lived in a period by those who enter it, the hazard being constant inside."""


def survival_rows():
    """Rows (x, a, period of the event, period that censoring keeps from); 3 is never. Events come first in a period.

    Events lie where those of a constant hazard do on average, censoring at the ends of periods; the first is inside period 0.
    """
    rows = list(itertools.product(range(3), (0, 1), range(4), range(4)))
    x, a, t, c = (np.array(column) for column in zip(*rows, strict=True))
    chances = [np.concatenate([h, np.ones((2, 3, 1))], axis=2) for h in (HAZARD, CENSORING)]
    reached = [np.concatenate([np.ones((2, 3, 1)), np.cumprod(1 - h, axis=2)], axis=2) for h in (HAZARD, CENSORING)]
    t_chance, c_chance = (
        (chance * before)[a, x, period] for chance, before, period in zip(chances, reached, (t, c), strict=True)
    )
    inside = (EXPECTED - (1 - HAZARD) * WIDTHS) / HAZARD  # of those with an event, the time lived in its period
    event = (t < c) & (t < 3)
    start = np.append(0.0, TIMES)
    at_event = start[t] + inside[a, x, np.minimum(t, 2)]
    at_end = np.where(c == 0, 0.25, np.where(np.minimum(t, c) == 3, 4.0, start[c]))
    probability = X_SHARE[x] * np.where(a == 1, PI[x], 1 - PI[x]) * t_chance * c_chance
    return x, a, np.where(event, at_event, at_end), event, probability


def censored(truth):
    x, a, y, event, probability = survival_rows()
    curves = {
        f"{role}_survival_{arm}": np.cumprod(1 - chance[k], axis=1)[x]
        for k, arm in enumerate(("control", "treated"))
        for role, chance in (("event", HAZARD), ("censoring", CENSORING))
    }
    tilt = np.cos(1.0 + 2.0 * np.arange(3))[x][:, None] * np.array([0.05, 0.1, 0.08])
    directions = {name: {name: tilt * (1 + k)} for k, name in enumerate(curves)}
    directions["propensity"] = {"propensity": 2 * tilt[:, 0]}
    return Population(x, probability, y, a, {"propensity": PI[x], **curves}, truth, event=event, directions=directions)


def survival():
    alive = np.prod(1 - HAZARD, axis=2)
    return censored(alive[1] - alive[0])


def rmst():
    entered = np.concatenate([np.ones((2, 3, 1)), np.cumprod(1 - HAZARD, axis=2)[:, :, :-1]], axis=2)
    lived = (entered * EXPECTED).sum(axis=2)
    return censored(lived[1] - lived[0])


THIRDS = np.array([-2.0, 0.5, 1.5])
"""Of equal chance: a third of the outcomes lies beyond the quantile at 2/3, and as many below that at 1/3."""


def bound():
    """Rows (x, a, third); strength 2, upper end, so that the ends of thirds count. Quantiles lie between outcomes."""
    rows = list(itertools.product(range(3), (0, 1), range(3)))
    x, a, j = (np.array(column) for column in zip(*rows, strict=True))
    scale = np.where(a == 1, np.array([1.0, 2.0, 0.5])[x], np.array([0.5, 1.0, 1.5])[x])
    y = np.where(a == 1, MU1[x], MU0[x]) + scale * THIRDS[j]
    probability = X_SHARE[x] * np.where(a == 1, PI[x], 1 - PI[x]) / 3
    scales = {"treated": np.array([1.0, 2.0, 0.5])[x], "control": np.array([0.5, 1.0, 1.5])[x]}
    means = {"treated": MU1[x], "control": MU0[x]}
    nuisances = {"propensity": PI[x], **{f"outcome_{name}": mean for name, mean in means.items()}}
    for name, (quantile, tail) in {"treated": (1.0, 1.5), "control": (-0.75, -2.0)}.items():
        nuisances[f"quantile_{name}"] = means[name] + quantile * scales[name]
        nuisances[f"tail_{name}"] = means[name] + tail * scales[name]
    ends = {name: (means[name] + nuisances[f"tail_{name}"]) / 2 for name in means}  # rho at strength 2
    upper = PI[x] * means["treated"] + (1 - PI[x]) * ends["treated"]
    lower = (1 - PI[x]) * means["control"] + PI[x] * ends["control"]
    effect = np.array([(upper - lower)[x == cell][0] for cell in range(3)])
    return Population(x, probability, y, a, nuisances, effect)


POPULATIONS = {
    "cate": (CATE(), cate),
    "late": (LATE(), late),
    "derivative": (CausalDerivative(), derivative),
    "quantile": (QuantileUnderTreatment(0.5), quantile),
    "overlap": (OverlapCATE(), overlap),
    "catt": (CATT(), catt),
    "relative": (RelativeEffect(), relative),
    "cvar": (CVaRUnderTreatment(tail=0.5), cvar),
    "expectile": (ExpectileUnderTreatment(0.3), expectile),
    "survival": (SurvivalProbability(3.0, grid=TIMES), survival),
    "rmst": (RestrictedMeanTime(3.0, grid=TIMES), rmst),
    "bound": (BoundedCATE(2.0, "upper"), bound),
}
"""Every registered effect, with a population that is exact for it."""
