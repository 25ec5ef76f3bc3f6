"""Coverage of the interval of the error, and how often the verdict speaks of miscalibration, over 2,000 draws each.

Predictions are uniform on (0, 1), the pseudo-outcome is prediction + error + noise, and both are functions of the prediction.
"""

from functools import partial

import numpy as np
import pytest

from orthocal import QuadraticLoss
from orthocal.assessment.assess import judge
from orthocal.assessment.bins import Binned, binned
from orthocal.assessment.bins_test import bins_test
from orthocal.assessment.error import error_interval, largest_error, minimum_detectable_error
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.range_test import range_test
from orthocal.assessment.records import Settings
from orthocal.assessment.status import is_rejected, rejections
from orthocal.assessment.sweeps import SortedRows, answer, answered
from tests.simulation import reaches

DRAWS, BINS = 2000, 10
ERRORS = {
    "none": lambda t: 0 * t,
    "shift": lambda t: 0 * t + 0.2,
    "slope": lambda t: 0.6 * (t - 0.5),
    "top bin": lambda t: 0.6 * (t > 0.9),
    "top bin, larger": lambda t: 1.0 * (t > 0.9),
    "bottom bin": lambda t: 0.6 * (t < 0.1),
    "above .7": lambda t: 1.5 * np.maximum(t - 0.7, 0),
    "cubic": lambda t: 0.6 * (2 * t - 1) ** 3,
    "wiggle": lambda t: 0.25 * np.sin(4 * np.pi * t),
}
DEVIATIONS = {
    "even": lambda t: 1 + 0 * t,
    "twice in the top bin": lambda t: 1.0 + (t > 0.9),
    "three times in the top bin": lambda t: 1.0 + 2 * (t > 0.9),
    "rising": lambda t: 0.5 + 2 * t,
}
DESIGNS = (
    *(("none", "even", "rows"), ("none", "rising", "rows"), ("shift", "even", "rows"), ("slope", "even", "rows")),
    *(("slope", "rising", "rows"), ("cubic", "even", "rows"), ("wiggle", "even", "rows")),
    *(("top bin", "twice in the top bin", "rows"), ("top bin", "three times in the top bin", "rows")),
    *(("top bin, larger", "three times in the top bin", "rows"), ("bottom bin", "three times in the top bin", "rows")),
    *(("above .7", "rising", "rows"), ("slope", "even", "weights"), ("top bin", "twice in the top bin", "weights")),
    *(("none", "even", "clusters"), ("slope", "even", "clusters"), ("top bin", "twice in the top bin", "clusters")),
)
GRID = np.linspace(0, 1, 20_001)


def moments(error, deviation, kind, n, rng):
    """The moments of one draw."""
    t = np.sort(rng.random(n))
    noise = rng.standard_normal(n)
    if kind == "rows":
        return plain_moments(t, error(t) + deviation(t) * noise)
    weight, groups = np.ones(n), None
    if kind == "weights":
        weight = 0.1 + rng.exponential(size=n)
    else:
        groups = rng.integers(0, 50, n)
        noise = 0.9 * noise + 0.4 * rng.standard_normal(50)[groups]
    target = t + error(t) + deviation(t) * noise
    return binned(t, QuadraticLoss(weight * target, weight, groups=groups), BINS)


def plain_moments(t, residual):
    """What `binned` gives for rows of equal weight, without its checks."""
    n, size = len(t), len(t) // BINS
    by_bin = residual.reshape(BINS, size)
    mean, variance = by_bin.mean(1), by_bin.var(1, ddof=1) / size
    mass, freedom = np.full(BINS, float(size)), np.full(BINS, size - 1.0)
    shares, edges = np.eye(BINS) * size / n**2, t[size - 1 : -1 : size]
    return Binned(
        edges=edges,
        size=mass.astype(int),
        mass=mass,
        residual=mean,
        pairs=mean**2 - variance,
        covariance=np.diag(variance),
        clusters=n,
        share_variance=shares,
        freedom=freedom,
    )


