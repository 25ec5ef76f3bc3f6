"""Intervals of policies cover the truth: three arms, true nuisances, predictions that promise too much."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from orthocal.decisions import policy
from orthocal.losses.arm_scores import ArmScores

RUNS = 1000
BUDGET = 0.08
ARMS = ("none", "call", "mail")
AVERAGES = {"clear": (0.45, 0.1), "equal": (0.3, 0.3), "clusters": (0.3, 0.3), "skewed": (0.45, 0.1)}
"""Average effects of the two treatments in each design; mean costs are the same."""


class Drawn(NamedTuple):
    scores: ArmScores
    spend: ArmScores
    predictions: dict
    cost: dict


def draw(design, n, rng, *, truth=False):
    """Draw rows; with `truth` the scores are the true conditional means.

    Effects are a_k + x_k/2 with x uniform on (-1, 1), so that average effects are those of `AVERAGES`. Clusters of 1 to 19 rows
    get the same treatment and share a deviation of the outcome and half of the covariates.
    """
    groups = np.repeat(np.arange(n), rng.integers(1, 20, n))[:n] if design == "clusters" else None
    x = rng.uniform(-1, 1, (n, 3))
    shared = np.zeros(n)
    if groups is not None:
        shift = np.where(rng.random((n, 3)) < 0.5, x[groups], x)  # half of the covariates are those of the cluster
        x, shared = shift, 0.7 * rng.standard_normal(n)[groups]
    effect = np.array(AVERAGES[design]) + x[:, :2] / 2
    mean = np.column_stack([x[:, 2], x[:, [2]] + effect])
    cost = np.column_stack([np.full(n, 0.15), 0.15 + 0.1 * x[:, 2]])
    spent = np.column_stack([np.zeros(n), cost * (1 + x[:, :2] / 2)])
    predictions = {"tau": 1.3 * effect + 0.2 * np.sin(5 * x[:, :2]), "other": effect[:, ::-1] + 0.1}
    values = mean
    if not truth:
        odds = np.exp(np.column_stack([np.zeros(n), x[:, :2] / 2])) if groups is None else np.ones((n, 3))
        chance = odds / odds.sum(axis=1, keepdims=True)
        got = (rng.random((n, 1)) > np.cumsum(chance, axis=1)[:, :2]).sum(axis=1)
        got = got if groups is None else got[groups]
        mine = np.arange(3) == got[:, None]
        noise = rng.lognormal(0, 1, n) - np.exp(0.5) if design == "skewed" else rng.standard_normal(n)
        values = mean + mine * (noise + shared)[:, None] / chance
        spent = spent + mine * (0.05 * rng.standard_normal(n))[:, None] / chance
    scores, spend = (ArmScores(arms=ARMS, values=v, weight=np.ones(n), groups=groups) for v in (values, spent))
    return Drawn(scores, spend, predictions, {"call": cost[:, 0], "mail": cost[:, 1]})


def judged(drawn, budget=None, draws=200):
    return policy(
        drawn.scores, drawn.predictions, cost=drawn.cost, spend=drawn.spend, budget=budget, draws=draws, random_state=1
    )


def quantities(found):
    """Return (number, interval) of everything that is estimated."""
    tau, end = found.values["tau"], " within the budget" if found.budget is not None else ""
    blanket = list(found.values)[1]
    return {
        f"value by tau{end}": (tau.value.value, tau.value.interval),
        f"value of a blanket rule{end}": (found.values[blanket].value.value, found.values[blanket].value.interval),
        f"over the best blanket rule{end}": (tau.over_blanket.value, tau.over_blanket.interval),
        f"predicted - estimated{end}": (tau.excess.value, tau.excess.interval),
        f"return on spend{end}": (tau.return_on_spend.value, tau.return_on_spend.interval),
        f"cost per gain{end}": (tau.cost_per_gain.value, tau.cost_per_gain.interval),
    }


@cache
def truth(design):
    """Return the true numbers and the true curves, from two million rows of true effects."""
    rows = draw(design, 2_000_000, np.random.default_rng(0), truth=True)
    without, within = judged(rows), judged(rows, BUDGET, draws=2)
    numbers = {name: one[0] for found in (without, within) for name, one in quantities(found).items()}
    return numbers, within.curve


def covered(design, seed, n):
    """Return whether each interval, and each band, covers the truth in one draw of the rows."""
    numbers, curve = truth(design)
    rows = draw(design, n, np.random.default_rng([seed, n]))
    without, within = judged(rows), judged(rows, BUDGET)
    found = {
        name: ends is None or ends[0] <= numbers[name] <= ends[1]  # a ratio's interval may have no end, and says so
        for one in (without, within)
        for name, (_, ends) in quantities(one).items()
    }
    for name, band, true in (
        ("band of the curve", within.curve.rules["tau"], curve.rules["tau"]),
        ("band of the difference", within.curve.differences["other - tau"], curve.differences["other - tau"]),
    ):
        at = np.interp(within.curve.budget, curve.budget, true["gain"])
        found[name] = bool(((band["band_lower"] <= at) & (at <= band["band_upper"]))[1:].all())
    return found


def coverages(design, n, runs=RUNS):
    every = [covered(design, seed, n) for seed in range(runs)]
    return {name: float(np.mean([one[name] for one in every])) for name in every[0]}


CAUTIOUS = ("band", "cost per gain")
"""They may cover more: bands hold at many points at once, and
where a gain is not distinguishable from 0 the cost per gain has no interval."""


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 4000])
@pytest.mark.parametrize("design", list(AVERAGES))
def test_intervals_cover_the_truth(design, n):
    found = coverages(design, n)
    print(design, n, found)
    least, most = (binom.ppf(q, RUNS, share) / RUNS for q, share in ((0.005, 0.93), (0.995, 0.97)))
    ends = {name: (least, 0.995 if name.startswith(CAUTIOUS) else most) for name in found}
    assert {name: share for name, share in found.items() if not ends[name][0] <= share <= ends[name][1]} == {}
