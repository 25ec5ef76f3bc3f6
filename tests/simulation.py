"""Shared parts of the statistical tests: known nuisances, true errors."""

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest, expon, norm

from orthocal import QuadraticLoss
from orthocal.datasets import SimulatedData, simulate_cate
from orthocal.effects.cate import pseudo_outcome

EFFECT_SD = 0.8258
"""Of the effect of `simulate_cate`, measured on 10^6 rows."""


def oracle_draw(n, seed, **settings):
    """Data of simulate_cate and the loss that its true nuisances give."""
    data = simulate_cate(n, random_state=seed, **settings)
    truth = data.nuisances
    chi = pseudo_outcome(
        data.y,
        data.treatment == 1,
        data.treatment == 0,
        truth["propensity"],
        1 - truth["propensity"],
        truth["outcome_treated"],
        truth["outcome_control"],
    )
    return data, QuadraticLoss(chi, np.ones(n))


TAILS = {"normal": norm(), "exponential": expon(loc=-1)}
"""Distributions of noise with mean 0 and standard deviation 1."""


def simulate_tail(n, shape, seed, level=0.9):
    """The design of `simulate_quantile` with other noise: Y(1) = x1 + sin x2 + (0.5 + expit x2) times the noise, Y(0) = Y(1) - 1.

    **Effect**: the mean of Y(1) beyond its conditional quantile. Returns the data, with true nuisances, and the average effect of
    the population: location and scale have means 0 and 1, so it is the tail mean of the noise (1.755 and 2.303 at 0.9).
    """
    rng, noise = np.random.default_rng(seed), TAILS[shape]
    X = rng.standard_normal((n, 4))
    propensity = expit(X[:, 0] - X[:, 2] / 2)
    treatment = (rng.random(n) < propensity).astype(int)
    location, scale = X[:, 0] + np.sin(X[:, 1]), 0.5 + expit(X[:, 1])
    treated = location + scale * noise.ppf(rng.random(n))
    quantile, tail = noise.ppf(level), tail_mean(noise, noise.ppf(level), level)
    nuisances = {"propensity": propensity, "tail_quantile": location + scale * quantile, "location": location}
    nuisances |= {"tail_mean": location + scale * tail, "scale": scale}
    y = np.where(treatment == 1, treated, treated - 1)
    return SimulatedData(X, y, treatment, location + scale * tail, nuisances), float(tail)


def tail_mean(noise, quantile, level):
    """E[q + (Z - q)_+ / (1 - Q)] of the noise Z at any q, right or wrong."""
    quantile = np.asarray(quantile, dtype=float)
    if noise.dist.name == "norm":
        return quantile + (norm.pdf(quantile) - quantile * norm.sf(quantile)) / (1 - level)
    return quantile + np.where(quantile > -1, noise.sf(quantile), -quantile) / (1 - level)


def true_error(calibrated, effect):
    """Root mean square over level sets of mean effect minus prediction, on a large sample with known effects."""
    level, index = np.unique(calibrated, return_inverse=True)
    mean = np.bincount(index, effect) / np.bincount(index)
    return float(np.sqrt(np.mean((mean - level)[index] ** 2)))


def true_binned_error(prediction, effect, edges):
    """The estimand of assess, with bins at the edges it used."""
    index = np.searchsorted(edges, prediction)
    count = np.bincount(index, minlength=len(edges) + 1)
    gap = np.bincount(index, effect - prediction, len(edges) + 1) / np.maximum(count, 1)
    return float(np.sqrt(count @ gap**2 / count.sum()))


def share_in(values):
    return float(np.mean(values))


def reaches(share, draws, low, high):
    """Whether the 99% binomial interval of a rate reaches a range."""
    ends = binomtest(round(share * draws), draws).proportion_ci(0.99)
    return ends.low <= high and ends.high >= low
