import matplotlib.pyplot as plt
import numpy as np
import pytest

from orthocal import QuadraticLoss, assess, plots


@pytest.fixture
def verdict():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(400)
    return assess(prediction, QuadraticLoss(prediction / 2 + rng.standard_normal(400), np.ones(400)), random_state=0)


def test_reliability_draws_each_bin_on_the_axes_given(verdict):
    ax = plt.subplots()[1]
    assert verdict.plot(ax) is ax
    drawn = next(line for line in ax.get_lines() if line.get_marker() == "o")
    np.testing.assert_allclose(drawn.get_xdata(), verdict.bins["prediction"])
    np.testing.assert_allclose(drawn.get_ydata(), verdict.bins["target"])
    assert ax.get_xlabel() == "predicted effect"
    low, high = ax.get_ylim()
    assert low < verdict.bins["target"].min() < verdict.bins["target"].max() < high
    plt.close("all")


def test_reliability_makes_its_own_axes(verdict):
    assert verdict.plot().get_figure() is not None
    plt.close("all")


def test_before_and_after_share_their_scale(verdict):
    figure = plots.before_and_after(verdict, verdict, title="t")
    left, right = figure.axes
    assert left.get_xlim() == right.get_xlim() == left.get_ylim() == right.get_ylim()
    assert len(plots.before_and_after(verdict, verdict).axes) == 2
    plt.close("all")


def test_a_constant_prediction_can_be_drawn():
    verdict = assess(np.full(10, 2.0), QuadraticLoss(np.full(10, 2.0), np.ones(10)))
    low, high = verdict.plot().get_xlim()
    assert low < 2 < high
    plt.close("all")