def integral(error):
    """From 0 to each place of the grid."""
    step = GRID[1]
    return np.concatenate([[0.0], np.cumsum(error(GRID[:-1] + step / 2)) * step])


def truth(inside, edges):
    """Root mean square over the bins, with their shares in the population, of the mean error, given its integral."""
    ends = np.concatenate([[0.0], edges, [1.0]])
    share = np.diff(ends)
    return float(np.sqrt(np.sum(np.diff(np.interp(ends, GRID, inside)) ** 2 / share)))


def coverage(design, n, draws):
    """Share of draws in which the interval covers."""
    error, deviation, kind = ERRORS[design[0]], DEVIATIONS[design[1]], design[2]
    rng, covered, inside = np.random.default_rng(7), 0, integral(error)
    for _ in range(draws):
        found = moments(error, deviation, kind, n, rng)
        low, high = error_interval(found, 0.95)
        wanted = truth(inside, found.edges)
        covered += low <= wanted + 1e-12 and (
            wanted <= high or wanted < 1e-12
        )  # assess never lets an interval end at 0
    return covered / draws


def test_plain_moments_are_those_of_the_verdict():
    rng = np.random.default_rng(0)
    t = np.sort(rng.random(200))
    residual = rng.standard_normal(200)
    one, two = plain_moments(t, residual), binned(t, QuadraticLoss(t + residual, np.ones(200)), BINS)
    for name in ("edges", "mass", "residual", "pairs", "covariance", "share_variance", "freedom"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-12)


@pytest.mark.parametrize("design", [DESIGNS[0], DESIGNS[7], DESIGNS[11]])
def test_the_interval_covers_in_short(design):
    assert reaches(coverage(design, 1000, 400), 400, 0.915, 0.995)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 4000])
def test_the_interval_covers_the_binned_error_wherever_error_and_noise_lie(n):
    found = {" / ".join(design): coverage(design, n, DRAWS) for design in DESIGNS}
    for name, share in found.items():
        print(f"n = {n}, {name}: {share:.4f}")
    print(f"n = {n}: from {min(found.values()):.3f} to {max(found.values()):.3f} over {len(found)} designs")
    assert all(reaches(share, DRAWS, 0.915, 0.995) for share in found.values())
    assert np.mean([reaches(share, DRAWS, 0.93, 0.98) for share in found.values()]) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_an_error_as_large_as_the_detectable_one_is_seen_four_times_in_five(deviation):
    rng, seen = np.random.default_rng(0), []
    for _ in range(DRAWS):
        found = moments(ERRORS["none"], DEVIATIONS[deviation], "rows", 1000, rng)
        error = minimum_detectable_error(found, 0.95)
        again = moments(lambda t, error=error: 0 * t + error, DEVIATIONS[deviation], "rows", 1000, rng)
        seen.append(error_interval(again, 0.95)[0] > 0)
    print(f"noise {deviation}: the detectable error was seen in {np.mean(seen):.4f}")
    assert reaches(np.mean(seen), DRAWS, 0.77, 0.84)


def numbers(t, loss, rng):
    """What decides whether a verdict speaks of miscalibration, with everything else left out."""
    rows = SortedRows(t, loss)
    stages = {"linear": linear_test(rows, 0.95), "range": range_test(rows, 200, rng)}
    found, moments_ = answered(rows, stages), binned(t, loss, BINS)
    bins, _ = answer(rows, bins_test(rows, moments_))
    tests = {"linear": found["linear"][0], "bins": bins, "range": found["range"]}
    return {"tests": tests, "level": 0.95, "interval": error_interval(moments_, 0.95), "moments": moments_}


