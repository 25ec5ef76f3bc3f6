"""Shared parts of the statistical tests: known nuisances, true errors."""

import numpy as np
from scipy.stats import binomtest

from orthocal import QuadraticLoss
from orthocal.datasets import simulate_cate
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
