"""Ranks, quantiles and expectiles: standard errors and coverage on populations whose answers are known."""

import numpy as np
import pytest
from scipy.stats import binom

from orthocal import QuadraticLoss
from orthocal.assessment.assess import _bins
from orthocal.assessment.average import average_effect
from orthocal.assessment.best_line import best_line
from orthocal.assessment.rate import rate
from orthocal.assessment.records import Settings
from orthocal.assessment.sweeps import SortedRows, answer
from tests.marginals import EXPECTILE, NUISANCES, QUANTILE, TRUTH, draw, loss_of
from tests.test_sweeps import direct_rates


def reaches(share, draws, low, high):
    """Whether the 99% binomial interval of a measured rate reaches the range asked for."""
    count = round(share * draws)
    least, most = (binom.ppf(q, draws, count / draws) / draws for q in (0.005, 0.995))
    return least <= high and most >= low


def rank_draw(kind, n, rng):
    """Rows whose effect is the prediction, uniform on [0, 1] or on levels; returns (prediction, loss).

    The prediction's distribution does not depend on weights or clusters, which leave the truth as it is. "treated" is the effect
    on the treated, of whom there are more where it is large.
    """
    prediction = rng.random(n)
    weight, groups, noise = np.ones(n), None, rng.standard_normal(n)
    if kind.endswith("levels"):
        levels = int(kind.split()[0])
        prediction = (np.floor(levels * prediction) + 0.5) / levels
    mass = weight
    if kind == "weights":
        weight = mass = rng.lognormal(size=n)
    elif kind == "treated":
        mass = (rng.random(n) < 0.2 + 0.6 * prediction).astype(float)
    elif kind == "clusters":
        groups = rng.integers(0, 100, n)
        noise = 0.8 * noise + 0.6 * rng.standard_normal(100)[groups]
    order = np.argsort(prediction)
    columns = (mass * prediction + weight * noise, mass, weight)
    loss = QuadraticLoss(*(column[order] for column in columns), groups=None if groups is None else groups[order])
    return prediction[order], loss


def rank_truth(kind):
    """AUTOC and Qini of the population, by direct integration over a fine grid of its predictions."""
    cells = int(kind.split()[0]) if kind.endswith("levels") else 4000
    prediction = (np.arange(cells) + 0.5) / cells
    mass = 0.2 + 0.6 * prediction if kind == "treated" else np.ones(cells)
    return direct_rates(prediction, mass * prediction, mass, np.ones(cells))


RANKS = ("continuous", "weights", "treated", "clusters", "2 levels", "5 levels", "10 levels", "30 levels")


def rank_figures(kind, n, draws):
    """Ratio of standard error to deviation, and coverage, of AUTOC and of Qini."""
    rng, truth, found = np.random.default_rng(0), rank_truth(kind), []
    for _ in range(draws):
        prediction, loss = rank_draw(kind, n, rng)
        one = answer(SortedRows(prediction, loss), rate(loss, 0.95))
        found.append([(c.value, c.standard_error, *c.interval) for c in (one.autoc, one.qini)])
    value, error, low, high = np.moveaxis(np.array(found), 2, 0)
    ratio = np.sqrt((error**2).mean(axis=0)) / value.std(axis=0)
    return ratio, ((low <= truth) & (truth <= high)).mean(axis=0)


@pytest.mark.parametrize("kind", ["weights", "treated", "2 levels"])
def test_errors_of_ranks_in_short(kind):
    ratio, covered = rank_figures(kind, 1000, 300)
    print(f"{kind}: error / deviation {ratio.round(3)}, coverage {covered.round(3)}")
    assert (np.abs(ratio - 1) < 0.15).all()
    assert all(reaches(share, 300, 0.93, 0.97) for share in covered)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RANKS)
def test_errors_of_ranks(kind):
    ratio, covered = rank_figures(kind, 1000, 2000)
    print(f"ranks, {kind}: error / deviation {ratio.round(3)}, coverage {covered.round(4)} (AUTOC, Qini)")
    assert (np.abs(ratio - 1) < 0.05).all()
    assert all(reaches(share, 2000, 0.93, 0.97) for share in covered)


def level_draw(effect, which, n, rng):
    """Average of one draw; bin targets less the truth of their middle; slope."""
    prediction, loss = loss_of(draw(n, rng).sort_values("x"), effect, which)
    rows = SortedRows(prediction, loss)
    average = answer(rows, average_effect(rows, 0.95))
    bins = answer(rows, _bins(rows, None, Settings(random_state=0))).columns
    line = answer(rows, best_line(rows, bins, average, 0.95))
    slope = (np.nan,) * 3 if line is None else (line.slope.value, *line.slope.interval)
    return (average.effect, *average.interval, *slope, *(bins["target"] - bins["prediction"] / 3)[2:8])


def level_figures(effect, which, n, draws):
    """Bias and coverage of the average, bias of the inner bins' targets, mean and coverage of the slope, share with a slope."""
    rng = np.random.default_rng(0)
    found = np.array([level_draw(effect, which, n, rng) for _ in range(draws)])
    effects, low, high, slope, slope_low, slope_high, *targets = found.T
    some = ~np.isnan(slope)
    covered = (low <= TRUTH[effect]) & (TRUTH[effect] <= high)
    slope_covered = ((slope_low <= 1 / 3) & (slope_high >= 1 / 3))[some]
    return {
        "bias": effects.mean() - TRUTH[effect],
        "deviation": effects.std(),
        "coverage": covered.mean(),
        "targets": np.mean(targets, axis=1),
        "slope": np.median(slope[some]),
        "slope coverage": slope_covered.mean(),
        "slopes": some.mean(),
    }


def shown(figures):
    return ", ".join(f"{name} {np.round(value, 3)}" for name, value in figures.items())


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
@pytest.mark.parametrize("effect", [QUANTILE, EXPECTILE], ids=["quantile", "expectile"])
def test_levels_in_short(effect):
    found = level_figures(effect, "wrong propensity", 500, 60)
    print(shown(found))
    assert abs(found["bias"]) < 0.6 * found["deviation"]
    assert reaches(found["coverage"], 60, 0.92, 0.98)
    assert found["slope"] == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
@pytest.mark.parametrize("which", NUISANCES)
@pytest.mark.parametrize("effect", [QUANTILE, EXPECTILE], ids=["quantile", "expectile"])
@pytest.mark.parametrize(("n", "draws"), [(1000, 600), (4000, 400)])
def test_levels(effect, which, n, draws):
    found = level_figures(effect, which, n, draws)
    print(f"{type(effect).__name__}, {which}, {n} rows: {shown(found)}")
    assert abs(found["bias"]) < 0.2 * found["deviation"]
    assert reaches(found["coverage"], draws, 0.92, 0.98)
    assert (np.abs(found["targets"]) < 0.05).all()
    assert found["slope"] == pytest.approx(1 / 3, abs=0.01)
    assert reaches(found["slope coverage"], draws, 0.92, 0.98)
    assert found["slopes"] > 0.95
