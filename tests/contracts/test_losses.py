"""Laws of every loss."""

import numpy as np
import pytest

from orthocal import ExpectileLoss, HingeLoss, OrthocalError, QuadraticLoss
from orthocal.distributions import TableDistribution
from orthocal.losses import Loss, Overlap, score_at

rng = np.random.default_rng(0)
LAW = TableDistribution(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.sort(rng.random((40, 5)), axis=1))
TILTED = {"outcome": rng.standard_normal(40), "slope": rng.uniform(0, 3, 40) * (rng.random(40) < 0.5)}
TILTED |= {"tilt": rng.uniform(0, 1, 40), "weight": rng.uniform(0.5, 2, 40)}
UNIVERSAL = ("quadratic", "ratio", "fixed hinge")
LOSSES = {
    "quadratic": QuadraticLoss(rng.standard_normal(40), rng.uniform(0.5, 2, 40), groups=np.arange(40) // 4),
    "ratio": QuadraticLoss(rng.standard_normal(40), rng.uniform(-0.5, 2, 40)),
    "hinge": HingeLoss(**TILTED, distribution=LAW, groups=np.arange(40) // 4),
    "fixed hinge": HingeLoss(**TILTED),
    "expectile": ExpectileLoss(**TILTED, distribution=LAW, expectile=0.3),
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
def test_the_score_is_the_derivative_of_the_loss_taken_there(name):
    loss, v = LOSSES[name], 2 * rng.standard_normal(40)
    np.testing.assert_allclose(score_at(loss, v), loss.at(v).derivative(v), atol=1e-12)


@pytest.mark.parametrize("name", UNIVERSAL)
def test_a_universally_orthogonal_loss_is_its_own_rebuild(name):
    assert LOSSES[name].at(np.zeros(40)) is LOSSES[name]


@pytest.mark.parametrize("name", sorted(set(LOSSES) - set(UNIVERSAL)))
def test_a_rebuilt_loss_depends_on_the_level_only(name):
    loss, v = LOSSES[name], rng.standard_normal(40)
    once, twice = loss.at(v), loss.at(np.zeros(40)).at(v)
    np.testing.assert_allclose(once.value(v), twice.value(v))
    np.testing.assert_allclose(once.derivative(v), twice.derivative(v))
    part = loss[:10].at(v[:10])
    np.testing.assert_allclose(part.value(v[:10]), once.value(v)[:10])


@pytest.mark.parametrize("name", sorted(set(LOSSES) - set(UNIVERSAL)))
def test_the_value_at_its_own_level_is_the_doubly_robust_risk(name):
    """Mathematics 3.10: w L(y, v) + (1 - w) E[L(Y, v) | x], up to a constant in v; the mean of L by numerical integration."""
    loss, base = LOSSES[name], np.zeros(40)
    for shift in (0.3, -0.8):
        v = np.full(40, shift)
        ours = loss.at(v).value(v) - loss.at(base).value(base)
        plain, plain_base = (_loss(loss, loss.outcome, u) for u in (v, base))
        mean, mean_base = (_mean_loss(loss, u) for u in (v, base))
        wanted = loss.slope * (plain - plain_base) + (loss.weight - loss.slope) * (mean - mean_base)
        np.testing.assert_allclose(ours, wanted, atol=2e-3)


def _loss(loss, y, v):
    if isinstance(loss, HingeLoss):
        return np.maximum(v - y, 0) - loss.quantile * v
    return 0.5 * np.where(y <= v, 1 - loss.expectile, loss.expectile) * (y - v) ** 2


def _mean_loss(loss, v):
    """Integrate the loss against the tabulated law: atoms at both ends, uniform pieces between."""
    levels, table = LAW.levels, LAW.table
    total = table[:, 0] * _loss(loss, levels[0], v)
    for j in range(4):
        grid = np.linspace(levels[j], levels[j + 1], 401)
        middle = (grid[1:] + grid[:-1]) / 2
        values = np.mean([_loss(loss, y, v) for y in middle], axis=0)
        total = total + (table[:, j + 1] - table[:, j]) * values
    return total + (1 - table[:, -1]) * _loss(loss, levels[-1], v)


def test_weights_default_to_the_denominator_unless_it_can_be_negative():
    np.testing.assert_array_equal(LOSSES["quadratic"].weight, LOSSES["quadratic"].denominator)
    np.testing.assert_array_equal(LOSSES["ratio"].weight, np.ones(40))


def test_overlap_travels_with_the_rows():
    got, propensity = np.array([True, False, True, True]), np.array([0.2, 0.5, 0.5, 0.8])
    overlap = Overlap(0.01, {"propensity": 0.1}, {"treated": (got, propensity)}, np.array([1.0, 1, 2, 1]))
    part = QuadraticLoss(np.ones(4), np.ones(4), overlap=overlap)[:3].overlap
    assert part.propensity == {"treated": (0.2, 0.5)}
    # Rows 0 and 2 were treated: weights 1 / 0.2 = 5 and 2 / 0.5 = 4; (5 + 4)^2 / (25 + 16)
    assert part.effective_rows["treated"] == pytest.approx(81 / 41)
    assert part.to_dict()["clipped"] == {"propensity": 0.1}


@pytest.mark.parametrize("name", sorted(set(LOSSES) - set(UNIVERSAL)))
def test_the_tilt_at_a_level_is_the_mean_score_there(name):
    """Of the rows that carry no weight, the derivative at the level is the mean derivative of the plain loss."""
    loss, h = LOSSES[name], 1e-3
    v = np.full(40, 0.37)
    wanted = (_mean_loss(loss, v + h) - _mean_loss(loss, v - h)) / (2 * h)
    free = loss.slope == 0
    np.testing.assert_allclose(loss.at(v).derivative(v)[free], (loss.weight * wanted)[free], atol=5e-3)


@pytest.mark.parametrize("kind", [QuadraticLoss, HingeLoss, ExpectileLoss])
def test_what_is_masked_is_missing(kind):
    masked, ones = np.ma.masked_equal([1.0, -999.0, 2.0], -999.0), np.ones(3)
    with pytest.raises(OrthocalError, match="must be finite in every row; row 1 is nan"):
        kind(masked, *([ones] * (1 if kind is QuadraticLoss else 2)))
