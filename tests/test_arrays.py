import numpy as np
import pytest

from orthocal import arrays
from orthocal.arrays import group_sums, packed_argsort, sorting_order, taken
from orthocal.maps import SplineMap

RNG = np.random.default_rng(0)
NUMBERS = {
    "normal": RNG.standard_normal(30_000),
    "ties": np.round(RNG.standard_normal(30_000) * 3),
    "close": 1 + 1e-9 * RNG.standard_normal(30_000),
    "a few close": np.concatenate([1 + 1e-13 * RNG.standard_normal(300), RNG.standard_normal(20_000)]),
    "extreme": RNG.choice([0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.0], 30_000),
    "one": np.ones(7),
    "strided": RNG.standard_normal(60_000)[::2],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_packed_order_is_the_stable_one(name):
    values = NUMBERS[name]
    before = values.copy()
    np.testing.assert_array_equal(packed_argsort(values), np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(values, before)


def test_rows_alike_in_their_leading_bits_are_put_in_order_without_sorting_all_again(monkeypatch):
    values = NUMBERS["a few close"]
    assert len(np.unique(values.view(np.int64) >> 15)) < len(np.unique(values))  # leading bits do agree
    monkeypatch.setattr(arrays, "MOST_ALIKE", 1)  # all may be alike
    np.testing.assert_array_equal(packed_argsort(values), np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(packed_argsort(NUMBERS["close"]), np.argsort(NUMBERS["close"], kind="stable"))


def test_sorted_rows_are_left_alone():
    assert sorting_order(np.array([0.0, 0.0, 1.0])) == slice(None)
    np.testing.assert_array_equal(sorting_order(np.array([1.0, 0.0, 0.0])), [1, 2, 0])


def test_sums_of_groups():
    group, value = np.sort(RNG.integers(0, 5, 20_000)), RNG.standard_normal(20_000)
    np.testing.assert_allclose(group_sums(group, value, 7), np.bincount(group, value, 7))
    np.testing.assert_allclose(group_sums(group, value, 5), np.bincount(group, value, 5))


@pytest.mark.parametrize(
    "values", [np.full(20_000, 3.0), RNG.standard_normal(20_000), np.r_[1.0, np.zeros(9_999), 1.0]]
)
def test_taking_rows_is_indexing(values):
    rows = RNG.permutation(len(values))
    for some in (rows, rows[:5], slice(3, 8), values > 0):
        np.testing.assert_array_equal(taken(values, some), values[some])


def test_a_spline_map_takes_arrays_that_lie_at_any_byte():
    """As a worker of a cluster receives them."""
    knots, coefficients = np.r_[[0.0] * 4, 0.5, [1.0] * 4], np.arange(5.0)
    there, at = SplineMap(knots, coefficients), np.linspace(0, 1, 5)
    for name, column in (("knots", knots), ("coefficients", coefficients)):
        moved = np.frombuffer(b"\0" + column.tobytes(), offset=1)
        assert not moved.flags.aligned
        object.__setattr__(there, name, moved)
    np.testing.assert_array_equal(there.predict(at), SplineMap(knots, coefficients).predict(at))
