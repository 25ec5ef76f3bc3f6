"""Numbers in order, however they lie: in steps of their range, or by their bits."""

from __future__ import annotations

import numpy as np
import pytest

from orthocal import arrays

N = 20_000


def _numbers(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    values = {
        "normal": rng.standard_normal(N),
        "heavy tails": rng.standard_cauchy(N) ** 3,
        "tied": rng.integers(0, 7, N) * 0.1,
        "one far away": np.append(rng.standard_normal(N - 1), 1e40),
        "in two places": np.concatenate([rng.standard_normal(N // 2), 1e9 + rng.standard_normal(N // 2)]),
        "last digits": 1 + rng.integers(0, 50, N) * np.finfo(float).eps,
        "zeros": np.where(rng.random(N) < 0.5, 0.0, -0.0),
        "none": np.empty(0),
        "ends of doubles": np.where(rng.random(N) < 0.5, -1e308, 1e308),
        "infinite": np.where(rng.random(N) < 0.5, np.inf, rng.standard_normal(N)),
        "all infinite": np.full(5, -np.inf),
        "range beyond doubles": np.where(rng.random(N) < 0.5, -1e308, 1e308) * rng.random(N),
    }
    return values[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "normal",
        "heavy tails",
        "tied",
        "one far away",
        "in two places",
        "last digits",
        "zeros",
        "range beyond doubles",
        "none",
        "ends of doubles",
        "infinite",
        "all infinite",
    ],
)
def test_order_is_the_stable_one(kind):
    values = _numbers(kind)
    order, level = arrays.ordered(values)
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(level, values[order])


def test_rows_that_share_a_step_are_put_in_order(monkeypatch):
    """With a few thousand steps only, most rows share one."""
    monkeypatch.setattr(arrays, "BITS", 14 + N.bit_length())
    monkeypatch.setattr(arrays, "ROOM", 0)
    values = np.random.default_rng(1).permutation(np.concatenate([np.arange(N) * 1.0, np.arange(N // 50) + 0.5]))
    monkeypatch.setattr(arrays, "MOST_ALIKE", 1)
    order, level = arrays.ordered(values)
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(level, np.sort(values))
