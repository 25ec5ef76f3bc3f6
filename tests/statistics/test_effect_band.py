"""Coverage of the band of the calibrated effect, where the truth is known: shapes, sizes, weights, clusters, learnt nuisances."""

import numpy as np
import pytest

import orthocal
from orthocal.assessment.effect_band import effect_band
from orthocal.calibrators import Histogram
from tests.effect_band_truths import ROWS, SHAPES, drawn, holds

pytestmark = pytest.mark.slow
DRAWS = 300


def width(band, prediction):
    """Average over rows where both ends exist."""
    return np.nanmean(np.diff(band.interval(prediction), axis=0))


@pytest.mark.parametrize("n", [1000, 4000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", ROWS)
def test_the_whole_curve_is_held(rows, shape, n):
    """A coverage of 95% shows 92.5% or less in 300 draws once in forty times."""
    kept, widths = [], []
    for draw in range(DRAWS):
        prediction, loss, truth = drawn(rows, shape, n, np.random.default_rng([draw, n]))
        band = effect_band(prediction, loss, draws=500)
        kept.append(holds(band, prediction, truth))
        widths.append(width(band, prediction))
    print(f"{rows}, {shape}, {n} rows: held in {np.mean(kept):.3f}, width {np.mean(widths):.2f}")
    assert np.mean(kept) >= 0.925


@pytest.mark.parametrize("n", [1000, 4000])
def test_the_averages_of_bins_are_held(n):
    """A curve that falls: the band of the bins holds their true averages."""
    kept = []
    for draw in range(DRAWS):
        rng = np.random.default_rng([draw, n])
        prediction = rng.uniform(-1, 1, n)
        truth = np.cos(3 * prediction)
        loss = orthocal.losses.QuadraticLoss(truth + rng.standard_normal(n), np.ones(n))
        edges = Histogram(bins=10).fit(prediction, loss).map_.edges
        mean = Histogram(bins=10).fit(prediction, orthocal.losses.QuadraticLoss(truth, np.ones(n))).predict(prediction)
        kept.append(holds(effect_band(prediction, loss, bins=edges, draws=500), prediction, mean))
    assert 0.925 <= np.mean(kept) <= 0.99


def test_it_is_not_much_wider_than_the_intervals_of_bins():
    """Width is averaged over rows where both ends exist."""
    for shape in ("flat", "linear", "step", "steep end", "plateau"):
        widths = []
        for draw in range(20):
            prediction, loss, _ = drawn("alone", shape, 4000, np.random.default_rng(draw))
            edges = Histogram(bins=20).fit(prediction, loss).map_.edges
            bands = effect_band(prediction, loss), effect_band(prediction, loss, bins=edges)
            widths.append([width(band, prediction) for band in bands])
        ours, theirs = np.mean(widths, axis=0)
        print(f"{shape}: width {ours:.3f}, of bins {theirs:.3f}")
        assert ours <= 1.6 * theirs


@pytest.mark.parametrize("n", [1000, 4000])
def test_with_nuisances_that_are_learnt(n):
    """A confounded treatment and linear learners, cross-fitted; the effect itself is the prediction, so the truth is known."""
    from sklearn.linear_model import LinearRegression, LogisticRegression

    kept = []
    for draw in range(100):
        data = orthocal.datasets.simulate_cate(n=n, random_state=draw)
        learners = {"outcome": LinearRegression(), "propensity": LogisticRegression()}
        calibrator = orthocal.CausalCalibrator(method="isotonic", learners=learners, random_state=draw)
        calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=data.effect)
        kept.append(holds(calibrator.band_, data.effect, data.effect))
    print(f"learnt nuisances, {n} rows: held in {np.mean(kept):.3f}")
    assert np.mean(kept) >= 0.9
