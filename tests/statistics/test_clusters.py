"""Size of the tests and coverage of the intervals with clusters of very unequal sizes, over 2,000 draws each."""

import numpy as np
import pytest

from orthocal import QuadraticLoss
from orthocal.assessment.average import average_effect
from orthocal.assessment.bins import binned
from orthocal.assessment.bins_test import bins_test
from orthocal.assessment.linear_test import linear_test
from orthocal.assessment.sweeps import SortedRows, answered
from orthocal.assessment.value import decision_value
from tests.simulation import reaches

DRAWS = 2000
SIZES = {
    "lognormal": lambda count, rng: np.exp(1.5 * rng.standard_normal(count)),
    "Pareto": lambda count, rng: (1 - rng.random(count)) ** (-1 / 1.2),
    "one of a fifth": lambda count, rng: np.append(np.ones(count - 1), count / 4),
    "equal": lambda count, rng: np.ones(count),
}
NAMES = ("bins test", "linear test", "average effect", "mean error", "value")


def first(stage):
    """The first of what a stage returns."""
    return (yield from stage)[0]


def draw(kind, clusters, rows, shared, rng):
    """A calibrated prediction, normal with variance 2 and half of it shared in a cluster; average effect 0, value 1/sqrt(pi)."""
    size = SIZES[kind](clusters, rng)
    groups = np.repeat(np.arange(clusters), np.maximum(1, np.round(size / size.sum() * rows)).astype(int))
    n = len(groups)
    prediction = rng.standard_normal(clusters)[groups] + rng.standard_normal(n)
    noise = np.sqrt(shared) * rng.standard_normal(clusters)[groups] + np.sqrt(1 - shared) * rng.standard_normal(n)
    order = np.argsort(prediction)
    target = (prediction + noise)[order]
    return prediction[order], QuadraticLoss(target, np.ones(n), groups=groups[order])


def misses(kind, clusters, shared, draws, bins=10):
    """Shares of draws in which each test rejects at 5%, and each interval misses what is true."""
    rng, found = np.random.default_rng(11), []
    for _ in range(draws):
        prediction, loss = draw(kind, clusters, 800, shared, rng)
        rows = SortedRows(prediction, loss)
        stages = {
            "bins": first(bins_test(rows, binned(prediction, loss, bins))),
            "linear": linear_test(rows, 0.95),
            "average": average_effect(rows, 0.95),
            "value": decision_value(rows, 0.0, 0.95),
        }
        one = answered(rows, stages)
        bin_p, average = one["bins"].p_value, one["average"]
        ends = ((average.interval, 0.0), (average.excess_interval, 0.0), (one["value"].interval, 1 / np.sqrt(np.pi)))
        outside = [not low <= true <= high for (low, high), true in ends]
        found.append([np.nan if bin_p is None else bin_p < 0.05, one["linear"][0].p_value < 0.05, *outside])
    return dict(zip(NAMES, np.nanmean(np.array(found, dtype=float), axis=0).tolist(), strict=True))


@pytest.mark.parametrize("kind", ["lognormal", "equal"])
def test_sizes_with_unequal_clusters_in_short(kind):
    for name, share in misses(kind, 80, 0.3, 250).items():
        assert reaches(share, 250, 0.025, 0.065), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "clusters", "bins", "shared"),
    [
        *[
            ("lognormal", 80, 10, 0.05),
            ("lognormal", 80, 10, 0.5),
            ("Pareto", 80, 10, 0.5),
            ("one of a fifth", 80, 10, 0.3),
        ],
        *[("equal", 80, 10, 0.3), ("lognormal", 20, 5, 0.3)],
    ],
)
def test_sizes_with_unequal_clusters(kind, clusters, bins, shared):
    found = misses(kind, clusters, shared, DRAWS, bins)
    shown = {name: round(share, 4) for name, share in found.items()}
    print(f"{clusters} clusters, {bins} bins, {kind}, {shared} of the noise shared: {shown}")
    for name, share in found.items():
        # Of few clusters of which two or three hold most rows, the value's interval is too short, as the documentation says.
        most = 0.085 if clusters == 20 and name == "value" else 0.065
        assert reaches(share, DRAWS, 0.025, most), name
