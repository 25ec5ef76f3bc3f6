"""Costs relative to the operations that must be done anyway, in processor time: twice what `make bench` asks for."""

import time

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from orthocal import Histogram, Isotonic, Linear, QuadraticLoss, assess
from orthocal.arrays import FEW, step_of

ROWS = 200_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(ROWS)
    return prediction, QuadraticLoss(prediction + rng.standard_normal(ROWS), np.ones(ROWS))


def ratio(ours, floor):
    """Least processor time of ours over least of the floor, in turn."""
    times = ([], [])
    for _ in range(9):
        for record, work in zip(times, (ours, floor), strict=True):
            start = time.process_time()
            work()
            record.append(time.process_time() - start)
    return min(times[0]) / min(times[1])


def isotonic_floor(prediction, loss):
    order = np.argsort(prediction)
    level = prediction[order]
    fit = isotonic_regression(loss.target[order], weights=loss.denominator[order])
    starts = fit.blocks[:-1]
    return fit.x[starts][np.searchsorted(level[starts[1:] - 1], prediction)]


def test_isotonic(rows):
    prediction, loss = rows
    assert ratio(lambda: Isotonic().fit(*rows).predict(prediction), lambda: isotonic_floor(*rows)) < 3


def test_histogram(rows):
    prediction, loss = rows
    group = np.arange(ROWS) % 20
    floor = lambda: (np.argsort(prediction), np.bincount(group, loss.numerator))  # noqa: E731
    assert ratio(lambda: Histogram().fit(*rows), floor) < 3


def test_linear(rows):
    prediction, loss = rows
    assert ratio(lambda: Linear().fit(*rows), lambda: np.polyfit(prediction, loss.target, 1)) < 1


def test_assess(rows):
    prediction, _ = rows
    assert ratio(lambda: assess(*rows, draws=100, random_state=0), lambda: np.argsort(prediction)) < 25


@pytest.mark.parametrize("count", [0, 1, FEW, FEW + 1, 300])
def test_steps_are_found_alike_whichever_way_is_faster(count):
    rng = np.random.default_rng(count)
    edges = np.unique(rng.standard_normal(count))
    values = np.concatenate([rng.standard_normal(1000), edges, np.nextafter(edges, np.inf)])
    np.testing.assert_array_equal(step_of(values, edges), np.searchsorted(edges, values, side="left"))
