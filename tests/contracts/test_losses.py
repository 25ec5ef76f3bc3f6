"""Laws of every loss."""

import numpy as np
import pytest

from orthocal import QuadraticLoss
from orthocal.losses import Loss, Overlap

rng = np.random.default_rng(0)
LOSSES = {
    "quadratic": QuadraticLoss(rng.standard_normal(40), rng.uniform(0.5, 2, 40), groups=np.arange(40) // 4),
    "ratio": QuadraticLoss(rng.standard_normal(40), rng.uniform(-0.5, 2, 40)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_offers_the_protocol(name):
    assert isinstance(LOSSES[name], Loss)


@pytest.mark.parametrize("name", LOSSES)
def test_the_derivative_is_the_slope_of_the_value(name):
    loss, v, h = LOSSES[name], rng.standard_normal(40), 1e-6
    slope = (loss.value(v + h) - loss.value(v - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(v), slope, atol=1e-8)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rows", [np.array([3, 1, 8]), np.arange(40) % 3 == 0, slice(2, 9)])
def test_rows_keep_their_own_values(name, rows):
    loss, v = LOSSES[name], rng.standard_normal(40)
    part = loss[rows]
    np.testing.assert_array_equal(part.value(v[rows]), loss.value(v)[rows])
    np.testing.assert_array_equal(part.mass, loss.mass[rows])
    np.testing.assert_array_equal(part.weight, loss.weight[rows])
    assert (part.groups is None) == (loss.groups is None)
    assert part.bounds == loss.bounds


@pytest.mark.parametrize("name", LOSSES)
def test_a_universally_orthogonal_loss_is_its_own_rebuild(name):
    assert LOSSES[name].at(np.zeros(40)) is LOSSES[name]


def test_weights_default_to_the_denominator_unless_it_can_be_negative():
    np.testing.assert_array_equal(LOSSES["quadratic"].weight, LOSSES["quadratic"].denominator)
    np.testing.assert_array_equal(LOSSES["ratio"].weight, np.ones(40))


def test_overlap_travels_with_the_rows():
    overlap = Overlap(0.01, {}, {}, {})
    assert QuadraticLoss(np.ones(3), np.ones(3), overlap=overlap)[:2].overlap is overlap