def detections(error, deviation, kind, n, draws):
    """Shares of draws in which the verdict speaks of miscalibration, and in which the bins test does at 5%."""
    rng, found = np.random.default_rng(3), []
    for _ in range(draws):
        t = np.sort(rng.random(n))
        if kind == "20 levels":
            t = np.floor(20 * t) / 20
        noise, groups = rng.standard_normal(n), None
        if kind == "clusters":
            groups = rng.integers(0, 50, n)
            noise = 0.9 * noise + 0.4 * rng.standard_normal(50)[groups]
        one = numbers(t, QuadraticLoss(t + error(t) + deviation(t) * noise, np.ones(n), groups=groups), rng)
        found.append((one["interval"][0] > 0 or bool(rejections(one)), one["tests"]["bins"].p_value < 0.05))
    return np.mean(found, axis=0)


NULLS = (*((deviation, "rows") for deviation in DEVIATIONS), ("even", "20 levels"), ("even", "clusters"))


@pytest.mark.slow
def test_a_calibrated_prediction_is_called_miscalibrated_at_most_one_time_in_twenty():
    found = {}
    for deviation, kind in NULLS:
        found[deviation, kind], bins = detections(ERRORS["none"], DEVIATIONS[deviation], kind, 1000, DRAWS)
        print(f"noise {deviation}, {kind}: verdict {found[deviation, kind]:.4f}, bins test alone {bins:.4f}")
    assert all(reaches(share, DRAWS, 0.0, 0.05) for share in found.values())


@pytest.mark.slow
def test_a_wiggle_is_seen_by_the_verdict_much_as_by_the_bins_test():
    for deviation, amplitude in (("even", 0.15), ("rising", 0.2)):
        wiggle = partial(_wiggle, amplitude=amplitude)
        verdict, bins = detections(wiggle, DEVIATIONS[deviation], "rows", 1000, DRAWS // 2)
        print(f"wiggle, noise {deviation}: verdict {verdict:.4f}, bins test alone at 5% {bins:.4f}")
        assert verdict > 0.6 * bins


def _wiggle(t, amplitude):
    return amplitude * np.sin(4 * np.pi * t)


def test_the_rule_of_these_tests_is_that_of_the_verdict():
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.1, 0.3):
        t = np.sort(rng.random(400))
        loss = QuadraticLoss(t + shift + rng.standard_normal(400), np.ones(400))
        one = numbers(t, loss, rng)
        verdict = judge(SortedRows(t, loss), Settings(bins=BINS, draws=200, random_state=0), [], None)
        assert is_rejected(vars(verdict)) == (one["interval"][0] > 0 or bool(rejections(one)))


def binary_draw(n, rate, rng):
    """A calibrated prediction of few, unequal levels, a randomised treatment, a binary outcome, and known nuisances."""
    edges = np.cumsum(rng.dirichlet(np.full(15, 0.7)))[:-1]
    level = np.sort(np.searchsorted(edges, rng.random(n)))
    control = np.full(n, rate)
    effect = rate * (level / 15 - 0.5)
    treated = rng.random(n) < 0.5
    y = (rng.random(n) < control + treated * effect).astype(float)
    chi = effect + np.where(treated, 2.0, -2.0) * (y - control - treated * effect)
    return level, QuadraticLoss(level + chi - effect, np.ones(n))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_ties_and_binary_outcomes_leave_bins_that_can_be_judged():
    for n, rate in ((1000, 0.5), (1000, 0.2), (4000, 0.2)):
        rng, found = np.random.default_rng(5), []
        for _ in range(DRAWS):
            level, loss = binary_draw(n, rate, rng)
            rows, moments_ = SortedRows(level.astype(float), loss), binned(level.astype(float), loss, BINS)
            beyond = np.abs(moments_.residual) > largest_error(moments_, 0.95, 200, rng).band * np.sqrt(
                moments_.variance
            )
            found.append(((answer(rows, bins_test(rows, moments_))[0].p_value or 1.0) < 0.05, beyond.any()))
        size, missed = np.mean(found, axis=0)
        print(f"binary outcome, rate {rate}, n = {n}: bins test {size:.4f}, band covers {1 - missed:.4f}")
        assert reaches(size, DRAWS, 0.025, 0.065)
        assert reaches(1 - missed, DRAWS, 0.935, 0.98)
