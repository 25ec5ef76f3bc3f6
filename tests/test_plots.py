import matplotlib.pyplot as plt
import numpy as np
import pytest

from orthocal import HingeLoss, OrthocalError, QuadraticLoss, assess, orthogonal_loss, plots
from orthocal.datasets import simulate_cate
from orthocal.maps import AffineMap


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


@pytest.fixture
def rich():
    """A verdict with groups, a cost and overlap."""
    data = simulate_cate(800, random_state=0)
    loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
    by = {"sex": np.arange(800) % 2, "age": data.X[:, 0]}
    return assess(1.5 * data.effect, loss, cost=0.2, by=by, random_state=0)


def test_the_nondecreasing_curve_can_be_drawn(rich):
    ax = plots.reliability(rich, curve=True)
    assert any(
        np.allclose(line.get_ydata(), rich.curve.target) for line in ax.get_lines() if len(line.get_ydata()) == 10
    )
    plt.close("all")


def test_overlay_shows_both(rich, verdict):
    ax = plots.overlay(verdict, rich)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["before", "after"]
    plt.close("all")


def test_a_map_is_drawn_against_doing_nothing(rich):
    ax = plots.calibration_map(AffineMap(1.0, 0.5), rich.predictions)
    drawn = ax.get_lines()[1]
    np.testing.assert_allclose(drawn.get_ydata(), 1 + 0.5 * drawn.get_xdata())
    plt.close("all")


def test_the_forest_names_every_group(rich):
    ax = plots.forest(rich)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert len(labels) == 6
    assert labels[-1].startswith("sex = 0 (400)")
    plt.close("all")


def test_the_decision_curve_needs_a_cost(rich, verdict):
    ax = plots.decision_curve(rich)
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), rich.value.curve["by_prediction"])
    with pytest.raises(OrthocalError, match="must have a cost"):
        plots.decision_curve(verdict)
    plt.close("all")


def test_overlap_draws_each_level(rich, verdict):
    assert len(plots.overlap(rich).get_legend().get_texts()) == 2
    with pytest.raises(OrthocalError, match="no propensities"):
        plots.overlap(verdict)
    plt.close("all")


def test_residuals_of_a_quantile_are_drawn_against_zero():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(500)
    hinge = HingeLoss(y, np.ones(500), np.full(500, 0.5))
    verdict = assess(rng.standard_normal(500) / 5, hinge)
    ax = verdict.plot()
    assert "probability" in ax.get_ylabel()
    assert len(plots.before_and_after(verdict, verdict).axes) == 2
    assert plots.overlay(verdict, verdict) is not None
    plt.close("all")


def test_errors_are_drawn_beside_their_tolerance(verdict, rich):
    ax = plots.calibration_errors({"before": verdict, "after": rich})
    assert [label.get_text() for label in ax.get_yticklabels()] == ["after", "before"]
    marks = [float(line.get_xdata()[0]) for line in ax.get_lines() if line.get_marker() == "o"]
    assert marks == [rich.error, verdict.error]
    assert [text.get_text() for text in ax.texts] == [rich.status, verdict.status]
    tolerances = [float(line.get_xdata()[0]) for line in ax.get_lines() if line.get_linestyle() == "--"]
    assert tolerances == [rich.tolerance, verdict.tolerance]
    assert plots.calibration_errors({"one": rich}).texts[-1].get_text() == " tolerance "
    plt.close("all")


def test_ranked_effects_begin_with_the_highest_prediction(rich):
    ax = plots.ranked_effects(rich)
    drawn = next(line for line in ax.get_lines() if line.get_marker() == "o")
    np.testing.assert_allclose(drawn.get_ydata(), rich.bins["target"][::-1])
    np.testing.assert_allclose(drawn.get_xdata(), np.arange(5, 100, 10), atol=0.5)
    flat = assess(np.full(10, 2.0), QuadraticLoss(np.full(10, 2.0), np.ones(10)))
    with pytest.raises(OrthocalError, match="no ranking to draw"):
        plots.ranked_effects(flat)
    plt.close("all")
